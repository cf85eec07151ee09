"""The launches of a pass as C++ lines, equal layers as one loop, and as a table for the file's header."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from gputop.backends.cuda.bind import step_launches
from gputop.emission.arguments import LAYER, Place, expression
from gputop.emission.cpp_text import WIDTH, argument_list, identifier
from gputop.emission.kernel_sources import KernelSources, namespace
from gputop.phases import phases
from gputop.plan.types import Dims, Launch, Plan, Step

LONGEST_TITLE = 24
INDENT = "    "
CODE_WIDTH = WIDTH - 2 * len(INDENT)
"""What a statement in a loop in a function has."""
LIBRARY_CALLS = {
    ("cublas", "gemm"): "cublas_gemm",
    ("cublaslt", "gemm"): "cublaslt_gemm",
    ("cublaslt", "gemm_best"): "cublaslt_gemm",
}
"""(library, operation) of a launch -> the function of templates/<library>.cu that does it."""


@dataclass(frozen=True, slots=True)
class Flag:
    """What a launch may ask of the scheduler, beside its geometry."""

    name: str
    """In templates/launch.cu."""
    word: str
    """In the header's table."""
    wanted: Callable[[Launch, Plan], bool]


FLAGS = (
    Flag("COOPERATIVE", "cooperative", lambda launch, plan: launch.cooperative),
    Flag("DEPENDENT", "dependent", lambda launch, plan: launch.pdl and plan.pdl),
    Flag("MOST_SMEM", "most shared memory", lambda launch, plan: plan.carveout == "shared"),
)


@dataclass(frozen=True, slots=True)
class StepLaunches:
    """One step of the pass with what it launches."""

    step: Step
    launches: tuple[Launch, ...]
    layer: int | None
    """None for a step that stands outside the layers."""

    @property
    def title(self) -> str:
        """The step's site, or how many tasks it has if the site is long."""
        site = self.step.site
        return site if len(site) <= LONGEST_TITLE else f"{len(self.step.tasks)} tasks"


def pass_launches(steps: Iterable[Step], plan: Plan, dims: Dims) -> tuple[StepLaunches, ...]:
    """Every step with its launches."""
    in_layers = {phase.name for phase in phases() if phase.place == "layer"}
    return tuple(
        StepLaunches(
            step,
            step_launches(step, plan, dims),
            step.tasks[0].layer if all(task.site.phase in in_layers for task in step.tasks) else None,
        )
        for step in steps
    )


def workspace_names(launches: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """(site, name) -> variable: the name alone if one site only has it, else with the site before it."""
    keys = tuple(launches)
    often = [name for _, name in keys]
    return {
        (site, name): identifier(name) if often.count(name) == 1 else f"{identifier(site)}_{identifier(name)}"
        for site, name in keys
    }


def pass_lines(
    steps: Iterable[StepLaunches],
    plan: Plan,
    sources: KernelSources,
    workspaces: Mapping[tuple[str, str], str],
) -> list[str]:
    """The function that enqueues a pass."""
    lines = ["// The pass: every launch, in order.", "void enqueue_pass() {"]
    for first, count, body in _runs(_blocks(steps, plan, sources, workspaces)):
        if first is None or count == 1:
            lines += (INDENT + line for line in _of_layer(body, first or 0))
            continue
        lines.append(f"{INDENT}for (int {LAYER} = {first}; {LAYER} < {first + count}; ++{LAYER}) {{")
        lines += (2 * INDENT + line for line in body)
        lines.append(f"{INDENT}}}")
    return [*lines, "}"]


def launch_table(steps: Iterable[StepLaunches], plan: Plan) -> list[str]:
    """A line for each different launch of a site: how often, which kernel, which geometry."""
    counts: dict[tuple[str, ...], int] = {}
    for entry in steps:
        for launch in entry.launches:
            row = _row(entry, launch, plan)
            counts[row] = counts.get(row, 0) + 1
    heads = ("site", "launches", "kernel", "grid", "block", "shared", "with")
    rows = [heads, *((row[0], str(count), *row[1:]) for row, count in counts.items())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _row(entry: StepLaunches, launch: Launch, plan: Plan) -> tuple[str, ...]:
    if launch.library:
        return entry.title, f"{launch.library} {launch.entry}", "", "", "", ""
    grid = "x".join(map(str, launch.grid)) if any(launch.grid) else "one wave"
    block = "x".join(map(str, launch.block))
    smem = f"{launch.smem_bytes} B" if launch.smem_bytes else ""
    clusters = [f"clusters of {launch.cluster}"] if launch.cluster > 1 else []
    words = [*clusters, *(flag.word for flag in _flags(launch, plan))]
    return entry.title, launch.entry, grid, block, smem, ", ".join(words)


def _flags(launch: Launch, plan: Plan) -> list[Flag]:
    return [flag for flag in FLAGS if flag.wanted(launch, plan)]


def _blocks(
    steps: Iterable[StepLaunches],
    plan: Plan,
    sources: KernelSources,
    workspaces: Mapping[tuple[str, str], str],
) -> Iterator[tuple[int | None, tuple[str, ...]]]:
    """(layer or None, its lines): consecutive steps of one layer together."""
    for layer, group in groupby(steps, key=lambda entry: entry.layer):
        lines: list[str] = []
        for entry in group:
            lines.append(f"// {entry.title}: {entry.step.choice}")
            place = Place(entry.step.site, entry.step.tasks[0].layer, workspaces)
            for launch in entry.launches:
                lines += _launch_lines(entry.step, launch, plan, sources, place)
        yield layer, tuple(lines)


def _runs(
    blocks: Iterable[tuple[int | None, tuple[str, ...]]],
) -> Iterator[tuple[int | None, int, tuple[str, ...]]]:
    """(first layer, how many, lines) of consecutive layers that are alike."""
    for (body, outside), group in groupby(blocks, key=lambda block: (block[1], block[0] is None)):
        layers = [layer for layer, _ in group]
        yield None if outside else layers[0], len(layers), body


def _launch_lines(step: Step, launch: Launch, plan: Plan, sources: KernelSources, place: Place) -> list[str]:
    arguments = [expression(arg, place) for arg in launch.args]
    if launch.library:
        call = LIBRARY_CALLS[launch.library, launch.entry]
        return argument_list(f"{call}(GemmArgs{{", arguments, "});", CODE_WIDTH)
    source = launch.source or step.kernel.source
    kernel, shape = f"{namespace(source)}::{launch.entry}", _shape(launch, plan)
    head = [f"launch({kernel}, {shape},"]
    if len(head[0]) > CODE_WIDTH:
        head = [f"launch({kernel},", f"       {shape},"]
    struct = sources.parameter(source, launch.entry)
    return [*head, *argument_list(f"       {struct}{{", arguments, "});", CODE_WIDTH)]


def _shape(launch: Launch, plan: Plan) -> str:
    grid, block = (", ".join(map(str, size)) for size in (launch.grid, launch.block))
    flags = " | ".join(flag.name for flag in _flags(launch, plan)) or "PLAIN"
    extras = [str(launch.smem_bytes), str(launch.cluster), flags]
    for extra, default in zip(reversed(tuple(extras)), ("PLAIN", "1", "0"), strict=True):
        if extra != default:
            break
        extras.pop()
    return f"Shape{{{', '.join((f'{{{grid}}}', f'{{{block}}}', *extras))}}}"


def _of_layer(lines: Iterable[str], layer: int) -> Iterator[str]:
    """Lines outside a loop: the layer as a number."""
    for line in lines:
        yield re.sub(
            rf"\[{LAYER}(?: ([+-]) (\d+))?\]",
            lambda found: f"[{layer + int((found[1] or '+') + (found[2] or '0'))}]",
            line,
        )
