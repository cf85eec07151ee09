"""Today's model of what a recording holds, whatever model the gputop had that made it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from math import prod

from gputop.perf.roofline.peaks import total
from gputop.plan.launch_shape import LaunchFacts, LaunchInfo
from gputop.plan.types import Launch, Step
from gputop.planner.kernel_calls import launches_of
from gputop.planner.resolver import Resolver, plan_dims
from gputop.results.kindred_ceilings import completed
from gputop.results.ladder import Ladder, LadderEntry
from gputop.results.recording import Recording
from gputop.results.records import TOTAL_ROWS, PlanResult, Row, Window
from gputop.session.advice import largest_excess
from gputop.session.cost_model import Machine, modelled_s, shipped_facts, site_models
from gputop.session.timed_site import (
    TimedSite,
    binding_columns,
    model_columns,
    modelled_pass_s,
    pass_binding,
    reach_efficiency,
    shape_tax,
)
from gputop.util.errors import UsageError

MOST_BLOCKS = 1 << 20
"""No device holds more at once."""
FORMER_NOTE = "modelled at "
"""How a row's status begins that held its time against the model of its own day."""


class RecordedModel:
    """Models the lanes of one recording by its ceilings, and by those of its kind that it lacks."""

    def __init__(self, kept: Recording) -> None:
        self._kept = kept
        self._plans = {plan.word: plan for plan in kept.plans}
        device = kept.header.device
        self._catalog = Resolver.load().on(device.arch, device.sm_count)
        self._known: dict[tuple[int, str, str], tuple[TimedSite, ...]] = {}

    @cached_property
    def needed(self) -> bool:
        """Whether the recording was made before rows carried today's terms."""
        rows = (row for window in self._kept.windows for lane in window.lanes for row in lane.rows)
        return all(row.modelled_s is None for row in rows)

    def window(self, window: Window) -> Window:
        """The window with what today's model says of each row and of the largest excess."""
        if not self.needed:
            return window
        lanes = tuple(replace(lane, rows=tuple(self._rows(window, lane))) for lane in window.lanes)
        current = next((lane.rows for lane in lanes if lane.role == "current"), ())
        return replace(window, lanes=lanes, advice=largest_excess(current))

    def ladder(self, ladder: Ladder) -> Ladder:
        """The ladder with what today's model says of each rung, by a window of the same plan."""
        if not self.needed:
            return ladder
        return replace(ladder, entries=tuple(map(self._entry, ladder.entries)))

    def sites(self, window: Window, lane: PlanResult) -> tuple[TimedSite, ...]:
        """Each site of a recorded plan, as it was timed; empty for a framework's pass, and for a plan whose
        sites or kernels are not those of this gputop."""
        key = (window.number, lane.role, lane.plan)
        if key not in self._known:
            try:
                self._known[key] = tuple(self._timed(window, lane))
            except UsageError:
                self._known[key] = ()
        return self._known[key]

    def _timed(self, window: Window, lane: PlanResult) -> Iterator[TimedSite]:
        plan = self._plans[lane.plan]
        dims = plan_dims(self._kept.header.workload, plan)
        asked = {site.name for site in self._catalog.sites(dims, plan.prune, plan.fold)}
        if plan.peer or asked - dict(plan.dispatch).keys():
            return
        rows = {row.phase: row for row in lane.rows if row.phase not in TOTAL_ROWS and row.kernel}
        clock_hz = next((row.sm_clock_hz for row in rows.values() if row.sm_clock_hz), None)
        machine = Machine(window.device, completed(self._kept.header.ceilings), clock_hz)
        steps = self._catalog.steps(plan, dims)
        facts = {
            part.site: _launch_info(part, row, launches_of(step, plan, dims), window.device.arch)
            for step in steps
            for part in step.apart()
            if (row := rows.get(part.site))
        }
        for model in site_models(self._catalog, plan, dims, steps, machine, facts):
            row = rows.get(model.name)
            if row is not None:
                yield TimedSite(model, row.time_s, row.gap_s, row.overlap_s)

    def _rows(self, window: Window, lane: PlanResult) -> Iterator[Row]:
        sites = self.sites(window, lane)
        by_name = {timed.model.name: timed for timed in sites}
        plan = self._plans[lane.plan]
        done: list[Row] = []
        for row in lane.rows:
            timed = by_name.get(row.phase)
            if timed is not None:
                status = _status(row, timed.left.note)
                row = replace(row, **model_columns(timed, plan.math, has_ceilings=True), status=status)
                done.append(row)
            elif row.phase == "device" and sites:
                row = _device_row(row, done, sites)
            yield row

    def _entry(self, entry: LadderEntry) -> LadderEntry:
        for window in self._kept.windows:
            for lane in window.lanes:
                if self._is_of(lane, entry) and (sites := self.sites(window, lane)):
                    binding = pass_binding(sites, lane.device_s)
                    return replace(
                        entry,
                        binds=binding.binds,
                        binds_share=binding.share,
                        shape_tax=shape_tax(sites),
                        model_s=modelled_s(timed.model for timed in sites),
                    )
        return replace(entry, binds=None, binds_share=None, shape_tax=None, model_s=None)

    def _is_of(self, lane: PlanResult, entry: LadderEntry) -> bool:
        """Whether a lane measured the plan of a rung of the ladder."""
        plan = self._plans[lane.plan]
        same = (lane.rung, plan.batch) == (entry.rung, entry.batch or 1)
        return same and tuple(map(str, plan.kernels)) == entry.kernels


def remodelled(kept: Recording) -> Recording:
    """Return a recording with today's terms in all its rows and ladders."""
    model = RecordedModel(kept)
    return replace(
        kept,
        windows=tuple(model.window(window) for window in kept.windows),
        ladder=kept.ladder and model.ladder(kept.ladder),
        batches=kept.batches and model.ladder(kept.batches),
    )


def _device_row(row: Row, sites: Iterable[Row], timed: Iterable[TimedSite]) -> Row:
    rows = list(sites)
    reach_s = total(each.reach_s for each in rows)
    return replace(
        row,
        **binding_columns(pass_binding(timed, row.time_s), has_ceilings=True),
        modelled_s=modelled_pass_s(rows),
        reach_s=reach_s,
        reach_efficiency=reach_efficiency(reach_s, row.time_s, None),
    )


def _status(row: Row, note: str) -> str | None:
    parts = (row.status or "").split("; ")
    return "; ".join([part for part in (*parts, note) if part and not part.startswith(FORMER_NOTE)]) or None


def _launch_info(step: Step, row: Row, launches: Iterable[Launch], arch: str | None) -> LaunchInfo:
    """What the row tells of its launches, and what gputop knows of the kernels."""
    each = tuple(
        facts
        for launch in launches
        for facts in (_library(row) if launch.library else (_own(launch, row, arch),))
    )
    return LaunchInfo(step.site, str(step.choice), row.launches or 0, each=each)


def _own(launch: Launch, row: Row, arch: str | None) -> LaunchFacts:
    facts = shipped_facts(launch, arch)
    if launch.cluster == 1 or not row.waves:
        return facts
    # A row's waves are of its first launch, the only one that has clusters.
    return replace(facts, clustered_blocks=round(min(prod(launch.grid) / row.waves, MOST_BLOCKS)))


def _library(row: Row) -> tuple[LaunchFacts, ...]:
    """The kernels that the row names, of which it has the first one's geometry."""
    grid, block = _extent(row.grid), _extent(row.block)
    names = (row.library_kernel or "").split("; ")
    return tuple(LaunchFacts(name, grid, block, row.registers, row.smem_bytes) for name in names)


def _extent(text: str | None) -> tuple[int, int, int] | None:
    sizes = tuple(int(size) for size in (text or "").split("x") if size.isdigit())
    return (sizes[0], sizes[1], sizes[2]) if len(sizes) == 3 else None
