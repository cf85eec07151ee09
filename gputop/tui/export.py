"""What can be exported, under which name, and the text of each. Pure: nothing is written here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from gputop.perf.verdicts import floor_words
from gputop.results.export import phase_csv, phase_json
from gputop.results.phase_facts import totals_of
from gputop.results.records import Comparison, Delta, Gate, Row, Window
from gputop.tui.palette import VERDICTS
from gputop.tui.state import TimedWindow
from gputop.util.units import (
    UNKNOWN,
    celsius,
    hertz,
    ratio,
    ratio_within,
    scientific,
    seconds,
    signed_seconds,
    watts,
)

Kind = Literal["csv", "json", "md", "svg"]
LONGEST_NAME = 120
"""Of a file, so that a plan with many kernels still has one."""


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """One thing that can be written; its kind is the ending of its file."""

    kind: Kind
    title: str
    gated: bool = True
    """Whether both gates of the plan are run first."""


FORMATS = (
    ExportFormat("csv", "phase table as CSV"),
    ExportFormat("json", "phase table as JSON"),
    ExportFormat("md", "verdict as Markdown"),
    ExportFormat("svg", "this screen as SVG", gated=False),
)
BY_KIND = {item.kind: item for item in FORMATS}


def default_file(shot: TimedWindow, kind: Kind) -> str:
    """Return `gputop-cpu-blas,prune=on-20260102-030405.csv`."""
    lane = shot.window.lane("current")
    plan = re.sub(r"[^\w.,=@:+-]", "_", lane.plan if lane else "plan")[:LONGEST_NAME]
    return f"gputop-{plan}-{datetime.now(UTC):%Y%m%d-%H%M%S}.{kind}"


def export_rows(shot: TimedWindow, gate: Gate) -> tuple[Row, ...]:
    """Return the current plan's rows of a window, with both gates' outcome."""
    lane = shot.window.lane("current")
    rows = lane.rows if lane else ()
    return tuple(replace(row, gate=gate.status, gate_error=gate.pass_error) for row in rows)


def export_text(kind: Kind, shot: TimedWindow, pooled: Comparison | None, gate: Gate) -> str:
    """Return the content of a gated export; `pooled` are the two plans by all of their windows."""
    rows = export_rows(shot, gate)
    if kind == "csv":
        return phase_csv(rows)
    if kind == "json":
        return phase_json(rows)
    return "\n".join(_verdict_lines(shot.window, pooled, gate)) + "\n"


def _verdict_lines(window: Window, pooled: Comparison | None, gate: Gate) -> Iterator[str]:
    lane = window.lane("current")
    plan = lane.plan if lane else "no plan"
    yield f"# {f'{pooled.plan_a} → {pooled.plan_b}' if pooled else plan} on {window.device.name}"
    yield ""
    if pooled is not None:
        yield from _comparison_lines(pooled)
    elif lane is not None:
        yield f"One plan, paired with no other: {seconds(lane.device_s)} on the device."
        yield ""
        yield "| phase | time | floor | binds |"
        yield "| --- | ---: | ---: | --- |"
        totals = totals_of(lane)
        for row in (*(row for row in lane.rows if row.phase not in totals), *totals.values()):
            yield f"| {row.phase} | {seconds(row.time_s)} | {seconds(row.floor_s)} | {row.binds or UNKNOWN} |"
    yield ""
    yield from _conditions(window, plan, gate)


def _comparison_lines(pair: Comparison) -> Iterator[str]:
    device = pair.get("device")
    if device is not None:
        mark = VERDICTS[device.verdict].symbol
        within = ratio_within(device.ratio_interval)
        windows = "one window" if pair.windows == 1 else f"{pair.windows} windows"
        why = f": {device.status}" if device.status else ""
        yield f"{mark} **{device.verdict}** on the device{why}, {within} at 99 %."
        yield f"Pairs of {windows}, {device.samples} rounds, {floor_words(device.aa_floor)}."
        yield ""
    yield f"| | {pair.plan_a} | {pair.plan_b} | difference | ratio | verdict |"
    yield "| --- | ---: | ---: | ---: | ---: | --- |"
    for delta in (*pair.deltas, *pair.sites):
        yield _delta_line(delta)


def _delta_line(delta: Delta) -> str:
    cells = (
        delta.phase,
        seconds(delta.a_s),
        seconds(delta.b_s),
        signed_seconds(delta.delta_s),
        ratio(delta.ratio),
        delta.verdict,
    )
    return f"| {' | '.join(cells)} |"


def _conditions(window: Window, plan: str, gate: Gate) -> Iterator[str]:
    health, device = window.health, window.device
    yield f"- gate of {plan}: {gate.status}, {scientific(gate.pass_error)} of {gate.tolerance:.0e} allowed"
    yield f"- workload {window.workload}, window {window.number}, {window.time_utc}"
    yield (
        f"- clock {hertz(health.sm_clock_hz)}, power {watts(health.power_w)}, "
        f"{celsius(health.temperature_c)}, throttled: {_throttled(health.throttle)}"
    )
    yield f"- driver {device.driver or UNKNOWN}, {device.versions or 'versions unknown'}"
    if device.recording:
        yield f"- {device.recording}: nothing was measured here"


def _throttled(reasons: tuple[str, ...] | None) -> str:
    return UNKNOWN if reasons is None else ", ".join(reasons) or "no"
