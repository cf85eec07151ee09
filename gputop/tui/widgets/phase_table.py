"""The phases of the window on the screen, those with most to win first, on one labelled axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rich.style import Style
from rich.text import Text

from gputop.results import columns, phase_facts
from gputop.results.records import PlanResult, Row
from gputop.results.row_figures import binds_words
from gputop.tui import facts
from gputop.tui.format import TimeUnit, axis, floor_bar, fraction, middle_cut, time_unit
from gputop.tui.layout import LayoutColumn
from gputop.tui.palette import BAD, EXCESS, EXCESS_MOST, FAINT, MUTED, PINNED, TEXT, VERDICTS, term_mark
from gputop.tui.state import State
from gputop.tui.widgets.cached_static import CachedStatic
from gputop.tui.widgets.keyed_table import Cells, KeyedTable
from gputop.util.units import UNKNOWN, ratio, whole


@dataclass(frozen=True, slots=True)
class RowContext:
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
    sm_count: int | None

    def is_worst(self, row: Row) -> bool:
        return row.phase == self.worst and not self.stale


Draw = Callable[[Row, RowContext], Text]


def _plain(text: str, context: RowContext, color: str = TEXT) -> Text:
    return Text(text, Style(color=FAINT if context.stale or text == UNKNOWN else color))


def _phase(row: Row, context: RowContext) -> Text:
    cell = _plain(row.phase, context)
    if context.is_worst(row):
        cell.stylize(Style(bold=True, color=EXCESS_MOST))
    return cell


def _kernel(row: Row, context: RowContext) -> Text:
    return _plain(middle_cut(row.kernel or "", context.widths.get("kernel", 20)), context, MUTED)


def _time(row: Row, context: RowContext) -> Text:
    cell = _plain(context.unit.write(row.time_s), context)
    if row.status and "unresolved" in row.status:
        return Text.assemble(("~", Style(color=PINNED)), cell)
    return cell


def _bar(row: Row, context: RowContext) -> Text:
    excess = EXCESS_MOST if context.is_worst(row) else EXCESS
    bar = floor_bar(row.time_s, row.floor_s, context.largest_s, context.widths.get("bar", 0), excess)
    return Text(bar.plain, Style(color=FAINT)) if context.stale else bar


def _over(row: Row, context: RowContext) -> Text:
    return _plain(ratio(phase_facts.times_floor(row)), context)


def _over_reach(row: Row, context: RowContext) -> Text:
    return _plain(ratio(phase_facts.times_reach(row)), context)


def _binds(row: Row, context: RowContext) -> Text:
    if row.binds is None:
        return _plain(UNKNOWN, context)
    mark, said = term_mark(row.binds), binds_words(row)
    cell = _plain(said, context, mark.color)
    idle = phase_facts.idle_sms(row, context.sm_count)
    aside = f" · {idle} SMs idle" if idle else ""
    if aside and len(said) + len(aside) <= context.widths.get("binds", 0):
        cell.append(aside, Style(color=FAINT))
    return cell


def _delta(row: Row, context: RowContext) -> Text:
    if row.delta_s is None:
        return _plain(UNKNOWN, context)
    mark = VERDICTS.get(row.verdict or "")
    symbol = mark.symbol if mark else " "
    color = mark.color if mark else MUTED
    return _plain(f"{context.delta_unit.signed(row.delta_s)} {symbol}", context, color)


def _ratio(row: Row, context: RowContext) -> Text:
    mark = VERDICTS.get(row.verdict or "")
    return _plain(ratio(row.ratio), context, mark.color if mark else MUTED)


DRAWN: Mapping[str, Draw] = {
    "phase": _phase,
    "count": lambda row, context: _plain(whole(row.count), context, MUTED),
    "kernel": _kernel,
    "time_s": _time,
    "bar": _bar,
    "over": _over,
    "over_reach": _over_reach,
    "binds": _binds,
    "delta_s": _delta,
    "ratio": _ratio,
    "occupancy_theoretical": lambda row, context: _plain(fraction(row.occupancy_theoretical), context, MUTED),
    "floor_s": lambda row, context: _plain(context.unit.write(row.floor_s), context, MUTED),
    "time_mad_s": lambda row, context: _plain(context.unit.write(row.time_mad_s), context, MUTED),
}
OVER_DOC = "Time / floor; a dash if the floor is below one launch and one load, so that it ranks nothing"
REACH_DOC = "Time, the gap before it included, / reach: the least that launches take that wait for each other"
BINDS_DOC = "The term with the largest share of the time, with that share, and the SMs that get no block"
BAR_DOC = "The time on one axis: solid up to the floor, shaded beyond it: what could be won"


def _doc(key: str) -> str:
    return columns.BY_KEY[key].doc


COLUMNS = (
    LayoutColumn("phase", "phase", 12, 0, doc=_doc("phase")),
    LayoutColumn("count", "n", 3, 6, right=True, doc=_doc("count")),
    LayoutColumn("kernel", "kernel", 22, 9, grows_to=30, doc=_doc("kernel")),
    LayoutColumn("time_s", "time", 7, 0, right=True, doc=_doc("time_s")),
    LayoutColumn("time_mad_s", "± mad", 6, 11, right=True, doc=_doc("time_mad_s")),
    LayoutColumn("bar", "bar", 8, 3, comfort=20, grows_to=200, doc=BAR_DOC),
    LayoutColumn("floor_s", "floor", 7, 10, right=True, doc=_doc("floor_s")),
    LayoutColumn("over", "×floor", 6, 2, right=True, doc=OVER_DOC),
    LayoutColumn("over_reach", "×reach", 6, 5, right=True, doc=REACH_DOC),
    LayoutColumn("binds", "binds", 11, 1, comfort=15, grows_to=27, doc=BINDS_DOC),
    LayoutColumn("delta_s", "Δ", 9, 4, right=True, doc=_doc("delta_s")),
    LayoutColumn("ratio", "ratio", 7, 8, right=True, doc=_doc("ratio")),
    LayoutColumn("occupancy_theoretical", "occ", 5, 7, right=True, doc=_doc("occupancy_theoretical")),
)
BY_KEY = {column.key: column for column in COLUMNS}
UNPAIRED = tuple(column for column in COLUMNS if column.key not in ("delta_s", "ratio"))
"""The columns of a window with one plan: differences would be dashes."""
PER_SEQUENCE = "Δ/seq {}"
"""Label of the differences between plans of two batches: a sequence's, beside the times of a pass."""


def columns_for(state: State) -> tuple[LayoutColumn, ...]:
    """Return the columns of the window on the screen."""
    rows = phase_facts.phases_of(state.lane)
    return COLUMNS if any(row.delta_s is not None for row in rows) else UNPAIRED


def phase_rows(state: State, widths: Mapping[str, int]) -> dict[str, Cells]:
    """Return site -> cells as sorted; empty if the gate failed or nothing was measured."""
    lane = state.lane
    if lane is None:
        return {}
    context = _context(state, lane, widths)
    return {
        row.phase: {key: draw(row, context) for key, draw in DRAWN.items()}
        for row in facts.shown_phases(state)
    }


def labels(state: State, widths: Mapping[str, int]) -> dict[str, str]:
    """Return column -> its label: the unit, the axis of the bars, and what the rows are sorted by."""
    if state.lane is None:
        return {}
    unit = lane_unit(state)
    largest_s = max((row.time_s or 0.0 for row in phase_facts.phases_of(state.lane)), default=0.0)
    pinned = state.window.lane("pinned") if state.window else None
    per_sequence = pinned is not None and pinned.batch != state.lane.batch
    made = {
        "time_s": unit.name,
        "floor_s": f"fl. {unit.name}",
        "delta_s": PER_SEQUENCE.format(unit.name) if per_sequence else f"Δ {unit.name}",
        "time_mad_s": f"± {unit.name}",
        "bar": axis(largest_s, unit, widths.get("bar", 0)),
    }
    arrow = "▴" if state.sorted_backwards else "▾"
    if state.sort == "bar":
        made["phase"] = f"excess {arrow}"
    elif state.sort in BY_KEY and (state.sort != "phase" or state.sorted_backwards):
        made[state.sort] = f"{made.get(state.sort, BY_KEY[state.sort].label)}{arrow}"
    return made


def totals_line(state: State, width: int) -> Text:
    """Return how the phases add up to the pass: `device 483 = phases 449 + gaps 46 − 12 residual ...`."""
    lane = state.lane
    if lane is None or not lane.rows:
        return Text("")
    unit, totals = lane_unit(state), phase_facts.totals_of(lane)
    time_s = {name: row.time_s for name, row in totals.items()}
    stale = state.pending
    text = Text(no_wrap=True, overflow="ellipsis", style=Style(color=FAINT if stale else MUTED))
    text.append("device ").append(
        unit.write(time_s.get("device")), Style(color=FAINT if stale else TEXT, bold=True)
    )
    text.append(f" = phases {unit.write(time_s.get('sum'))} + gaps {unit.write(time_s.get('gaps'))} ")
    residual = time_s.get("residual")
    sign = "−" if residual is not None and residual < 0 else "+"
    text.append(f"{sign} {unit.write(abs(residual) if residual is not None else None)} residual")
    aside = f"   wall {unit.write(time_s.get('wall'))} {unit.name}"
    launches = sum(row.launches or 0 for row in phase_facts.phases_of(lane))
    if launches:
        aside += f"   {launches} launches"
    if text.cell_len + len(aside) <= width:
        text.append(aside)
    return text


def _context(state: State, lane: PlanResult, widths: Mapping[str, int]) -> RowContext:
    rows = phase_facts.phases_of(lane)
    unit = lane_unit(state)
    deltas = [abs(row.delta_s) for row in lane.rows if row.delta_s is not None]
    worst = phase_facts.worst_phase(lane)
    return RowContext(
        unit=unit,
        delta_unit=unit.for_values(deltas),
        largest_s=max((row.time_s for row in rows if row.time_s is not None), default=0.0),
        worst=worst.phase if worst else None,
        widths=widths,
        stale=state.pending,
        sm_count=facts.sm_count(state),
    )


def lane_unit(state: State) -> TimeUnit:
    """Return the unit that all times of the tables share."""
    return time_unit([state.scale_s])


def explain_phase(state: State, site: str) -> str:
    """Return how the phase was timed, and what its row warns of; the pane below takes it apart."""
    row = next((row for row in phase_facts.phases_of(state.lane) if row.phase == site), None)
    if row is None:
        return ""
    timer, caches = row.timer or "an unknown timer", row.cache_state or UNKNOWN
    said = f"{site}: {row.samples} samples by {timer}, caches {caches}"
    if row.binds is not None:
        said += f"; {binds_words(row)} binds" + (f", then {row.runner_up}" if row.runner_up else "")
    return said + (f"; {row.status}." if row.status else ".")


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
        text.append(f"  {check.fault}\n", Style(color=BAD))
    text.append("\nChoose another rung, or flip back what was changed last.", Style(color=MUTED))
    return text


class TotalsLine(CachedStatic):
    """The line below the phases that adds them up."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._state = State()

    def show(self, state: State) -> None:
        self._state = state
        self.put(totals_line(state, self.content_size.width))

    def on_resize(self) -> None:
        self.show(self._state)


class Failure(CachedStatic):
    """What stands in the phases' place when the gate failed."""


class PhaseTable(KeyedTable):
    """The phases. A click or an arrow selects one; enter opens the inspector on it."""

    def __init__(self) -> None:
        super().__init__(UNPAIRED, id="phases")

    def show(self, state: State) -> None:
        self.declare(columns_for(state))
        self.show_rows(phase_rows(state, self.widths))
        self.relabel(labels(state, self.widths))
