"""Results of several devices as one table: each device's own figures, and pooled those of one model.

Devices of one model are pooled as windows of one device are (`meta_analysis.pool`): what differs from device
to device widens the interval. Different models are never pooled.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Generic, TypeVar

from gputop.results.fleet_row import FleetRow
from gputop.results.ladder import Ladder, LadderEntry
from gputop.results.meta_analysis import pool
from gputop.results.records import Ceilings, Comparison, Delta, DeviceFacts

if TYPE_CHECKING:
    from gputop.results.recording import Recording

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Placed(Generic[Result]):
    """A result, and the device of the fleet that it is of."""

    number: int
    """The device's, from 1."""
    host: str
    device: DeviceFacts
    result: Result


def ladder_rows(ladders: Sequence[Placed[Ladder]]) -> tuple[FleetRow, ...]:
    """Each rung on each device; then its gain over the rung before, pooled by model."""
    rows = [_entry_row(placed, entry) for placed in ladders for entry in placed.result.entries]
    for same in _by_model(ladders):
        entries = [entry for placed in same for entry in placed.result.entries]
        for rung in dict.fromkeys(entry.rung for entry in entries):
            rows += _pooled_gain(same, [entry for entry in entries if entry.rung == rung])
    return tuple(rows)


def ceiling_rows(measured: Sequence[Placed[Ceilings]]) -> tuple[FleetRow, ...]:
    """Each ceiling of each device; then the median by model, and how far its devices differ."""
    rows = [
        FleetRow(
            placed.result.time_utc, placed.number, placed.host, placed.device.name, placed.device.driver, 1,
            item.name, value=item.value, unit=item.unit, status=None if item.status == "ok" else item.status,
        )
        for placed in measured
        for item in placed.result.items
    ]  # fmt: skip
    for same in _by_model(measured):
        for name in dict.fromkeys(item.name for placed in same for item in placed.result.items):
            rows += _median_ceiling(same, name)
    return tuple(rows)


def recording_rows(recordings: Sequence[Placed[Recording]]) -> tuple[FleetRow, ...]:
    """Each pair of plans of each recording, its windows as one; then those of one model pooled."""
    rows: list[FleetRow] = []
    for placed in recordings:
        for pair in _pairs(placed.result):
            if (delta := pool(pair).get("device")) is not None:
                names = (pair[0].plan_b, pair[0].plan_a)
                rows.append(_delta_row([placed], _newest_utc([placed]), names, delta, 1))
    for same in _by_model(recordings):
        found: dict[tuple[str, str], list[list[Comparison]]] = {}
        for placed in same:
            for pair in _pairs(placed.result):
                if (delta := pool(pair).get("device")) is not None and delta.ratio_lo is not None:
                    found.setdefault((pair[0].plan_b, pair[0].plan_a), []).append(pair)
        for names, pairs in found.items():
            delta = pool([window for pair in pairs for window in pair]).get("device")
            if len(pairs) > 1 and delta is not None:
                rows.append(_delta_row(same, _newest_utc(same), names, delta, len(pairs)))
    return tuple(rows)


def _newest_utc(recordings: Sequence[Placed[Recording]]) -> str:
    return max(window.time_utc for placed in recordings for window in placed.result.windows)


def _by_model(placed: Sequence[Placed[Result]]) -> Iterator[list[Placed[Result]]]:
    """The devices of each model that has several."""
    found: dict[tuple[str, str], list[Placed[Result]]] = {}
    for one in placed:
        found.setdefault((one.device.backend, one.device.name), []).append(one)
    yield from (same for same in found.values() if len(same) > 1)


def _entry_row(placed: Placed[Ladder], entry: LadderEntry) -> FleetRow:
    return FleetRow(
        placed.result.time_utc,
        placed.number,
        placed.host,
        placed.device.name,
        placed.device.driver,
        1,
        entry.rung,
        before=entry.before,
        value=entry.device_s,
        unit="s",
        ratio=entry.ratio_before,
        ratio_lo=entry.ratio_before_lo,
        ratio_hi=entry.ratio_before_hi,
        verdict=entry.verdict or None,
        gate=entry.gate.status,
        gate_error=entry.gate.pass_error,
        status=entry.gate.where or entry.status or None,
    )


def _pooled_gain(same: Sequence[Placed[Ladder]], entries: Sequence[LadderEntry]) -> Iterator[FleetRow]:
    """Nothing unless two devices or more have a gain with an interval over one and the same rung."""
    first = entries[0]
    known = [entry for entry in entries if entry.before == first.before and entry.ratio_before_lo]
    if first.before is None or len(known) < 2:
        return
    comparison = pool([Comparison(first.before, first.rung, 1, (_gain(entry),)) for entry in known])
    newest_utc = max(placed.result.time_utc for placed in same)
    delta = replace(comparison.deltas[0], b_s=None)
    yield _delta_row(same, newest_utc, (first.rung, first.before), delta, len(known))


def _gain(entry: LadderEntry) -> Delta:
    """A ladder's gain in the form of a comparison's; of its samples a ladder keeps no count."""
    return Delta(
        phase="device",
        a_s=None,
        b_s=entry.device_s,
        delta_s=None,
        delta_lo_s=None,
        delta_hi_s=None,
        ratio=entry.ratio_before,
        ratio_lo=entry.ratio_before_lo,
        ratio_hi=entry.ratio_before_hi,
        samples=1,
        aa_floor=entry.aa_floor or 0.0,
        same_within=entry.same_within,
        verdict="UNRESOLVED",
    )


def _delta_row(
    same: Sequence[Placed[Result]], time_utc: str, names: tuple[str, str], delta: Delta, devices: int
) -> FleetRow:
    """A paired difference: of the one device, or pooled over several. `names`: of b, and of a before it."""
    number, host = (same[0].number, same[0].host) if len(same) == 1 else (None, None)
    return FleetRow(
        time_utc,
        number,
        host,
        same[0].device.name,
        _one_or_none(placed.device.driver for placed in same),
        devices,
        names[0],
        before=names[1],
        value=delta.b_s,
        unit="s",
        ratio=delta.ratio,
        ratio_lo=delta.ratio_lo,
        ratio_hi=delta.ratio_hi,
        verdict=delta.verdict,
        status=delta.status or None,
    )


def _median_ceiling(same: Sequence[Placed[Ceilings]], name: str) -> Iterator[FleetRow]:
    items = [item for placed in same for item in placed.result.items if item.name == name]
    values = [item.value for item in items if item.status == "ok"]
    if len(values) < 2:
        return
    middle = median(values)
    apart = (max(values) - min(values)) / middle if middle else math.nan
    yield FleetRow(
        max(placed.result.time_utc for placed in same), None, None, same[0].device.name,
        _one_or_none(placed.device.driver for placed in same), len(values), name,
        value=middle, unit=items[0].unit, status=f"highest and lowest differ by {100 * apart:.2g} %",
    )  # fmt: skip


def _pairs(recording: Recording) -> Iterator[list[Comparison]]:
    """The comparisons of each pair of plans, window by window."""
    found: dict[tuple[str, str], list[Comparison]] = {}
    for window in recording.windows:
        if (pair := window.comparison) is not None:
            found.setdefault((pair.plan_a, pair.plan_b), []).append(pair)
    yield from found.values()


def _one_or_none(values: Iterable[str | None]) -> str | None:
    """What all have in common; None if they differ."""
    found = set(values)
    return found.pop() if len(found) == 1 else None
