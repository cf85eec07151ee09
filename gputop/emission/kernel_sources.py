"""The CUDA sources of a plan as one text: every header once, every kernel file in a namespace of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from gputop.backends.cuda.compiler.nvrtc import read_text
from gputop.backends.cuda.compiler.sources import Sources
from gputop.emission.cpp_text import rule
from gputop.util.errors import UsageError

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"(?P<own>[^"]+)"|<(?P<system>[^>]+)>).*$', re.MULTILINE)
_PRAGMA_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once[ \t]*\n", re.MULTILINE)
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_COMMENT = re.compile(r"//.*")
_C_LINKAGE = re.compile(r'extern\s+"C"\s+(?=__global__)')
_FUNCTION = r"\b{name}\s*\((?P<parameters>[^()]*)\)"
_STRUCT = re.compile(r"(?:const\s+)?(?:__grid_constant__\s+)?(?:const\s+)?((\w+)(?:<\w+>)?)\s+\w+")


@dataclass
class KernelSources:
    """Collects sources in the order in which they are added."""

    sources: Sources
    system_headers: dict[str, None] = field(default_factory=dict)
    """What the sources include in angle brackets, in the order found."""
    headers: dict[Path, str] = field(default_factory=dict)
    """Header file -> its section; a header stands after those that it includes."""
    kernels: dict[str, str] = field(default_factory=dict)
    """`gemm/01_naive.cu` -> its section."""
    _bodies: dict[str, str] = field(default_factory=dict)

    def add(self, name: str) -> None:
        """Add a source below kernels/ with its headers. Does nothing for one that is there.

        UsageError when the source, or a header that it names in quotes, is not found.
        """
        if name in self.kernels:
            return
        path = self.sources.find(name)
        body = self._without_includes(read_text(path), name, path.parent)
        body = _C_LINKAGE.sub("", body).strip()
        self._bodies[name] = body
        space = namespace(name)
        self.kernels[name] = "\n".join(
            (
                rule(f"kernels/{name}"),
                f"namespace {space} {{\n",
                f"{body}\n",
                *(f"#undef {macro}" for macro in dict.fromkeys(_DEFINE.findall(body))),
                f"}}  // namespace {space}\n",
            )
        )

    def add_header(self, name: str) -> None:
        """Add a header of kernels/include/ with those that it includes."""
        self._include(name, name, self.sources.folders[0])

    def parameter(self, name: str, entry: str) -> str:
        """The struct that an entry of an added source takes: `GemmArgs`, `TmaGemmArgs<float>`.

        It is qualified if it is the source's own.

        Empty if a macro makes the entry. UsageError when the source has no such entry, or one that takes
        anything else.
        """
        body = _COMMENT.sub("", self._bodies[name])
        functions = list(re.finditer(_FUNCTION.format(name=re.escape(entry)), body))
        if not functions and re.search(rf"\b{re.escape(entry)}\b", body):
            return ""
        kernels = [f for f in functions if "__global__" in _declaration_before(body, f.start())]
        struct = _STRUCT.fullmatch(kernels[0]["parameters"].strip()) if kernels else None
        if struct is None:
            raise UsageError(f"{name} has no kernel {entry!r} that takes one struct by value.")
        own = re.search(rf"\bstruct\s+(?:\w+\([^()]*\)\s*)?{struct[2]}\b", body)
        return f"{namespace(name)}::{struct[1]}" if own else struct[1]

    def text(self) -> str:
        """Return all sections: the shared headers, then the kernels."""
        return "\n".join((*self.headers.values(), *self.kernels.values()))

    def _without_includes(self, text: str, name: str, folder: Path) -> str:
        """The text less its includes, whose sections are added first."""
        for include in _INCLUDE.finditer(text):
            if include["system"]:
                self.system_headers.setdefault(include["system"])
            else:
                self._include(include["own"], name, folder)
        return _INCLUDE.sub("", text)

    def _include(self, header: str, included_by: str, folder: Path) -> None:
        path = self._find_header(header, included_by, folder)
        if path in self.headers:
            return
        body = self._without_includes(read_text(path), header, path.parent)
        body = _PRAGMA_ONCE.sub("", body).strip()
        self.headers[path] = f"{rule(f'kernels/include/{header}')}\n{body}\n"

    def _find_header(self, header: str, included_by: str, folder: Path) -> Path:
        """Find a header as NVRTC does: beside the source, then in `include/` of every kernels folder."""
        for place in (folder, *(root / "include" for root in self.sources.folders)):
            if (place / header).is_file():
                return (place / header).resolve()
        raise UsageError(f"{included_by} includes {header!r}, which is not found.")


def namespace(source: str) -> str:
    """The namespace of a source below kernels/: `gemm/01_naive.cu` -> `gemm_01_naive`."""
    return re.sub(r"\W+", "_", source.removesuffix(".cu"))


def _declaration_before(body: str, position: int) -> str:
    """Return the text between the statement before and `position`."""
    return re.split(r"[;}]", body[:position])[-1]
