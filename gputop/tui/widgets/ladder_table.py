"""The ladder: every rung in order, what its last window said, and how it compares with the pinned plan."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text

from gputop.plan.choices import RungView
from gputop.tui.format import TimeUnit, binds_strip, time_unit
from gputop.tui.layout import LayoutColumn
from gputop.tui.palette import BAD, CURRENT, FAINT, PINNED, TEXT, VERDICTS
from gputop.tui.state import PlanSummary, State, ladder_ratio
from gputop.tui.widgets.keyed_table import Cells, KeyedTable
from gputop.util.units import UNKNOWN, significant

RATIO_WIDTH = 6
COLUMNS = (
    LayoutColumn(
        "number",
        "  #",
        3,
        0,
        right=True,
        doc="▶ current plan, ◆ pinned, ◈ both, × can't run here; its number",
    ),
    LayoutColumn(
        "rung", "rung", 14, 0, grows_to=18, doc="A named plan; below it, changed plans that are in use"
    ),
    LayoutColumn(
        "time", "time", 6, 2, right=True, grows_to=8, doc="A pass on the device; dim: of another window"
    ),
    LayoutColumn(
        "ratio",
        "vs ◆",
        RATIO_WIDTH,
        1,
        right=True,
        doc="The pinned plan's time / this one's, both of one window; = is SAME, ? UNRESOLVED",
    ),
    LayoutColumn(
        "binds", "binds", 6, 3, grows_to=18, doc="Which term binds for which share of the time, in order"
    ),
)
MARKS = {(True, True): "◈", (True, False): "▶", (False, True): "◆", (False, False): " "}
UNTOLD = ("SAME", "UNRESOLVED")
"""Verdicts that the ratio itself does not tell."""
REFUSED = "×"
CHANGED = "+"
"""Key prefix of a plan that is not a bare rung."""


def ladder_rows(state: State, strip_width: int) -> dict[str, Cells]:
    """Key -> cells: every rung, and after its rung a current or pinned plan with changes."""
    unit = _unit(state)
    rows: dict[str, Cells] = {}
    for rung in state.rungs:
        rows[rung.id] = _cells(state, rung, rung.id, rung.id, str(rung.number), unit, strip_width)
        for word in dict.fromkeys((state.pinned_word, state.current_word)):
            if word is not None and word.split(",")[0] == rung.id and word != rung.id:
                changes = "└ " + word.removeprefix(f"{rung.id},")
                rows[CHANGED + word] = _cells(state, rung, word, changes, "", unit, strip_width)
    return rows


def _cells(
    state: State, rung: RungView, word: str, label: str, number: str, unit: TimeUnit, strip_width: int
) -> Cells:
    is_current, is_pinned = word == state.current_word, word == state.pinned_word
    color = CURRENT if is_current else PINNED if is_pinned else FAINT if rung.refused else TEXT
    style = Style(color=color, bold=is_current)
    mark = REFUSED if rung.refused else MARKS[is_current, is_pinned]
    seen = state.seen.get(word)
    return {
        "number": Text(f"{mark}{number:>2}", style),
        "rung": Text(label, style),
        "time": _time(state, word, seen, unit, bool(rung.refused)),
        "ratio": _ratio(state, word, seen),
        "binds": binds_strip(seen.strip, strip_width) if seen else Text(),
    }


def _unit(state: State) -> TimeUnit:
    """Of all times in the column."""
    seen = (seen.device_s for seen in state.seen.values())
    return time_unit((*seen, *(entry.device_s for entry in state.ladder.values())))


def _time(state: State, word: str, seen: PlanSummary | None, unit: TimeUnit, refused: bool) -> Text:
    if refused:
        return Text(UNKNOWN, Style(color=FAINT))
    if seen is None:
        recorded = state.ladder.get(word)
        return Text(unit.write(recorded.device_s), Style(color=FAINT)) if recorded else Text("")
    if not seen.gate.ok:
        return Text("")
    return Text(unit.write(seen.device_s), Style(color=TEXT if seen.shot is state.shot else FAINT))


def _ratio(state: State, word: str, seen: PlanSummary | None) -> Text:
    """Only from a window where this plan and the pinned one both ran: a pair's, else a recorded ladder's."""
    if seen is not None and not seen.gate.ok:
        return Text("FAIL", Style(color=BAD, bold=True))
    paired = seen.paired.get(state.pinned_word) if seen and state.pinned_word else None
    if paired is None:
        recorded = None if word == state.pinned_word else ladder_ratio(state, word)
        return Text("") if recorded is None else Text(_short(recorded), Style(color=FAINT))
    mark = VERDICTS[paired.verdict]
    symbol = mark.symbol if paired.verdict in UNTOLD else ""
    return Text(_short(paired.ratio, symbol), Style(color=mark.color))


def _short(value: float, symbol: str = "") -> str:
    """A ratio behind its symbol in the column's width: with fewer digits rather than cut off."""
    texts = (f"{symbol}{significant(value, digits)}×" for digits in (3, 2, 1))
    return next((text for text in texts if len(text) <= RATIO_WIDTH), f"{symbol}{value:.0e}×")


def ladder_unit(state: State) -> str:
    """Name of the unit that the ladder's times share."""
    return _unit(state).name


def explain_rung(state: State, key: str) -> str:
    """The rung's idea, or why it can't run here."""
    rung_id = key.removeprefix(CHANGED).split(",")[0]
    rung = state.rung(rung_id)
    if rung is None:
        return ""
    if rung.refused:
        return f"{rung.id} can't run here: {rung.refused}"
    return f"{rung.id}: {rung.idea}"


class LadderTable(KeyedTable):
    """Enter or a click makes a rung the current plan."""

    def __init__(self) -> None:
        super().__init__(COLUMNS, id="ladder")
        self._current: str | None = None

    def show(self, state: State) -> None:
        self.relabel({"time": ladder_unit(state)} if state.seen or state.ladder else {})
        self.show_rows(ladder_rows(state, self.widths.get("binds", 0)))
        if state.current_word != self._current:
            self._current = state.current_word
            self._follow(state.current_word)

    def _follow(self, word: str | None) -> None:
        """A plan that was chosen in another pane gets a row of its own, perhaps below those in view.

        One that was chosen in this one is where the cursor is, or was.
        """
        if word is not None and not self.has_focus:
            self.highlight(word)
            self.highlight(CHANGED + word)
