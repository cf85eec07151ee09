"""The main screen: where the time goes, what binds it, and whether the last change is real."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.screen import Screen
from textual.widgets import DataTable, Static

from gputop.tui import layout
from gputop.tui.state import State
from gputop.tui.widgets.advice_line import AdviceLine
from gputop.tui.widgets.banner import Banner
from gputop.tui.widgets.device_line import DeviceLine
from gputop.tui.widgets.dispatch_table import DispatchTable, explain_site
from gputop.tui.widgets.explain_line import ExplainLine, TroubleLine
from gputop.tui.widgets.key_bar import KeyBar
from gputop.tui.widgets.keyed_table import KeyedTable
from gputop.tui.widgets.ladder_table import LadderTable, explain_rung
from gputop.tui.widgets.log_pane import LogPane
from gputop.tui.widgets.pane import Area, Pane
from gputop.tui.widgets.pane_tabs import PaneTabs
from gputop.tui.widgets.phase_table import (
    Failure,
    PhaseHeading,
    PhaseTable,
    TotalsTable,
    explain_phase,
    failure,
    heading,
)
from gputop.tui.widgets.terms import TermsView
from gputop.tui.widgets.toggle_table import ToggleTable, explain_toggle
from gputop.tui.widgets.verdict_line import VerdictLine

PANES = ("ladder", "phases", "toggles", "dispatch")
"""In the order of the tab key."""
EXPLAIN: Mapping[str, Callable[[State, str], str]] = {
    "ladder": explain_rung,
    "phases": explain_phase,
    "toggles": explain_toggle,
    "dispatch": explain_site,
}
MARGIN = 1
"""Cells between the two sides."""


class MainScreen(Screen[None]):
    """Draws a State. What the user chooses leaves as a message; keys that act from any pane are the app's."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "pane(1)", "next pane", show=False),
        Binding("shift+tab", "pane(-1)", "pane before", show=False),
    ]

    class Chosen(Message):
        """Enter or a click on a row of a pane."""

        def __init__(self, pane: str, key: str) -> None:
            super().__init__()
            self.pane = pane
            self.key = key

    def __init__(self) -> None:
        super().__init__()
        self._state = State()
        self._now_s = 0.0
        self._words = 1
        """Lines that verdict and advice share."""
        self._spare = 0
        """Rows that the phases leave."""
        self._composed = False
        self._lower = "toggles"
        """Which of toggles and dispatch is shown where there is room for one."""

    def compose(self) -> ComposeResult:
        yield DeviceLine(id="device")
        yield Banner(id="banner")
        with Horizontal(id="panes"):
            with Area(id="left"):
                yield Pane(LadderTable(), "ladder")
                yield PaneTabs(id="turn")
                yield Pane(ToggleTable(), "toggles")
                yield Pane(DispatchTable(), "dispatch")
            with Area(id="right"):
                yield Pane(PhaseTable(), "phases", above=[PhaseHeading()], below=[Failure(), TotalsTable()])
                yield TermsView(id="terms")
        yield LogPane()
        with Vertical(id="words"):
            yield VerdictLine(id="verdict")
            yield AdviceLine(id="advice")
        yield TroubleLine(id="trouble")
        yield ExplainLine(id="explain")
        yield KeyBar(id="keys")
        yield Static(id="too-small")

    @property
    def stands(self) -> bool:
        """Whether its parts are in place: not before the first composing, nor while the app closes."""
        return self._composed and self.app.is_running

    def on_mount(self) -> None:
        self._composed = True
        self.query_one(LogPane).display = False
        self._table("ladder").focus()
        self._lay_out(*self.app.size)

    # Drawing

    def show(self, state: State, now_s: float) -> None:
        """Draw everything that differs."""
        first_rows = not self._state.rungs and bool(state.rungs)
        self._state, self._now_s = state, now_s
        with self.app.batch_update():
            self.show_age(now_s)
            for table in self.query(KeyedTable):
                table.show(state)
            if first_rows and state.current is not None:
                self._table("ladder").highlight(state.current.rung)
            self._show_right(state)
            taken = self.query_one(VerdictLine).show(state)
            self.query_one(AdviceLine).show(state, self._words - taken)
            self.query_one(TroubleLine).show(state.trouble)
            self._explain()
            self._divide()

    def show_age(self, now_s: float) -> None:
        """Only what grows older by itself."""
        self._now_s = now_s
        lines = 1 if self.size.height < layout.SHORT_HEIGHT else 2
        heading = self.query_one(PhaseHeading).display
        self.query_one(DeviceLine).show(self._state, now_s, lines=lines, gate=not heading)
        self.query_one(Banner).show(self._state, now_s)

    def _show_right(self, state: State) -> None:
        self.query_one(PhaseHeading).put(heading(state))
        failed = failure(state)
        self.query_one(Failure).put(failed)
        self.query_one(Failure).display = bool(failed)
        self._table("phases").display = not failed
        self.query_one(TotalsTable).display = not failed

    def _explain(self) -> None:
        table = self.focused
        said = ""
        if isinstance(table, KeyedTable) and table.highlighted_key is not None:
            said = EXPLAIN[table.id or ""](self._state, table.highlighted_key)
        self.query_one(ExplainLine).show(said)
        self.query_one(KeyBar).show(self._state, table.id if table is not None else None)

    # Size

    def on_resize(self, event: events.Resize) -> None:
        if self.stands:
            self._lay_out(*event.size)

    def _lay_out(self, width: int, height: int) -> None:
        sentence = layout.too_small(width, height)
        self.query_one("#too-small", Static).update(sentence)
        self.set_class(bool(sentence), "-too-small")
        if sentence:
            return
        roomy = layout.roomy(width, height)
        self.set_class(roomy, "-roomy")
        self.set_class(height < layout.SHORT_HEIGHT, "-short")
        self.query_one(PhaseHeading).display = height >= layout.TALL_HEIGHT
        verdict, advice = layout.sentence_lines(width, height)
        self.query_one(VerdictLine).most = verdict
        self._words = verdict + advice
        self.query_one("#words").styles.height = self._words
        self.query_one(TroubleLine).most = verdict
        left = layout.left_width(width)
        self.query_one("#left").styles.width = left
        # Frame and padding of a roomy pane, on both sides.
        inset = 4 if roomy else 0
        right = width - left - MARGIN
        for pane in ("ladder", "toggles", "dispatch"):
            self._table(pane).fit_columns(left - inset)
        self._table("phases").fit_columns(right - inset)
        self.query_one(TotalsTable).fit_columns(right - inset)
        self.show(self._state, self._now_s)

    @on(Area.Resized)
    def _divide(self) -> None:
        self._divide_left()
        self._divide_right()
        self._count_rows()
        # A pane that was hidden gets its size with the next drawing.
        self.call_after_refresh(self._count_rows)

    def _count_rows(self) -> None:
        for pane in self.query(Pane):
            pane.count_rows()

    def _divide_right(self) -> None:
        """The phases get what they need; what is left, if it is enough, takes one of them apart."""
        height = self.query_one("#right", Area).size.height
        pane, measured = self._pane("phases"), self._table("phases").display
        self._spare = height - pane.wanted_height() if measured else 0
        fits = measured and self._spare >= 0
        pane.styles.height = pane.wanted_height() if fits else "1fr"
        self._show_terms()

    def _show_terms(self) -> None:
        table = self._table("phases")
        site = table.highlighted_key if table.has_focus else None
        self.query_one(TermsView).show(self._state, site, self._spare)

    def _divide_left(self) -> None:
        area = self.query_one("#left", Area)
        height = area.size.height
        if height == 0:
            return
        panes = {name: self._pane(name) for name in ("ladder", "toggles", "dispatch")}
        wanted = [pane.table.row_count + 1 + pane.gutter.height for pane in panes.values()]
        heights = layout.left_heights(height, *wanted)
        for name in ("toggles", "dispatch"):
            panes[name].table.show_header = heights.stacked
            panes[name].border_title = name if heights.stacked else ""
            panes[name].display = heights.stacked or name == self._lower
        turn = self.query_one(PaneTabs)
        turn.display = not heights.stacked
        turn.show(self._lower)
        panes["ladder"].styles.height = heights.ladder
        panes["toggles"].styles.height = heights.toggles if heights.stacked else "1fr"
        panes["dispatch"].styles.height = "1fr"

    # Panes

    def _table(self, name: str) -> KeyedTable:
        return self.query_one(f"#{name}", KeyedTable)

    def _pane(self, name: str) -> Pane:
        return self.query_one(f"#{name}-pane", Pane)

    def go_to(self, name: str) -> None:
        """Give a pane the keys, bringing it to the front where two take turns."""
        if name in ("toggles", "dispatch"):
            self._lower = name
            self._divide()
        self._table(name).focus()

    def action_pane(self, step: int) -> None:
        """The next pane in tab order, or the one before."""
        here = self.focused.id if self.focused is not None and self.focused.id in PANES else None
        at = PANES.index(here) if here else -1
        names = [name for name in PANES if name != "phases" or self._pane("phases").display]
        target = PANES[(at + step) % len(PANES)]
        if target not in names:
            target = PANES[(at + 2 * step) % len(PANES)]
        self.go_to(target)

    def on_pane_tabs_picked(self, event: PaneTabs.Picked) -> None:
        self.go_to(event.name)

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        self._explain()
        self._show_terms()

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        self._explain()
        self._show_terms()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        if event.data_table.id in PANES and event.row_key.value is not None:
            self.post_message(self.Chosen(event.data_table.id, event.row_key.value))

    # The log

    def show_log(self, lines: tuple[str, ...]) -> None:
        pane = self.query_one(LogPane)
        if pane.display:
            pane.show(lines)

    def open_or_close_log(self) -> bool:
        """Whether it is open afterwards."""
        pane = self.query_one(LogPane)
        pane.display = not pane.display
        return bool(pane.display)
