"""Find contradictions in a recording: within a line, and between a line and those before it.

Each function yields one half-sentence per contradiction. A real run never produces one, so a recording that
has one was edited or mixed from two, and none of it should be shown.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from datetime import datetime
from functools import cache
from operator import attrgetter
from types import UnionType
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from gputop.model.workloads import check_sizes, label
from gputop.plan.types import Verdict
from gputop.results import ceiling_checks
from gputop.results.ladder import Ladder, LadderEntry
from gputop.results.recorded_plan import RecordedPlan, plan_of
from gputop.results.records import (
    SCHEMA_PHASES,
    TOTAL_ROWS,
    Comparison,
    Delta,
    DeviceFacts,
    Gate,
    PlanResult,
    Row,
    Window,
)
from gputop.util.errors import UsageError
from gputop.util.interval import Interval

if TYPE_CHECKING:
    from gputop.results.recording import Header

SIGNED = frozenset(
    {
        *("delta_s", "delta_lo_s", "delta_hi_s"),
        *("saved_s", "saved_lo_s", "saved_hi_s", "saved_first_s", "saved_first_lo_s", "saved_first_hi_s"),
        *("unexplained_s", "logit0", "logit1", "temperature_c"),
    }
)
"""Fields that may be negative; no other figure of a record may."""
MOST = 1e24
"""No figure of a pass is larger, in whatever unit. The ends of a ratio's interval may lie anywhere."""
LARGEST = sys.float_info.max
FAR = 2.0
"""How far the ratio of two medians may be from that of the pairs, where these are close enough to decide."""
CLOSE = 1e-6
"""Relative difference between two figures that are one: what adding floats in another order makes."""


def header_faults(header: Header) -> Iterator[str]:
    """Yield contradictions of the first line: device, workload and rungs."""
    dims = header.workload.dims
    try:
        check_sizes(dims, "workload")
    except UsageError as error:
        yield str(error).rstrip(".")
    if dims.batch < 1:
        yield f"workload: batch must be at least 1, got {dims.batch}"
    if header.workload.seed < 0:
        yield f"workload: seed must be at least 0, got {header.workload.seed}"
    yield from _figures("device", header.device)
    yield from ceiling_checks.faults(header.ceilings)
    yield from _times(header.time_utc, header.ceilings.time_utc)
    yield from _twice("rung", [rung.id for rung in header.rungs])
    before = {rung.id: rung.before for rung in header.rungs}
    if header.default_rung not in before:
        yield f"it opens on {header.default_rung!r}, which is no rung of it"
    for rung in header.rungs:
        below, path = rung.before, {rung.id}
        while below is not None and below not in path:
            path.add(below)
            below = before.get(below)
        if below is not None:
            yield f"rung {rung.id!r} builds on itself"


def view_faults(view: RecordedPlan, header: Header) -> Iterator[str]:
    """A plan as it resolved: each toggle and site is there once, and can be read."""
    try:
        asked = plan_of(view, header.device.backend)
    except UsageError as error:
        yield str(error).rstrip(".")
        return
    if asked.rung != view.rung or view.rung not in {rung.id for rung in header.rungs}:
        yield f"plan {view.word!r} is of {view.rung!r}, which it does not begin with or which is no rung"
    if view.batch < 1:
        yield f"plan {view.word!r} has a batch of {view.batch}"
    yield from _figures(f"plan {view.word!r}", view)
    yield from _twice("toggle", [toggle.name for toggle in view.toggles])
    yield from _twice("site", [site.site for site in view.sites])
    for toggle in view.toggles:
        yield from _twice(f"a refused value of {toggle.name}", [value for value, _ in toggle.refused])


def gate_faults(gate: Gate) -> Iterator[str]:
    """PASS beside an error that is not allowed."""
    yield from _figures("gate", gate)
    for check in gate.checks:
        yield from _figures(f"check of {check.site}", check)
    if not gate.ok:
        return
    if gate.pass_error is None or gate.pass_error > gate.tolerance:
        yield f"gate {gate.status} with an error of {_figure(gate.pass_error)}, allowed {gate.tolerance:g}"
    for check in gate.checks:
        if not check.ok:
            error = f"an error of {_figure(check.error)} at {check.site}, allowed {check.tolerance:g}"
            yield f"gate {gate.status} with {error}"


def window_faults(window: Window, header: Header, views: Mapping[str, RecordedPlan]) -> Iterator[str]:
    """One window; `views`: the plans of the lines before it, by their word."""
    yield from _occasion_faults(window, header)
    yield from _figures("window", window)
    yield from _figures("health", window.health)
    roles = Counter(lane.role for lane in window.lanes)
    if roles["current"] != 1 or roles["pinned"] > 1:
        yield f"it has {roles['current']} current plans and {roles['pinned']} pinned ones"
        return
    for lane in window.lanes:
        if lane.plan not in views:
            yield f"no line before it tells of plan {lane.plan!r}"
        else:
            yield from _lane_faults(lane, window, views[lane.plan], header.workload.dims.seq)
    if window.comparison is not None:
        yield from _comparison_faults(window.comparison, window)


def ladder_faults(ladder: Ladder, header: Header) -> Iterator[str]:
    """Rungs of one window, or one rung at several batches."""
    yield from _occasion_faults(ladder, header)
    if ladder.health is not None:
        yield from _figures("health", ladder.health)
    if not ladder.entries:
        yield "it has no entries"
    yield from _twice("rung", [entry.rung for entry in ladder.entries])
    earlier: set[str] = set()
    for entry in ladder.entries:
        yield from (f"{entry.rung}: {fault}" for fault in _entry_faults(entry, earlier))
        earlier.add(entry.rung)


def _occasion_faults(measured: Window | Ladder, header: Header) -> Iterator[str]:
    """Yield contradictions in place and device: a recording is of one device and one workload."""
    there, here = _identity(header.device), _identity(measured.device)
    if there != here:
        yield f"it is of another device, {' '.join(here)}, than the recording, {' '.join(there)}"
    if measured.workload not in (label(header.workload), header.workload.name):
        # Before models had fingerprints, the name was all.
        yield f"it is of workload {measured.workload!r}, the recording of {label(header.workload)!r}"
    yield from _figures("device", measured.device)
    yield from _times(measured.time_utc)


def _identity(device: DeviceFacts) -> tuple[str, ...]:
    return device.backend, device.name, device.uuid or ""


def _lane_faults(lane: PlanResult, window: Window, view: RecordedPlan, seq: int) -> Iterator[str]:
    name = f"plan {lane.plan!r}"
    if lane.rung != view.rung:
        yield f"{name} is of rung {view.rung!r} and of {lane.rung!r}"
    yield from gate_faults(lane.gate)
    yield from _figures(name, lane)
    for choice in lane.tuned:
        yield from _figures(f"trials of {choice.operation}", choice)
    if not lane.gate.ok and (lane.rows or lane.device_s is not None or lane.wall_s is not None):
        yield f"{name} has times, and its gate is {lane.gate.status}"
    yield from _twice("phase", [row.phase for row in lane.rows])
    kernels = {site.site: site.kernel for site in view.sites}
    for row in lane.rows:
        shared = (
            ("schema", row.schema, SCHEMA_PHASES),
            ("plan", row.plan, lane.plan),
            ("rung", row.rung, lane.rung),
            ("batch", row.batch, view.batch),
            ("seq", row.seq, seq),
            ("kernel", row.kernel, kernels.get(row.phase, row.kernel)),
            ("gate", row.gate, lane.gate.status),
            ("gate_error", row.gate_error, lane.gate.pass_error),
            ("device", row.device, window.device.name),
            ("driver", row.driver, window.device.driver),
            ("backend", row.backend, window.device.backend),
            ("workload", row.workload, window.workload),
            ("window", row.window, window.number),
            ("time_utc", row.time_utc, window.time_utc),
        )
        for key, own, expected in shared:
            if own != expected:
                yield f"row {row.phase} of {name} has {key} {own!r} and not {expected!r}"
        yield from _row_faults(row)
    yield from _total_faults(lane)


def _total_faults(lane: PlanResult) -> Iterator[str]:
    """Totals that are not those of their parts."""
    rows = {row.phase: row for row in lane.rows}
    for total, whole_s in (("device", lane.device_s), ("wall", lane.wall_s)):
        if total in rows and not _agree(rows[total].time_s, whole_s):
            row_s = _figure(rows[total].time_s)
            yield f"plan {lane.plan!r} takes {_figure(whole_s)} s, and by its row {total} {row_s} s"
    phases = [row for row in lane.rows if row.phase not in TOTAL_ROWS]
    for total, key in (("sum", "time_s"), ("gaps", "gap_s")):
        parts = [getattr(row, key) for row in phases]
        whole_s = rows[total].time_s if total in rows else None
        if whole_s is not None and None not in parts and not _agree(whole_s, math.fsum(parts)):
            yield f"the phases of plan {lane.plan!r} do not add up to its row {total}"


def _row_faults(row: Row) -> Iterator[str]:
    name = f"row {row.phase}"
    yield from _figures(name, row, {"time_s"} if row.phase == "residual" else ())
    yield from _direction(name, row.verdict, Interval(row.ratio), ())
    for key in ("occupancy_theoretical", "occupancy_achieved"):
        if (getattr(row, key) or 0.0) > 1 + CLOSE:
            yield f"{name}: {key} is {_figure(getattr(row, key))}, of all warps"
    if row.tokens_per_s is not None and row.phase in ("device", "wall"):
        tokens = row.batch * row.seq
        if not row.time_s or not _agree(row.tokens_per_s, tokens / row.time_s):
            yield f"{name}: {row.tokens_per_s:g} tokens a second are not {tokens} in {_figure(row.time_s)} s"


def _comparison_faults(comparison: Comparison, window: Window) -> Iterator[str]:
    plans = {lane.role: lane.plan for lane in window.lanes if lane.gate.ok}
    if (comparison.plan_a, comparison.plan_b) != (plans.get("pinned"), plans.get("current")):
        yield f"it compares {comparison.plan_a!r} and {comparison.plan_b!r}, which it did not time"
    if comparison.windows < 1:
        yield f"it compares {comparison.windows} windows"
    for deltas in (comparison.deltas, comparison.sites):
        yield from _twice("difference of", [delta.phase for delta in deltas])
        for delta in deltas:
            yield from _delta_faults(delta)


def _delta_faults(delta: Delta) -> Iterator[str]:
    name = f"difference of {delta.phase}"
    yield from _figures(name, delta)
    yield from _interval(name, delta.ratio_interval)
    yield from _interval(name, delta.delta_interval_s)
    yield from _direction(name, delta.verdict, delta.ratio_interval, (delta.aa_floor,))
    if delta.verdict in ("FASTER", "SLOWER") and delta.ratio and delta.a_s and delta.b_s:
        by_times = delta.a_s / delta.b_s
        if not delta.ratio / FAR < by_times < delta.ratio * FAR:
            yield f"{name}: a ratio of {delta.ratio:g} beside times of which it is {by_times:g}"


def _entry_faults(entry: LadderEntry, earlier: set[str]) -> Iterator[str]:
    yield from gate_faults(entry.gate)
    yield from _figures("entry", entry)
    if entry.breakdown is not None:
        yield from _figures("its breakdown", entry.breakdown)
    for choice in entry.tuned:
        yield from _figures(f"trials of {choice.operation}", choice)
    if not entry.gate.ok and (entry.device_s is not None or entry.wall_s is not None):
        yield f"it has times, and its gate is {entry.gate.status}"
    if entry.files and len(entry.files) != len(entry.kernels):
        yield f"it has {len(entry.kernels)} kernels and {len(entry.files)} files"
    if entry.batch is not None and entry.batch < 1:
        yield f"it has a batch of {entry.batch}"
    if entry.before is not None and entry.before not in earlier:
        yield f"it is against {entry.before!r}, which does not stand before it"
    before = entry.ratio_before_interval
    yield from _interval("against the rung before", before)
    yield from _interval("against the first", entry.ratio_first_interval)
    yield from _interval("predicted", entry.predicted_interval)
    yield from _interval("saved", entry.saved_interval_s)
    floors = () if entry.aa_floor is None else (entry.aa_floor,)
    yield from _direction("against the rung before", entry.verdict, before, floors)
    if entry.foretold is not None:
        yield from _figures("its first prediction", entry.foretold)
        yield from _interval("first predicted", entry.foretold.interval)


def _direction(name: str, verdict: str | None, found: Interval, floors: Iterable[float]) -> Iterator[str]:
    """A verdict that its own ratio, or an end of its interval, speaks against."""
    if not verdict:
        return
    if verdict not in get_args(Verdict):
        yield f"{name}: {verdict!r} is no verdict"
        return
    known = [ratio for ratio in (found.lo, found.value, found.hi) if ratio is not None]
    if verdict in ("FASTER", "SLOWER") and not known:
        yield f"{name}: {verdict} without a ratio"
    for ratio in known:
        if ratio <= 0:
            yield f"{name}: a ratio of {ratio:g}"
        elif (verdict == "FASTER" and ratio <= 1) or (verdict == "SLOWER" and ratio >= 1):
            yield f"{name}: {verdict} beside a ratio of {ratio:g}"
        elif verdict == "SAME" and any(abs(math.log(ratio)) > floor + CLOSE for floor in floors):
            yield f"{name}: SAME beside a ratio of {ratio:g}, by which copies of one plan do not differ"


def _interval(name: str, found: Interval) -> Iterator[str]:
    """A figure outside of its interval. An end that is not known is as far away as can be."""
    known = [end for end in (found.lo, found.value, found.hi) if end is not None]
    if known != sorted(known):
        yield f"{name}: {_figure(found.value)} is not within [{_figure(found.lo)}, {_figure(found.hi)}]"


def _figures(name: str, record: Any, also_signed: Iterable[str] = ()) -> Iterator[str]:
    """Figures that can't be: below 0, or beyond all measure."""
    names, values_of = _numbers(record.__class__)
    for key, value in zip(names, values_of(record), strict=True):
        if value is None or 0 <= value <= MOST:
            continue
        signed = key in SIGNED or key in also_signed
        if not (key.startswith("ratio") and value > 0) and not (signed and abs(value) <= MOST):
            yield f"{name}: {key} is {_figure(value)}"


@cache
def _numbers(kind: type) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
    """The fields of a record that hold a number, and what reads them all."""
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind) if {int, float} & set(_options(hints[field.name]))]
    # Twice the last one: of a single name it would read no tuple.
    return (*names, names[-1]), attrgetter(*names, names[-1])


def _options(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if isinstance(hint, UnionType) else (hint,)


def _twice(what: str, names: Iterable[str]) -> Iterator[str]:
    yield from (f"{what} {name!r} stands {n} times" for name, n in Counter(names).items() if n > 1)


def _times(*times_utc: str) -> Iterator[str]:
    for time_utc in times_utc:
        try:
            datetime.fromisoformat(time_utc)
        except ValueError:
            yield f"{time_utc!r} is no time"


def _agree(a: float | None, b: float | None) -> bool:
    return a == b if a is None or b is None else math.isclose(a, b, rel_tol=CLOSE, abs_tol=0.0)


def _figure(value: float | None) -> str:
    if value is None:
        return "unknown"
    # A whole number may have more digits than a float, or than Python writes.
    return f"{value:g}" if abs(value) < LARGEST else "beyond all measure"
