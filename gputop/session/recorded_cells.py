"""Gathers times by site and kernel from the shipped recordings: `python -m gputop.session.recorded_cells`.

What was not recorded is not there. Times are of several plans and, between recordings, of several devices of
one kind. A window's factor is what all its cells have in common; it is taken out before cells of several
windows are put together. Fused kernels, megakernels and frameworks have no cells of their own.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, pstdev
from typing import TypeVar

from gputop import __version__
from gputop.plan.plan_string import parse_choice
from gputop.plan.types import Dims, KernelChoice, Plan, PlanRequest
from gputop.planner.registry import divided
from gputop.planner.resolver import Resolver, plan_dims
from gputop.results import recording
from gputop.results.recorded_sweep import FOLDER, RecordedCell, RecordedSweep, SweepSource, encode
from gputop.results.recording import Header, Recording
from gputop.results.records import Row
from gputop.results.search_space import SiteSpace, SpaceCandidate
from gputop.session.cost_model import Machine
from gputop.session.search_space import bound, priced
from gputop.util.output_file import open_target

STARTS: Mapping[str, str] = {"tf32": "algebra", "fp32": "attention"}
"""Math -> the rung whose kernels a search starts from: the last before its table was chosen."""
NORMAL_MAD = 1.4826
"""Standard deviation of a normal distribution over its MAD."""

Cell = tuple[str, KernelChoice]
Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Seen:
    """One kernel at one site in one lane of one window."""

    cell: Cell
    plan: str
    window: tuple[str, int]
    """Recording and number."""
    log_s: float
    log_sd: float
    """Of the median, by the window's samples."""


def gathered(math_name: str) -> RecordedSweep:
    """Return the cells of one math at batch 1 that the shipped recordings hold."""
    kept = [(name, recording.read(path)) for name, path in recording.shipped().items()]
    seen = [one for name, record in kept for one in _seen(name, record, math_name)]
    factors = _window_factors(seen)
    # The model prices by ceilings, of which an older recording has fewer.
    header = max((record.header for _, record in kept), key=lambda one: len(one.ceilings.items))
    start = _start(header, STARTS[math_name])
    by_cell: dict[Cell, list[Seen]] = defaultdict(list)
    for one in seen:
        if one.cell[0] in dict(start.dispatch):
            by_cell[one.cell].append(one)
    recorded = {one.window[0] for found in by_cell.values() for one in found}
    plans = {plan.word: plan for _, record in kept for plan in record.plans}
    return RecordedSweep(
        name=f"h200-{math_name}",
        priced_by=__version__,
        workload=header.workload.name,
        math=math_name,
        start=STARTS[math_name],
        sources=tuple(_source(name, record.header) for name, record in kept if name in recorded),
        window_spread=pstdev(factors.values()),
        cells=tuple(_cell(cell, found, factors) for cell, found in by_cell.items()),
        sites=tuple(_sites(header, start, by_cell, plans)),
    )


def _seen(name: str, record: Recording, math_name: str) -> Iterator[Seen]:
    plans = {plan.word: plan for plan in record.plans}
    for window in record.windows:
        for lane in window.lanes:
            plan = plans[lane.plan]
            sites = {site: choice for site, choice in plan.dispatch}
            if plan.batch != 1 or plan.math != math_name or plan.peer:
                continue
            for row in lane.rows:
                choice = sites.get(row.phase)
                if choice is None or row.time_s is None or row.time_s <= 0 or not _own_row(row, choice):
                    continue
                sd = NORMAL_MAD * (row.time_mad_s or 0.0) / row.time_s / math.sqrt(max(1, row.samples))
                yield Seen((row.phase, choice), plan.word, (name, window.number), math.log(row.time_s), sd)


def _own_row(row: Row, choice: KernelChoice) -> bool:
    """Whether the row is of that kernel at that site alone."""
    return row.kernel is not None and parse_choice(row.kernel) == choice and choice.kernel != "megakernel"


def _window_factors(seen: Sequence[Seen]) -> dict[tuple[str, int], float]:
    """Window -> the logarithm that its cells have in common against those of other windows."""
    typical = _medians(((one.cell, one.plan), one.log_s) for one in seen)
    return _medians((one.window, one.log_s - typical[one.cell, one.plan]) for one in seen)


def _medians(pairs: Iterator[tuple[Key, float]]) -> dict[Key, float]:
    """Key -> median of its values."""
    found: dict[Key, list[float]] = defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return {key: median(values) for key, values in found.items()}


def _cell(cell: Cell, found: Sequence[Seen], factors: Mapping[tuple[str, int], float]) -> RecordedCell:
    by_plan: dict[str, list[float]] = defaultdict(list)
    for one in found:
        by_plan[one.plan].append(one.log_s - factors[one.window])
    deviations = [value - sum(values) / len(values) for values in by_plan.values() for value in values]
    degrees = len(deviations) - len(by_plan)
    squares = sum(value * value for value in deviations)
    within_s = median(one.log_sd for one in found)
    return RecordedCell(
        site=cell[0],
        kernel=str(cell[1]),
        time_s=math.exp(median(median(values) for values in by_plan.values())),
        spread=math.sqrt(squares / degrees) if degrees else within_s,
        windows=len(found),
        plans=tuple(sorted(by_plan)),
    )


def _start(header: Header, rung: str) -> Plan:
    resolver = Resolver.load().on(header.device.arch, header.device.sm_count)
    return resolver.resolve(PlanRequest(rung), header.workload.dims, header.device.backend)


def _sites(
    header: Header, start: Plan, cells: Mapping[Cell, Sequence[Seen]], plans: Mapping[str, Plan]
) -> Iterator[SiteSpace]:
    """The menu: what was recorded at each site, priced in a plan that it was recorded in."""
    resolver = Resolver.load().on(header.device.arch, header.device.sm_count)
    clock_hz = next((item.clock_hz for item in header.ceilings.items if item.clock_hz), None)
    machine = Machine(header.device, header.ceilings, clock_hz)

    def candidate(cell: Cell) -> SpaceCandidate:
        plan = plans[cells[cell][0].plan]
        dims = plan_dims(header.workload, plan)
        task = divided(resolver.site_tasks(plan, dims)[cell[0]], cell[1])
        return priced(resolver, plan, dims, task, cell[1], machine)

    dims: Dims = plan_dims(header.workload, start)
    for site, task in resolver.site_tasks(start, dims).items():
        own = dict(start.dispatch)[site]
        found = [cell for cell in cells if cell[0] == site]
        if (site, own) not in cells:
            continue
        least = bound(resolver, start, dims, divided(task, own), own, machine)
        yield SiteSpace(
            site=site,
            phase=task.site.phase,
            count=task.site.count,
            own=own,
            candidates=tuple(candidate(cell) for cell in found),
            offered=len(found),
            bound_s=least[0],
            bound=least[1],
        )


def _source(name: str, header: Header) -> SweepSource:
    return SweepSource(
        recording=name, time_utc=header.time_utc, version=header.version, device=header.device.name
    )


def main() -> int:
    """Write the sweeps that come with gputop."""
    FOLDER.mkdir(exist_ok=True)
    for math_name in STARTS:
        sweep = gathered(math_name)
        open_target(str(FOLDER / f"{sweep.name}.json")).write(encode(sweep))
        print(f"{sweep.name}: {len(sweep.cells)} cells of {len(sweep.sources)} recordings", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
