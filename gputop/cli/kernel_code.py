"""The machine code of a site's kernels: compiled and disassembled here, no device is asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gputop.backends.cuda.bind import plan_launches
from gputop.backends.cuda.compiler.nvrtc import Cubin, arch_of, compile_source, read_text
from gputop.backends.cuda.compiler.sass import disassemble, loop_mixes
from gputop.backends.cuda.compiler.sources import Sources
from gputop.perf.gpu_specs import arch_name
from gputop.plan.types import Dims, Kernel, Plan
from gputop.planner.registry import Registry
from gputop.results.kernel_code import KernelCode
from gputop.util.errors import UsageError


@dataclass(frozen=True)
class CodeReader:
    """Compiles kernels for one architecture. Its methods raise Unavailable without NVRTC or nvdisasm."""

    sources: Sources
    arch: str
    """`sm_90`."""

    def of_kernel(self, kernel: Kernel) -> tuple[KernelCode, ...]:
        """Return every entry of a kernel. Raise UsageError for one of a library or the cpu."""
        if not kernel.source:
            what = f"{kernel.library}'s" if kernel.library else "NumPy's"
            raise UsageError(f"{kernel.name} runs {what} code: there is no source of ours to look at.")
        return tuple(self._codes((kernel.source, entry) for entry in kernel.entries))

    def of_site(self, registry: Registry, plan: Plan, dims: Dims, site: str) -> tuple[KernelCode, ...]:
        """Return the entries that one instance of a site launches, in order, library calls left out."""
        step = next((step for step in registry.steps(plan, dims) if step.site == site), None)
        if step is None:
            return ()
        launches = (launch for _, launch in plan_launches((step,), plan, dims) if not launch.library)
        entries = ((launch.source or step.kernel.source, launch.entry) for launch in launches)
        return tuple(self._codes(dict.fromkeys(entries)))

    def _codes(self, entries: Iterable[tuple[str, str]]) -> Iterator[KernelCode]:
        for source, entry in entries:
            path = self.sources.find(source)
            text = read_text(path)
            arch = arch_of(text, arch_name(self.arch).removeprefix("sm_"))
            if arch is None:
                raise UsageError(f"{source} has no code for {self.arch}: its instructions are another GPU's.")
            yield kernel_code(compile_source(path, source, arch, self.sources.folders), entry, text)


def kernel_code(cubin: Cubin, entry: str, text: str) -> KernelCode:
    """Return the facts of one entry; `text` is its source. Raise Unavailable without nvdisasm."""
    facts = cubin.functions[entry]
    instructions = disassemble(cubin, entry)
    line = entry_line(text, entry)
    return KernelCode(
        entry=entry,
        arch=cubin.arch,
        source=f"kernels/{cubin.source}" + (f":{line}" if line else ""),
        cubin=cubin.digest,
        registers=facts.registers,
        smem_bytes=facts.smem_bytes,
        spill_bytes=facts.spill_bytes,
        instructions=len(instructions),
        loops=loop_mixes(instructions),
    )


def entry_line(text: str, entry: str) -> int | None:
    """Return the line (from 1) on which a source first names an entry outside of comments, or None."""
    named = re.compile(rf"\b{re.escape(entry)}\b")
    for number, line in enumerate(text.splitlines(), 1):
        if named.search(line.split("//")[0]):
            return number
    return None
