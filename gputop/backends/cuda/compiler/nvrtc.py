"""CUDA C++ to CUBIN through NVRTC, cached on disk. Needs neither a device nor CuPy.

Always CUBIN, never PTX: a newer NVRTC's machine code loads on an older driver of the same major
version, its PTX does not.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from gputop.backends.cuda.compiler import cuda_headers
from gputop.backends.cuda.compiler.cubin import FunctionFacts, ptxas_facts, read_cubin
from gputop.backends.cuda.compiler.cuda_headers import Headers
from gputop.util import install_hints
from gputop.util.errors import CompileFailed, Unavailable, UsageError, first_line
from gputop.util.input_file import read_input_text, read_regular
from gputop.util.json_decode import BrokenJson, decode_json
from gputop.util.output_file import keep
from gputop.util.paths import cache_dir

OPTIONS = ("-std=c++17", "-lineinfo", "--ptxas-options=-v")
NO_CACHE = "--no-cache"
"""NVRTC's own cache gives machine code back without what ptxas said of it."""
FIRST_WITH_CACHE = 13
LOWEST_ARCH = "80"
MOST_SOURCE_BYTES = 4 << 20
MOST_CUBIN_BYTES = 256 << 20

_CACHE_MAGIC = b"gputop-cubin/1\n"
_ARCH_LINE = re.compile(r"^//\s*arch:\s*(\d+a?)\s*$", re.MULTILINE)
_INCLUDE_LINE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
_NVRTC_ERROR = re.compile(
    r"^(?P<file>.+?)\((?P<line>\d+)\): (?:catastrophic )?error:? *(?P<text>.*)$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Cubin:
    """One compiled source."""

    source: str
    arch: str
    """`sm_90`, `sm_90a`."""
    code: bytes
    functions: Mapping[str, FunctionFacts]
    log: str
    """What ptxas said, warnings of lost performance included."""
    digest: str
    """First 12 hex digits of the code's SHA-256: which machine code a time belongs to."""


class _Seal(msgspec.Struct, frozen=True):
    """The first line of a kept CUBIN."""

    sha256: str
    """Of the code that follows."""
    log: str


_seals = msgspec.json.Decoder(_Seal)


@dataclass(frozen=True, slots=True)
class Toolchain:
    """NVRTC as found here, and the folders of CUDA's own headers."""

    version: str
    headers: Headers
    options: tuple[str, ...] = OPTIONS

    @property
    def mismatch(self) -> str:
        """Return a sentence if a header that fails to compile is not of NVRTC's version; else empty."""
        same = cuda_headers.named(self.headers.version) == self.version
        return "" if same else f" (NVRTC is {self.version}, CUDA's headers are {self.headers})"


def arch_of(text: str, device_arch: str) -> str | None:
    """Target for this source on a device of `device_arch` (`90`), or None where it can't run.

    A source says `// arch: 90` for a lowest compute capability, `// arch: 90a` for one whose
    instructions exist on that capability alone; without the line it runs from sm_80 up.
    """
    found = _ARCH_LINE.search(text)
    needed = found.group(1) if found else LOWEST_ARCH
    if needed.endswith("a"):
        return f"sm_{needed}" if device_arch == needed[:-1] else None
    return f"sm_{device_arch}" if int(device_arch) >= int(needed) else None


@functools.cache
def toolchain(extra: str = "cuda13") -> Toolchain:
    """Raise Unavailable without NVRTC or CUDA's headers, with the command that adds `extra`."""
    try:
        from cuda.bindings import nvrtc
    except ImportError:
        raise Unavailable(f"cuda-bindings is not installed; {install_hints.extra(extra)}.") from None
    try:
        _, major, minor = nvrtc.nvrtcVersion()
    except Exception as error:
        raise Unavailable(
            f"NVRTC can't be loaded ({first_line(error)}); {install_hints.extra(extra)}."
        ) from None
    found = cuda_headers.installed_headers()
    if not found:
        raise Unavailable(
            f"CUDA's headers are not found; {install_hints.extra(extra)}, or set CUDA_PATH to a CUDA toolkit."
        )
    headers = cuda_headers.fitting_headers(found, (major, minor))
    if headers is None:
        there = "; ".join(map(str, found))
        raise Unavailable(
            f"NVRTC is {major}.{minor}, and CUDA's headers here are of another version: {there}. "
            f"{install_hints.extra(extra)}, or set CUDA_PATH to a toolkit of CUDA {major}."
        )
    options = (*OPTIONS, NO_CACHE) if major >= FIRST_WITH_CACHE else OPTIONS
    return Toolchain(f"{major}.{minor}", headers, options)


def compile_source(
    source: Path, name: str, arch: str, kernel_dirs: tuple[Path, ...], macros: tuple[str, ...] = ()
) -> Cubin:
    """Compile `source` for `arch` (`sm_90`), or read it back from the cache.

    `name` is how messages call the file; `kernel_dirs` are the folders whose `include/` is
    searched, first one first. `macros` are defined for a source that mentions them, itself or in a header:
    all others keep their machine code. UsageError names file, line and message of the first error.
    """
    tools = toolchain()
    text = read_text(source)
    folders = (source.parent, *(folder / "include" for folder in kernel_dirs))
    texts = (text, *(read_text(header) for header in _own_headers(text, folders)))
    defined = tuple(macro for macro in macros if any(macro in each for each in texts))
    key = _key(texts, arch, tools, defined)
    kept = _read_cache(key)
    if kept is None:
        code, log = _nvrtc(text, name, arch, tools, folders, defined)
        _write_cache(key, code, log)
        kept = code, log, read_cubin(code)
    code, log, facts = kept
    return Cubin(name, arch, code, ptxas_facts(facts, log), log, hashlib.sha256(code).hexdigest()[:12])


def read_text(source: Path) -> str:
    """A source's text. UsageError when it can't be read."""
    return read_input_text(source, "kernel source", MOST_SOURCE_BYTES)


def _nvrtc(
    text: str, name: str, arch: str, tools: Toolchain, folders: tuple[Path, ...], macros: tuple[str, ...]
) -> tuple[bytes, str]:
    from cuda.bindings import nvrtc

    searched = (*folders, *tools.headers.folders)
    options = (
        f"--gpu-architecture={arch}",
        *tools.options,
        *(f"--include-path={folder}" for folder in searched),
        *(f"--define-macro={macro}" for macro in macros),
    )
    program = _checked(nvrtc.nvrtcCreateProgram(text.encode(), name.encode(), 0, [], []))
    try:
        encoded = [option.encode() for option in options]
        (outcome,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
        log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).decode(errors="replace")
        log = log.replace("\0", "").strip()
        if outcome != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise _compile_error(name, arch, log or str(outcome), tools)
        return _text(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program), log
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _text(size_of: Callable[[Any], Any], read: Callable[[Any, Any], Any], program: Any) -> bytes:
    """NVRTC writes into the buffer it is given.

    Never a bytes object: of one byte, as an empty log is, Python keeps a single one for all, and a
    zero written into `b" "` is a zero in every other module's space.
    """
    buffer = bytearray(int(_checked(size_of(program))))
    _checked(read(program, buffer))
    return bytes(buffer)


def _checked(result: Any) -> Any:
    """The value of a cuda-bindings NVRTC call, whose first element is its status."""
    if result[0].value != 0:
        raise UsageError(f"NVRTC refused: {result[0].name}.")
    return result[1] if len(result) == 2 else None


def _compile_error(name: str, arch: str, log: str, tools: Toolchain) -> CompileFailed:
    found = _NVRTC_ERROR.search(log)
    if found is None:
        return CompileFailed(name, None, log[:400], arch)
    where, line, text = found["file"], found["line"], found["text"]
    of_cuda = any(Path(where).is_relative_to(folder) for folder in tools.headers.folders)
    cause = tools.mismatch if of_cuda else ""
    return CompileFailed(where, int(line), f"{text}{cause}", arch)


def _key(texts: tuple[str, ...], arch: str, tools: Toolchain, macros: tuple[str, ...]) -> str:
    text, *headers = texts
    parts = [text, arch, tools.version, *tools.options, str(tools.headers), *map(str, tools.headers.folders)]
    parts += [*headers, *macros]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part.encode())
    return digest.hexdigest()


def _own_headers(text: str, folders: tuple[Path, ...]) -> Iterator[Path]:
    """Every header below `folders` that the text includes in quotes, directly or through another."""
    seen: set[Path] = set()
    pending = [text]
    while pending:
        for name in _INCLUDE_LINE.findall(pending.pop()):
            path = next((folder / name for folder in folders if (folder / name).is_file()), None)
            if path is not None and path not in seen:
                seen.add(path)
                pending.append(read_text(path))
                yield path


def _read_cache(key: str) -> tuple[bytes, str, Mapping[str, FunctionFacts]] | None:
    """Code, log and what the code says of itself, or None: not there, or broken and to be built again."""
    try:
        content = read_regular(cache_dir("cubin") / key, MOST_CUBIN_BYTES)
        header, _, code = content.removeprefix(_CACHE_MAGIC).partition(b"\n")
        seal = decode_json(_seals, header)
        whole = content.startswith(_CACHE_MAGIC) and seal.sha256 == hashlib.sha256(code).hexdigest()
        return (code, seal.log, read_cubin(code)) if whole else None
    except (OSError, BrokenJson, UsageError):
        return None


def _write_cache(key: str, code: bytes, log: str) -> None:
    header = msgspec.json.encode(_Seal(hashlib.sha256(code).hexdigest(), log))
    keep(cache_dir("cubin") / key, _CACHE_MAGIC + header + b"\n" + code)
