"""The phase table of the window on the screen, and below it, always in view, the totals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rich.style import Style
from rich.text import Text

from gputop.results import columns
from gputop.results.records import TOTAL_ROWS, PlanResult, Row
from gputop.tui.format import TimeUnit, efficiency, floor_bar, fraction, time_unit
from gputop.tui.layout import LayoutColumn
from gputop.tui.palette import BAD, EXCESS, EXCESS_MOST, FAINT, GOOD, MUTED, PINNED, TEXT, VERDICTS, term_mark
from gputop.tui.state import State
from gputop.tui.widgets.cached_static import CachedStatic
from gputop.tui.widgets.device_line import gate_text
from gputop.tui.widgets.keyed_table import Cells, KeyedTable
from gputop.util.units import UNKNOWN, ratio, seconds, size_bytes, whole

UNDER_HALF = 0.5
WIDE_HEADING = 60
"""Cells that a heading has for how its plan passed."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a cell needs to know beside its row."""

    unit: TimeUnit
    delta_unit: TimeUnit
    """The same, with decimals for the largest difference."""
    largest_s: float
    """Time of the longest phase: the full width of a bar."""
    widths: Mapping[str, int]
    """Cells of the columns that are shown."""
    worst: str | None
    """The phase with the largest excess over its floor: what the eye should find."""
    stale: bool
    """The rows are of another plan than the one chosen."""

    def is_worst(self, row: Row) -> bool:
        return row.phase == self.worst and not self.stale


Draw = Callable[[Row, Context], Text]


@dataclass(frozen=True, slots=True)
class Drawn:
    """How this table draws a column, if that differs from its record in `gputop.results.columns`."""

    width: int
    draw: Draw
    label: str | None = None
    right: bool = True
    comfort: int = 0
    grows_to: int = 0
    priority: int | None = None


def _plain(text: str, context: Context, color: str = TEXT) -> Text:
    return Text(text, Style(color=FAINT if context.stale or text == UNKNOWN else color))


def _phase(row: Row, context: Context) -> Text:
    return _emphatic(_plain(row.phase, context), row, context)


def _emphatic(cell: Text, row: Row, context: Context) -> Text:
    if context.is_worst(row):
        cell.stylize(Style(bold=True, color=EXCESS_MOST))
    return cell


def _time(row: Row, context: Context) -> Text:
    cell = _emphatic(_plain(context.unit.write(row.time_s), context), row, context)
    if row.status and "unresolved" in row.status:
        return Text.assemble(("~", Style(color=PINNED)), cell)
    return cell


def _floor(row: Row, context: Context) -> Text:
    return _plain(context.unit.write(row.floor_s), context, MUTED)


def _bar(row: Row, context: Context) -> Text:
    if row.phase in TOTAL_ROWS:
        return _total_floor(row, context)
    excess = EXCESS_MOST if context.is_worst(row) else EXCESS
    bar = floor_bar(row.time_s, row.floor_s, context.largest_s, context.widths.get("bar", 0), excess)
    return Text(bar.plain, Style(color=FAINT)) if context.stale else bar


def _total_floor(row: Row, context: Context) -> Text:
    if row.floor_s is None or "floor_s" in context.widths:
        return Text("")
    return _plain(f"≥{context.unit.write(row.floor_s)}", context, MUTED)


def _efficiency(row: Row, context: Context) -> Text:
    value = row.efficiency
    color = MUTED if value is None else PINNED if value > 1 else TEXT if value < UNDER_HALF else GOOD
    return _plain(efficiency(value), context, color)


def _binds(row: Row, context: Context) -> Text:
    if row.binds is None:
        return _plain(UNKNOWN, context)
    mark = term_mark(row.binds)
    return _plain(f"{mark.letter} {row.binds}", context, mark.color)


def _delta(row: Row, context: Context) -> Text:
    if row.delta_s is None:
        return _plain(UNKNOWN, context)
    mark = VERDICTS.get(row.verdict or "")
    symbol = mark.symbol if mark else " "
    return _plain(
        f"{context.delta_unit.signed(row.delta_s)} {symbol}", context, mark.color if mark else MUTED
    )


def _ratio(row: Row, context: Context) -> Text:
    mark = VERDICTS.get(row.verdict or "")
    return _plain(ratio(row.ratio), context, mark.color if mark else MUTED)


def _occupancy(row: Row, context: Context) -> Text:
    return _plain(fraction(row.occupancy_theoretical), context, MUTED)


def _spread(row: Row, context: Context) -> Text:
    return _plain(context.unit.write(row.time_mad_s), context, MUTED)


DRAWN = {
    "phase": Drawn(9, _phase, right=False, grows_to=12),
    "count": Drawn(2, lambda row, context: _plain(whole(row.count), context, MUTED)),
    "kernel": Drawn(
        12,
        lambda row, context: _plain(row.kernel or "", context, MUTED),
        right=False,
        comfort=18,
        grows_to=24,
    ),
    "time_s": Drawn(7, _time),
    "time_mad_s": Drawn(6, _spread),
    "floor_s": Drawn(8, _floor, priority=8),
    "efficiency": Drawn(5, _efficiency, label="eff"),
    "binds": Drawn(9, _binds, right=False),
    "occupancy_theoretical": Drawn(5, _occupancy, label="occup"),
    "delta_s": Drawn(9, _delta),
    "ratio": Drawn(7, _ratio),
}
TEXT_COLUMNS = ("floor_term", "runner_up")
UNIT_LABELS = {"time_s": "time {}", "floor_s": "floor {}", "delta_s": "Δ {}", "time_mad_s": "± {}"}
PER_SEQUENCE = "Δ/seq {}"
"""Label of the differences between plans of two batches: a sequence's, beside the times of a pass."""
BAR_AFTER = "time_s"
BAR = LayoutColumn(
    "bar",
    "█ floor  ░ excess",
    6,
    3,
    short="bar",
    comfort=16,
    grows_to=30,
    doc="The longest phase at full width: solid up to the floor, shaded beyond it",
)


def screen_columns() -> tuple[LayoutColumn, ...]:
    """Every column that `gputop.results.columns` puts on a screen, and the bar, which no file has."""
    made: list[LayoutColumn] = []
    for record in columns.COLUMNS:
        if record.priority is None:
            continue
        drawn = DRAWN.get(record.key)
        made.append(
            LayoutColumn(
                record.key,
                (drawn.label if drawn and drawn.label else record.title),
                drawn.width if drawn else record.width,
                drawn.priority if drawn and drawn.priority is not None else record.priority,
                right=drawn.right if drawn else record.key not in TEXT_COLUMNS,
                comfort=drawn.comfort if drawn else 0,
                grows_to=drawn.grows_to if drawn else 0,
                doc=record.doc,
            )
        )
        if record.key == BAR_AFTER:
            made.append(BAR)
    return tuple(made)


COLUMNS = screen_columns()


def phase_rows(state: State, widths: Mapping[str, int]) -> dict[str, Cells]:
    """Site -> cells, in pass order; empty where the gate failed or nothing was measured."""
    lane = state.lane
    if lane is None:
        return {}
    context = _context(state, lane, widths)
    return {row.phase: _cells(row, context) for row in lane.rows if row.phase not in TOTAL_ROWS}


def total_rows(state: State, widths: Mapping[str, int]) -> dict[str, Cells]:
    """sum, gaps, device, wall and residual; all there from the start, so that nothing jumps."""
    lane = state.lane
    if lane is None or not lane.rows:
        return {name: {"phase": Text(name, Style(color=FAINT))} for name in TOTAL_ROWS}
    context = _context(state, lane, widths)
    rows = {row.phase: row for row in lane.rows}
    return {
        name: _cells(rows[name], context) if name in rows else {"phase": _plain(name, context, MUTED)}
        for name in TOTAL_ROWS
    }


def worst_phase(state: State) -> Row | None:
    """The phase with the largest excess over its floor; one without a floor can't be judged."""
    rows = state.lane.rows if state.lane else ()
    judged = [row for row in rows if row.phase not in TOTAL_ROWS and row.time_s and row.floor_s is not None]
    return max(judged, key=lambda row: (row.time_s or 0.0) - (row.floor_s or 0.0), default=None)


def unit_labels(state: State) -> dict[str, str]:
    """Column -> its label with the unit of the times on the screen."""
    if state.lane is None:
        return {}
    name = lane_unit(state.lane).name
    labels = {key: label.format(name) for key, label in UNIT_LABELS.items()}
    pinned = state.window.lane("pinned") if state.window else None
    if pinned is not None and _batch(pinned) != _batch(state.lane):
        labels["delta_s"] = PER_SEQUENCE.format(name)
    return labels


def _batch(lane: PlanResult) -> int | None:
    return lane.rows[0].batch if lane.rows else None


def _context(state: State, lane: PlanResult, widths: Mapping[str, int]) -> Context:
    phases = [row.time_s for row in lane.rows if row.phase not in TOTAL_ROWS and row.time_s is not None]
    unit = lane_unit(lane)
    deltas = [abs(row.delta_s) for row in lane.rows if row.delta_s is not None]
    return Context(
        unit=unit,
        delta_unit=unit.for_values(deltas),
        largest_s=max(phases, default=0.0),
        worst=worst.phase if (worst := worst_phase(state)) else None,
        widths=widths,
        stale=state.pending,
    )


def lane_unit(lane: PlanResult) -> TimeUnit:
    """The unit of a lane's table."""
    return time_unit([*(row.time_s for row in lane.rows), lane.device_s])


def _cells(row: Row, context: Context) -> Cells:
    cells: dict[str, Text] = {"bar": _bar(row, context)}
    total = row.phase in TOTAL_ROWS
    for record in columns.COLUMNS:
        if record.priority is None:
            continue
        drawn = DRAWN.get(record.key)
        cell = drawn.draw(row, context) if drawn else _plain(record.cell(row), context, MUTED)
        blank = total and cell.plain.strip() == UNKNOWN and record.key != "time_s"
        cells[record.key] = Text("") if blank else cell
    return cells


def explain_phase(state: State, site: str) -> str:
    """What is left of the phase's time, from the floor upward, and by which clock it was taken."""
    row = next((row for row in state.lane.rows if row.phase == site), None) if state.lane else None
    if row is None:
        return ""
    unit = lane_unit(state.lane) if state.lane else time_unit(())
    said = [f"{site} ({row.kernel or 'no kernel named'}): {unit.write(row.time_s)} {unit.name}"]
    if row.floor_s is not None:
        said.append(f"floor {unit.write(row.floor_s)} by {row.floor_term or 'unknown'}")
    if row.binds is not None:
        then = f", then {row.runner_up}" if row.runner_up else ""
        said.append(f"binds {row.binds}{then}")
    if row.unexplained_s is not None:
        said.append(f"unexplained {unit.write(row.unexplained_s)}")
    if row.moved_over_compulsory is not None:
        said.append(f"asks L2 for {ratio(row.moved_over_compulsory)} the compulsory bytes")
    if row.spill_bytes:
        said.append(f"{size_bytes(row.spill_bytes)} of a thread's registers spilled")
    if row.timer:
        said.append(f"timer {row.timer}")
    if row.status:
        said.append(row.status)
    return "; ".join(said) + "."


def heading(state: State) -> Text:
    """Which plan the rows are of, from which window, and how it passed its gate."""
    lane, window = state.lane, state.window
    if lane is None or window is None:
        wait = state.doing or "the first window is under way"
        return Text(f"{state.current_word or 'no plan yet'}: {wait}", Style(color=MUTED))
    if state.pending:
        doing = state.doing or ("looking it up" if state.replaying else "measuring it")
        old = f" ({doing}); below: {lane.plan}, window {window.number}"
        return Text.assemble(
            (state.current_word or "", Style(color=TEXT, bold=True)), (old, Style(color=PINNED))
        )
    line = Text.assemble((lane.plan, Style(color=TEXT, bold=True)), "  ", gate_text(state, WIDE_HEADING))
    if lane.host_bound:
        line.append(f"  host bound, submit {seconds(lane.submit_s)}", Style(color=PINNED))
    return line


def failure(state: State) -> Text:
    """What stands in the table's place when the gate failed; empty where there is nothing to say."""
    lane = state.lane
    if lane is None or lane.gate.ok or state.pending:
        return Text("")
    text = Text.assemble(("FAIL", Style(color=BAD, bold=True)))
    text.append(f"  {lane.plan} gives a wrong answer, so it gets no time.\n\n", Style(color=TEXT))
    text.append(f"{lane.gate.where}\n", Style(color=TEXT))
    wrong = [check for check in lane.gate.checks if not check.ok]
    for check in wrong if len(wrong) > 1 else ():
        error = "not finite" if check.error is None else f"{check.error:.1e}"
        text.append(f"  {check.site}, layer {check.layer}: {error}", Style(color=BAD))
        text.append(f", allowed {check.tolerance:.0e}\n", Style(color=MUTED))
    text.append("\nChoose another rung, or flip back what was changed last.", Style(color=MUTED))
    return text


class PhaseHeading(CachedStatic):
    """The line over the phases."""


class Failure(CachedStatic):
    """What stands in the phases' place when the gate failed."""


class PhaseTable(KeyedTable):
    """The phases; enter or a click opens the kernels of the phase's site."""

    def __init__(self) -> None:
        super().__init__(COLUMNS, id="phases")

    def show(self, state: State) -> None:
        self.relabel(unit_labels(state))
        self.show_rows(phase_rows(state, self.widths))


class TotalsTable(KeyedTable):
    """The totals under the same columns; nothing in it can be chosen."""

    can_focus = False

    def __init__(self) -> None:
        super().__init__(COLUMNS, id="totals", show_header=False)
        self.show_cursor = False

    def show(self, state: State) -> None:
        self.show_rows(total_rows(state, self.widths))
