"""The ladder: every rung in order, its time on a log scale, and what it gained on the rung before."""

from __future__ import annotations

from dataclasses import replace

from rich.style import Style
from rich.text import Text
from textual.widgets import DataTable

from gputop.plan.choices import RungView
from gputop.results.ladder import LadderEntry
from gputop.tui.facts import ladder_ratio
from gputop.tui.format import log_bar, middle_cut
from gputop.tui.layout import LayoutColumn
from gputop.tui.palette import BAD, CURRENT, FAINT, GOOD, MUTED, PINNED, TEXT, VERDICTS
from gputop.tui.state import PlanSummary, State
from gputop.tui.widgets.keyed_table import Cells, KeyedTable
from gputop.util.units import UNKNOWN, ratio_within, seconds, significant

RATIO_WIDTH = 8
COLUMNS = (
    LayoutColumn("mark", "", 1, 0, doc="▸ current plan, ◆ pinned, ◈ both, × can't run here"),
    LayoutColumn(
        "rung", "rung", 14, 0, grows_to=20, doc="A named plan; below it, the changed plans that were tried"
    ),
    LayoutColumn(
        "time",
        "time",
        9,
        1,
        right=True,
        doc="A pass on the device; dim: of another window; `/32`: of 32 sequences",
    ),
    LayoutColumn(
        "bar",
        "log scale",
        6,
        3,
        short="log",
        grows_to=16,
        doc="The time of one sequence, on a logarithmic scale",
    ),
    LayoutColumn(
        "ratio",
        "before",
        RATIO_WIDTH,
        2,
        right=True,
        doc="Time of the rung before / this one's, or of the plan that you pinned; = is SAME, ? UNRESOLVED",
    ),
    LayoutColumn(
        "hit", "pred.", 5, 4, doc="Whether the gain that was predicted before measuring held: hit or MISS"
    ),
)
MARKS = {(True, True): "◈", (True, False): "▸", (False, True): "◆", (False, False): " "}
REFUSED = "×"
CHANGED = "+"
"""Key prefix of a plan that is not a bare rung."""


FOLDED = "×"
"""Key of the row that stands for all rungs that can't run here."""
MOST_REFUSED = 3
"""More rungs than these that can't run here share one row."""


def ladder_rows(state: State, widths: dict[str, int], unfolded: bool = False) -> dict[str, Cells]:
    """Return key -> cells: every rung, and after its rung each changed plan that was tried.

    Many rungs that can't run here are one row at the end, unless `unfolded`.
    """
    scale = _scale(state)
    rows: dict[str, Cells] = {}
    refused = refused_rungs(state)
    folds = not unfolded and len(refused) > MOST_REFUSED
    for rung in state.rungs:
        hidden = folds and bool(rung.refused)
        if not hidden:
            rows[rung.id] = _cells(state, rung, rung.id, rung.id, scale, widths)
        for plan in state.tried:
            if plan.rung == rung.id:
                changes = str(plan) if hidden else "└ " + str(plan).removeprefix(f"{rung.id},")
                able = replace(rung, refused="")
                rows[CHANGED + str(plan)] = _cells(state, able, str(plan), changes, scale, widths)
    if folds:
        style = Style(color=FAINT)
        rows[FOLDED] = {"mark": Text(REFUSED, style), "rung": Text(f"{len(refused)} not here", style)}
    return rows


def refused_rungs(state: State) -> tuple[RungView, ...]:
    """Return the rungs that can't run here, or that a recording does not have."""
    return tuple(rung for rung in state.rungs if rung.refused)


def sequence_s(state: State, word: str) -> float | None:
    """Return the time of one sequence of a plan: by its last window, else as it was recorded."""
    device_s, batch = _device_time(state, word)
    return None if device_s is None else device_s / (batch or 1)


def _device_time(state: State, word: str) -> tuple[float | None, int | None]:
    seen, entry = state.seen.get(word), state.ladder.get(word)
    if seen is not None and seen.device_s is not None:
        return seen.device_s, seen.batch
    if entry is not None:
        return entry.device_s, entry.batch
    # A recording that was stopped has windows, and no ladder.
    lanes = (lane for window in state.recorded for lane in window.lanes)
    lane = next((lane for lane in lanes if lane.plan == word and lane.device_s is not None), None)
    return (lane.device_s, lane.batch) if lane is not None else (None, None)


def _scale(state: State) -> tuple[float, float] | None:
    """Return the ends of the bars' scale: half the fastest sequence, and the slowest."""
    words = {*state.seen, *state.ladder, *(rung.id for rung in state.rungs)}
    times = [time_s for word in words if (time_s := sequence_s(state, word))]
    return (min(times) / 2, max(times)) if times else None


def _cells(
    state: State,
    rung: RungView,
    word: str,
    label: str,
    scale: tuple[float, float] | None,
    widths: dict[str, int],
) -> Cells:
    is_current, is_pinned = word == state.current_word, word == state.pinned_word
    color = CURRENT if is_current else PINNED if is_pinned else FAINT if rung.refused else TEXT
    style = Style(color=color, bold=is_current)
    mark = REFUSED if rung.refused else MARKS[is_current, is_pinned]
    seen = state.seen.get(word)
    bar = ""
    if scale is not None and not rung.refused:
        bar = log_bar(sequence_s(state, word), *scale, widths.get("bar", 0))
    return {
        "mark": Text(mark, style),
        "rung": Text(middle_cut(label, widths.get("rung", 14)), style),
        "time": _time(state, word, seen, bool(rung.refused)),
        "bar": Text(bar, Style(color=color if is_current or is_pinned else MUTED)),
        "ratio": _ratio(state, rung, word, seen),
        "hit": _hit(state.ladder.get(word)),
    }


def _time(state: State, word: str, seen: PlanSummary | None, refused: bool) -> Text:
    if refused:
        return Text(UNKNOWN, Style(color=FAINT))
    if seen is not None and not seen.gate.ok:
        return Text("")
    device_s, batch = _device_time(state, word)
    if device_s is None:
        return Text("")
    fresh = seen is not None and seen.shot is state.shot
    return Text(_short_time(device_s, batch), Style(color=TEXT if fresh else MUTED))


def _short_time(device_s: float, batch: int | None) -> str:
    """Return `483 µs`, and `3.1ms/32` for a pass of 32 sequences."""
    text = seconds(device_s)
    if batch is None or batch == 1:
        return text
    value, _, unit = text.partition(" ")
    return f"{float(value):.2g}{unit}/{batch}" if value.replace(".", "").isdigit() else text


def _ratio(state: State, rung: RungView, word: str, seen: PlanSummary | None) -> Text:
    """Only from a window in which both plans ran: a pair's, else the recorded ladder's."""
    if seen is not None and not seen.gate.ok:
        return Text("FAIL", Style(color=BAD, bold=True))
    entry = state.ladder.get(word)
    if state.pin_from == "user" and state.pinned_word is not None:
        paired = seen.paired.get(state.pinned_word) if seen else None
        if paired is None:
            recorded = None if word == state.pinned_word else ladder_ratio(state, word)
            return Text("") if recorded is None else Text(_short(recorded), Style(color=MUTED))
        mark = VERDICTS[paired.verdict]
        return Text(_short(paired.ratio, mark.symbol), Style(color=mark.color))
    if entry is not None and entry.ratio_before:
        mark = VERDICTS.get(entry.verdict) or VERDICTS["FASTER" if entry.ratio_before > 1 else "SLOWER"]
        return Text(_short(entry.ratio_before, mark.symbol), Style(color=mark.color))
    against = rung.before if word == rung.id else rung.id
    paired = seen.paired.get(against or "") if seen else None
    if paired is None and seen is not None and state.pinned_word is not None:
        paired = seen.paired.get(state.pinned_word)
    if paired is None:
        return Text("")
    mark = VERDICTS[paired.verdict]
    return Text(_short(paired.ratio, mark.symbol), Style(color=mark.color))


def _hit(entry: LadderEntry | None) -> Text:
    if entry is None or entry.predicted is None:
        return Text("")
    if entry.hit is None:
        return Text("?", Style(color=MUTED))
    return Text("hit", Style(color=GOOD)) if entry.hit else Text("MISS", Style(color=PINNED))


def _short(value: float, symbol: str = "") -> str:
    """Return a ratio behind its symbol in the column's width, with fewer digits rather than cut off."""
    texts = (f"{symbol} {significant(value, digits)}×" for digits in (3, 2, 1))
    return next((text for text in texts if len(text) <= RATIO_WIDTH), f"{symbol}{value:.0e}×").strip()


def explain_rung(state: State, key: str) -> str:
    """Return the rung's idea and its prediction, or why it can't run here."""
    if key == FOLDED:
        names = ", ".join(rung.id for rung in refused_rungs(state))
        return f"Enter lists them, each with the reason why it can't be chosen here: {names}."
    rung_of = {CHANGED + str(plan): plan.rung for plan in state.tried}
    rung = state.rung(rung_of.get(key, key))
    if rung is None:
        return ""
    if rung.refused:
        return f"{rung.id} can't run here: {rung.refused}"
    said = f"{rung.number} {rung.id}: {rung.idea}"
    entry = state.ladder.get(rung.id)
    if entry is not None and entry.predicted is not None:
        predicted = ratio_within(entry.predicted_interval)
        said += f" Predicted {predicted} over {entry.before}, by {entry.source}."
    return said


class LadderTable(KeyedTable):
    """Enter or a click makes a rung the current plan."""

    def __init__(self) -> None:
        super().__init__(COLUMNS, id="ladder")
        self._current: str | None = None
        self._state = State()
        self._unfolded = False

    def show(self, state: State) -> None:
        self._state = state
        self.relabel({"ratio": "vs ◆" if state.pin_from == "user" and state.pinned else "before"})
        self.show_rows(ladder_rows(state, self.widths, self._unfolded))
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

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        if event.row_key.value == FOLDED:
            event.stop()
            self._unfolded = True
            self.show(self._state)
            self.highlight(refused_rungs(self._state)[0].id)
