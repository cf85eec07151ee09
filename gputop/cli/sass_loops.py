"""What the main loops of a plan's kernels issue: compiled and disassembled here, no device is asked."""

from __future__ import annotations

from collections.abc import Iterator

from gputop.backends.cuda.bind import plan_launches
from gputop.backends.cuda.compiler.issue_model import issue_model
from gputop.backends.cuda.compiler.nvrtc import arch_of, compile_source, read_text, toolchain
from gputop.backends.cuda.compiler.sass import TENSOR, disassemble, main_loop
from gputop.backends.cuda.compiler.sources import Sources
from gputop.plan.types import PlanRequest, Workload
from gputop.planner.resolver import Resolver, plan_dims
from gputop.util.errors import UsageError

ARCH = "90"
"""Compute capability that is compiled for."""
SHOWN = 8
"""Opcodes of a loop that are named, the most frequent ones."""
TITLES = (
    "entry",
    "sites",
    f"instructions (sm_{ARCH})",
    "tensor",
    "FFMA",
    "cycles of a warp alone",
    "waits for memory",
    "most of them",
)


def rows(catalog: Resolver, workload: Workload, request: PlanRequest) -> Iterator[tuple[str, ...]]:
    """Return a line a kernel, in pass order. Raise Unavailable without a tool, UsageError for a framework."""
    plan = catalog.on(f"sm_{ARCH}").resolve(request, workload.dims, "cuda")
    if plan.peer:
        raise UsageError(f"{plan.rung} is a framework's own pass: no kernel of it is ours.")
    sites: dict[tuple[str, str], dict[str, None]] = {}
    for step in catalog.steps(plan, plan_dims(workload, plan)):
        for site, launch in plan_launches((step,), plan, plan_dims(workload, plan)):
            if not launch.library:
                sites.setdefault((launch.source or step.kernel.source, launch.entry), {})[site] = None
    # Asked first, so that what is missing is had by the extra that is without a device's libraries.
    toolchain("compile")
    sources = Sources.before_ours(catalog.kernels_dir, workload.dims.activation)
    for (source, entry), served in sites.items():
        yield entry, " ".join(served), *_cells(sources, source, entry)


def _cells(sources: Sources, source: str, entry: str) -> tuple[str, ...]:
    path = sources.find(source)
    arch = arch_of(read_text(path), ARCH)
    cubin = compile_source(path, source, arch, sources.folders, sources.macros) if arch else None
    loop = main_loop(disassemble(cubin, entry)) if cubin else None
    if cubin is None or loop is None:
        return ("",) * (len(TITLES) - 3) + ("no loop of multiply-adds",)
    alone = issue_model(cubin, entry, loop)
    counts = loop.instructions, loop.count(TENSOR.pattern), loop.count("FFMA"), alone.cycles, alone.waits
    most = sorted(loop.mix.items(), key=lambda item: -item[1])[:SHOWN]
    return *map(str, counts), ", ".join(f"{count} {opcode}" for opcode, count in most)
