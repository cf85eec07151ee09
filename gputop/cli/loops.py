"""What the main loops of a plan's kernels issue: compiled and disassembled here, no device is asked."""

from __future__ import annotations

from collections.abc import Iterator

from gputop.backends.cuda.bind import plan_launches
from gputop.backends.cuda.compile import arch_of, compile_source, read_text
from gputop.backends.cuda.sass import TENSOR, Loop, disassemble, main_loop
from gputop.backends.cuda.sources import Sources
from gputop.catalog import Catalog, plan_dims
from gputop.spec import PlanRequest, Workload

ARCH = "90"
"""Compute capability that is compiled for."""
SHOWN = 8
"""Opcodes of a loop that are named, the most frequent ones."""
TITLES = ("entry", "sites", f"instructions (sm_{ARCH})", "tensor", "FFMA", "most of them")


def rows(catalog: Catalog, workload: Workload, request: PlanRequest) -> Iterator[tuple[str, ...]]:
    """A line a kernel of ours, in pass order. NotHere without NVRTC or nvdisasm."""
    plan = catalog.resolve(request, workload.dims, "cuda")
    sites: dict[tuple[str, str], dict[str, None]] = {}
    for step in catalog.steps(plan, plan_dims(workload, plan)):
        for site, launch in plan_launches((step,), plan, plan_dims(workload, plan)):
            if not launch.library:
                sites.setdefault((launch.source or step.kernel.source, launch.entry), {})[site] = None
    sources = Sources.before_ours(catalog.kernels_dir)
    for (source, entry), served in sites.items():
        loop = _loop(sources, source, entry)
        yield entry, " ".join(served), *(_cells(loop) if loop else ("", "", "", "no loop of multiply-adds"))


def _loop(sources: Sources, source: str, entry: str) -> Loop | None:
    path = sources.find(source)
    arch = arch_of(read_text(path, source), ARCH)
    if arch is None:
        return None
    return main_loop(disassemble(compile_source(path, source, arch, sources.folders), entry))


def _cells(loop: Loop) -> tuple[str, ...]:
    most = sorted(loop.mix.items(), key=lambda item: -item[1])[:SHOWN]
    words = ", ".join(f"{count} {opcode}" for opcode, count in most)
    return str(loop.instructions), str(loop.count(TENSOR.pattern)), str(loop.count("FFMA")), words
