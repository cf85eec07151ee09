"""What was measured as text for a person: pure functions from results to lines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from gputop.cli.tables.breakdown_lines import tuned_lines
from gputop.cli.tables.text_table import Heading, table
from gputop.cli.terminal import Terminal
from gputop.results.columns import BY_KEY, Column
from gputop.results.file_rows import Record, Value, ceiling_records, compare_records
from gputop.results.host_words import others_words, quota_words, throttled_words
from gputop.results.records import TOTAL_ROWS, Ceilings, Comparison, Gate, PlanResult, Row, Window
from gputop.results.row_figures import binds_words, floor_ranks
from gputop.results.schemas import CEILINGS, COMPARE, Schema
from gputop.util import units
from gputop.util.interval import Interval

PHASE_KEYS = (
    "phase",
    "count",
    "kernel",
    "time_s",
    "floor_s",
    "efficiency",
    "reach_s",
    "reach_efficiency",
    "binds",
    "gate",
)
COMPARE_KEYS = (
    "phase",
    "a_s",
    "b_s",
    "delta_s",
    "delta_lo_s",
    "delta_hi_s",
    "ratio",
    "ratio_lo",
    "ratio_hi",
    "verdict",
)
ASKED_OF_A_GPU = frozenset({"reach_s", "reach_efficiency"})
"""Columns that are left out if no row knows them: on the host there are no launches."""
INTERVAL = ("ratio", "ratio_lo", "ratio_hi")
ENDS = frozenset({"delta_lo_s", "delta_hi_s", "ratio_lo", "ratio_hi"})
"""Columns that are ends of the interval of one paired ratio, in its own unit or in seconds."""
SEPARATOR = " · "
TONES = {"PASS": "good", "PASS pass-only": "good", "FAIL": "bad", "FASTER": "good", "SLOWER": "bad"}


def window_lines(window: Window, terminal: Terminal) -> list[str]:
    """One window of one plan: where it ran, the phase table, the gate, what to do next."""
    lane = window.lane("current")
    if lane is None:
        return [*_header(window, None, terminal), "nothing was measured"]
    return [
        *_header(window, lane, terminal),
        "",
        *_phases(lane, terminal),
        *_gate(lane, terminal),
        *_pace(lane),
        *_closing(window, terminal),
        *tuned_lines(lane.plan, lane.tuned, terminal),
    ]


def comparison_lines(window: Window, comparison: Comparison | None, terminal: Terminal) -> list[str]:
    """Two plans paired: the deltas, both gates, the verdict in words."""
    lines = _header(window, window.lane("current"), terminal)
    if comparison is not None:
        lines += ["", f"a  {comparison.plan_a}", f"b  {comparison.plan_b}", ""]
        lines += records_table(COMPARE, COMPARE_KEYS, compare_records(comparison), terminal)
        lines += footnotes(((delta.phase, delta.status) for delta in comparison.deltas), terminal)
    lines.append("")
    for name, role in (("a", "pinned"), ("b", "current")):
        lane = window.lane(role)
        if lane is not None:
            lines += [f"{name}  " + line for line in (*_gate(lane, terminal), *_pace(lane))]
    return lines + _closing(window, terminal)


def copies_line(comparison: Comparison) -> str:
    """Return how far a plan and its copy may differ over the whole pass.

    That is the larger of the A/A floor and the farther end of the interval, since copies are not known to
    stay within less.
    """
    delta = comparison.get("device")
    unknown = f"how far copies of {comparison.plan_a} differ is not known"
    if delta is None or not delta.ratio or not delta.ratio_lo or delta.ratio_hi is None:
        return f"{unknown}: {delta.status if delta and delta.status else 'no pair of them was measured'}"
    if delta.ratio_interval.is_uninformative:
        return f"{unknown}: more --seconds or --windows may tell"
    most = max(delta.aa_floor, math.log(delta.ratio_hi), -math.log(delta.ratio_lo))
    differ = units.percent(math.expm1(most))
    return f"copies of {comparison.plan_a} differ by up to {differ}: nothing below that is an effect here"


def ceiling_lines(ceilings: Ceilings, terminal: Terminal) -> list[str]:
    """A device's measured peaks, in units that a person reads."""
    shown = ("value", "sustained", "limit", "library", "datasheet")
    columns = [c for c in CEILINGS.columns if c.key in ("name", *shown, "clock_hz", "how")]
    rows = []
    for record in ceiling_records(ceilings):
        unit = str(record["unit"])
        rows.append([_ceiling_cell(column, record, unit, column.key in shown) for column in columns])
    notes = ((item.name, item.status if item.status != "ok" else "") for item in ceilings.items)
    return [
        joined(
            ceilings.device,
            ceilings.driver and f"driver {ceilings.driver}",
            ceilings.versions,
            ceilings.time_utc,
        ),
        "",
        *_with_strong_heading(table([Heading.of(c) for c in columns], rows, terminal.width), terminal),
        *footnotes(notes, terminal),
        *(terminal.paint(f"  not measured: {what}", "quiet") for what in ceilings.missing),
    ]


def gate_words(gate: Gate) -> str:
    """The outcome with its figures: the first two logits, the error and what is allowed."""
    if not gate.ok:
        return joined(f"gate {gate.status}", gate.where)
    logits = " ".join(f"{value:.6f}" for value in gate.logits[:2])
    error = f"pass error {units.scientific(gate.pass_error)} of {units.scientific(gate.tolerance)} allowed"
    worst = max((c for c in gate.checks if c.error is not None), key=lambda c: c.error or 0.0, default=None)
    phases = "phases not checked"
    if worst is not None:
        of = f"{units.scientific(worst.error)} of {units.scientific(worst.tolerance)}"
        phases = f"worst phase {worst.site} {of}"
    return joined(f"gate {gate.status}", logits and f"logits {logits}", error, phases, _worst_element(gate))


def _worst_element(gate: Gate) -> str:
    """The element nearest to its bound; empty where none were looked at."""
    found = [(check.site, check.element) for check in gate.checks if check.element is not None]
    if not found:
        return ""
    site, element = max(found, key=lambda pair: pair[1].share)
    of = f"{units.scientific(element.error)} of {units.scientific(element.bound)} that rounding explains"
    return f"worst element {site} row {element.row} column {element.column} {of}"


def _header(window: Window, lane: PlanResult | None, terminal: Terminal) -> list[str]:
    device = window.device
    lines = [
        joined(
            device.name,
            device.arch,
            quota_words(device),
            device.driver and f"driver {device.driver}",
            device.versions,
        ),
    ]
    row = lane.rows[0] if lane is not None and lane.rows else None
    if lane is not None:
        sizes = (f"batch {row.batch}", f"seq {row.seq}", row.math) if row else ()
        lines.append(joined(window.workload, *sizes, f"plan {lane.plan}"))
    samples = row and f"{row.samples} sample{'' if row.samples == 1 else 's'}"
    lines.append(
        joined(
            f"window {window.number}",
            f"{window.seconds:.1f} s",
            samples,
            row and row.cache_state and f"cache {row.cache_state}",
            lane and _timers(lane.rows),
            window.stopped_because,
            *_health(window),
        )
    )
    lines += [terminal.paint(note, "quiet") for note in device.notes]
    return [terminal.paint(lines[0], "strong"), *lines[1:]]


def _timers(rows: Sequence[Row]) -> str:
    names = dict.fromkeys(row.timer for row in rows if row.timer)
    return f"timer {', '.join(names)}" if names else ""


def _health(window: Window) -> tuple[str, ...]:
    health = window.health
    return (
        f"clock {units.hertz(health.sm_clock_hz)}" if health.sm_clock_hz else "clock unknown",
        units.watts(health.power_w) if health.power_w else "",
        units.celsius(health.temperature_c) if health.temperature_c else "",
        f"throttled: {', '.join(health.throttle)}" if health.throttle else "",
        f"shared with {', '.join(health.others)}" if health.others else "",
        others_words(health),
        throttled_words(health),
    )


def _phases(lane: PlanResult, terminal: Terminal) -> list[str]:
    """The phase table; nothing where the gate failed, as then there is no time."""
    if not lane.rows:
        return []
    known = {key for key in PHASE_KEYS if any(getattr(row, key) is not None for row in lane.rows)}
    columns = [BY_KEY[key] for key in PHASE_KEYS if key in known or key not in ASKED_OF_A_GPU]
    rows = [[_phase_cell(column, row) for column in columns] for row in lane.rows]
    lines = table([Heading.of(column) for column in columns], rows, terminal.width)
    totals = next((i for i, row in enumerate(lane.rows) if row.phase in TOTAL_ROWS), len(lane.rows))
    rule = "─" * max(len(line) for line in lines)
    lines = [*lines[: totals + 1], rule, *lines[totals + 1 :]]
    notes = footnotes(((row.phase, row.status or "") for row in lane.rows), terminal)
    return [*_with_strong_heading(lines, terminal), *notes]


def _phase_cell(column: Column, row: Row) -> str:
    """Empty where a total has no such figure; a phase shows that it is unknown, or that it ranks nothing."""
    if row.phase in TOTAL_ROWS and getattr(row, column.key) is None:
        return ""
    if column.key == "efficiency" and not floor_ranks(row):
        return units.UNKNOWN
    return binds_words(row) if column.key == "binds" else column.cell(row)


def _ceiling_cell(column: Column, record: Record, unit: str, in_own_unit: bool) -> str:
    value = record[column.key]
    if in_own_unit:
        assert value is None or isinstance(value, float | int)
        return units.si(value, unit)
    return column.show(value)


def _gate(lane: PlanResult, terminal: Terminal) -> list[str]:
    words = gate_words(lane.gate)
    return [terminal.paint(words, TONES.get(lane.gate.status, "strong"))]


def _pace(lane: PlanResult) -> list[str]:
    """Said only where the host sets it: then no kernel of this plan would make it faster as used."""
    if not lane.host_bound:
        return []
    times = (units.seconds(lane.wall_s), units.seconds(lane.device_s), units.seconds(lane.submit_s))
    return ["host-bound: {} as used, {} on the device, {} to submit".format(*times)]


def _closing(window: Window, terminal: Terminal) -> list[str]:
    lines = []
    if window.verdict:
        tone = next((tone for word, tone in TONES.items() if word in window.verdict), "strong")
        lines.append(terminal.paint(window.verdict, tone))
    if window.advice:
        lines.append(window.advice)
    return lines + [terminal.paint(note, "quiet") for note in window.notes]


def records_table(
    schema: Schema, keys: Sequence[str], records: Iterable[Record], terminal: Terminal
) -> list[str]:
    """The named columns of a schema's rows."""
    by_key = {column.key: column for column in schema.columns}
    columns = [by_key[key] for key in keys]
    rows = [[column.show(_told(record, column.key)) for column in columns] for record in records]
    return _with_strong_heading(table([Heading.of(c) for c in columns], rows, terminal.width), terminal)


def _told(record: Record, key: str) -> Value:
    """The value; unknown where it is the end of an interval so wide that it says nothing."""
    figures = [value for name in INTERVAL if isinstance(value := record.get(name), float)]
    untold = key in ENDS and len(figures) == len(INTERVAL) and Interval(*figures).is_uninformative
    return None if untold else record[key]


def _with_strong_heading(lines: Sequence[str], terminal: Terminal) -> list[str]:
    return [terminal.paint(lines[0], "strong"), *lines[1:]]


def footnotes(notes: Iterable[tuple[str, str]], terminal: Terminal) -> list[str]:
    """One line a reason, with all the names that it holds for."""
    names: dict[str, list[str]] = {}
    for name, reason in notes:
        if reason:
            names.setdefault(reason, []).append(name)
    return [terminal.paint(f"  {', '.join(who)}: {reason}", "quiet") for reason, who in names.items()]


def joined(*parts: object) -> str:
    """The parts that are not empty, on one line."""
    return SEPARATOR.join(str(part) for part in parts if part)
