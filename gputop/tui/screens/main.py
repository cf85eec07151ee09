"""The main screen: where the time goes, what binds it, and whether the last change is real."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.screen import Screen
from textual.widgets import DataTable, Static

from gputop.tui import layout
from gputop.tui.state import State, View
from gputop.tui.views import VIEW_PANES
from gputop.tui.views.pane import ViewPane
from gputop.tui.widgets.advice_line import AdviceLine
from gputop.tui.widgets.banner import Banner
from gputop.tui.widgets.detail import DetailView
from gputop.tui.widgets.device_line import DeviceLine, HealthLine
from gputop.tui.widgets.dispatch_table import DispatchTable, explain_site
from gputop.tui.widgets.explain_line import ExplainLine, NoticeLine, TroubleLine
from gputop.tui.widgets.headline import Headline
from gputop.tui.widgets.key_bar import KeyBar
from gputop.tui.widgets.keyed_table import KeyedTable
from gputop.tui.widgets.ladder_strip import LadderStrip
from gputop.tui.widgets.ladder_table import LadderTable, explain_rung
from gputop.tui.widgets.log_pane import LogPane
from gputop.tui.widgets.own_kernel_pane import OwnKernelPane
from gputop.tui.widgets.pane import Area, Pane
from gputop.tui.widgets.phase_table import (
    Failure,
    PhaseTable,
    TotalsLine,
    explain_phase,
    failure,
)
from gputop.tui.widgets.toggle_table import ToggleTable, explain_toggle
from gputop.tui.widgets.verdict_line import VerdictLine
from gputop.tui.widgets.view_tabs import ViewTabs
from gputop.tui.widgets.warnings import Warnings

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

    class Selected(Message):
        """The cursor moved to another phase."""

        def __init__(self, site: str) -> None:
            super().__init__()
            self.site = site

    class SortBy(Message):
        """A heading of the phases was clicked."""

        def __init__(self, column: str) -> None:
            super().__init__()
            self.column = column

    def __init__(self) -> None:
        super().__init__()
        self._state = State()
        self._now_s = 0.0
        self._words = 1
        """Lines that verdict and advice share."""
        self._composed = False
        self._tabled: State | None = None
        """The state that the tables show, without what is not theirs."""
        self._front = "phases"
        """Which pane a narrow terminal shows."""
        self._whole = ""
        """The pane that has the whole screen; empty if none has."""

    def compose(self) -> ComposeResult:
        with Horizontal(id="top"):
            yield DeviceLine(id="device")
            yield ViewTabs(id="tabs")
        yield Headline(id="headline")
        yield HealthLine(id="health")
        yield Banner(id="banner")
        with Horizontal(id="panes"):
            with Area(id="left"):
                yield Pane(LadderTable(), "ladder")
                with Horizontal(id="plan"):
                    yield Pane(ToggleTable(), "toggles")
                    yield Pane(DispatchTable(), "dispatch")
            with Area(id="right"):
                yield Warnings(id="warnings")
                yield Pane(PhaseTable(), "phases", below=[Failure(), TotalsLine(id="totals")])
                yield DetailView(id="detail")
        for pane in VIEW_PANES:
            yield pane()
        yield OwnKernelPane()
        yield LogPane()
        yield LadderStrip(id="strip")
        with Vertical(id="words"):
            yield VerdictLine(id="verdict")
            yield AdviceLine(id="advice")
        yield TroubleLine(id="trouble")
        yield NoticeLine(id="notice")
        yield ExplainLine(id="explain")
        yield KeyBar(id="keys")
        yield Static(id="too-small")

    @property
    def stands(self) -> bool:
        """Return whether the parts are mounted: not before composing, nor while the app closes."""
        return self._composed and self.app.is_running

    @property
    def _narrow(self) -> bool:
        return self.app.size.width < layout.NARROW_WIDTH

    def on_mount(self) -> None:
        self._composed = True
        self.query_one(LogPane).display = False
        self._table("phases").focus()
        self._lay_out(*self.app.size)

    # Drawing

    def show(self, state: State, now_s: float) -> None:
        """Draw everything that differs."""
        first_rows = not self._state.rungs and bool(state.rungs)
        turned = state.view_name != self._state.view_name
        self._state, self._now_s = state, now_s
        with self.app.batch_update():
            self.show_age(now_s)
            self.query_one(ViewTabs).show(state, self._narrow)
            self.query_one(HealthLine).show(state)
            if state.view_name == "phases":
                self._show_panes(state, first_rows)
            for pane in self.query(ViewPane):
                pane.display = pane.view == state.view_name
                if pane.display:
                    pane.show(state)
            self.query_one("#panes").display = state.view_name == "phases"
            taken = self.query_one(VerdictLine).show(state)
            self.query_one(AdviceLine).show(state, self._words - taken)
            self.query_one(TroubleLine).show(state.trouble)
            self.query_one(NoticeLine).show(state.notice)
            self.query_one(OwnKernelPane).show(state)
            self._explain()
            if turned:
                self._focus_view(state.view_name)
            self._divide()

    def _show_panes(self, state: State, first_rows: bool) -> None:
        tabled = replace(state, site=None, view_name="phases", notice="", doing="", trouble="", whatif=None)
        if tabled != self._tabled:
            self._tabled = tabled
            for table in self.query(KeyedTable):
                table.show(state)
        if first_rows and state.current is not None:
            self._table("ladder").highlight(state.current.rung)
        failed = failure(state)
        self.query_one(Failure).put(failed)
        self.query_one(Failure).display = bool(failed)
        self._table("phases").display = not failed
        self.query_one(TotalsLine).display = not failed
        self.query_one(TotalsLine).show(state)
        self.query_one(Warnings).show(state)
        self.query_one(LadderStrip).show(state)
        self.query_one(DetailView).show(state)

    def _focus_view(self, view: View) -> None:
        if view == "phases":
            self._table("phases").focus()
            return
        for pane in self.query(ViewPane):
            if pane.view == view:
                pane.focus()

    def show_age(self, now_s: float) -> None:
        """Draw only what grows older by itself."""
        self._now_s = now_s
        self.query_one(DeviceLine).show(self._state, now_s)
        self.query_one(Headline).show(self._state, now_s)
        self.query_one(Banner).show(self._state, now_s)

    def _explain(self) -> None:
        table = self.focused
        said = ""
        if isinstance(table, KeyedTable) and table.highlighted_key is not None:
            said = EXPLAIN[table.id or ""](self._state, table.highlighted_key)
        elif isinstance(table, ViewPane):
            said = table.explain(self._state)
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
        self.set_class(width < layout.NARROW_WIDTH, "-narrow")
        verdict, advice = layout.sentence_lines(width, height)
        self.query_one(VerdictLine).most = verdict
        self._words = verdict + advice
        self.query_one("#words").styles.height = self._words
        self.query_one(TroubleLine).most = verdict
        narrow = width < layout.NARROW_WIDTH
        left = width if narrow else layout.left_width(width)
        self.query_one("#left").styles.width = left
        # Frame and padding of a roomy pane, on both sides.
        inset = 4 if roomy else 0
        right = width if narrow else width - left - MARGIN
        self._tabled = None
        self._table("ladder").fit_columns(left - inset)
        toggles = layout.TOGGLES_WIDTH if not narrow else width // 2
        self._pane("toggles").styles.width = toggles
        self._table("toggles").fit_columns(toggles)
        self._table("dispatch").fit_columns(max(20, left - toggles - MARGIN - inset))
        self._table("phases").fit_columns(right - inset)
        self.show(self._state, self._now_s)

    @on(Area.Resized)
    def _divide(self) -> None:
        narrow = self._narrow
        front = self._whole or (self._front if narrow else "")
        left_front = front in ("ladder", "toggles", "dispatch")
        self.query_one("#left").display = not front or left_front
        self.query_one("#right").display = not front or not left_front
        self._pane("ladder").display = front in ("", "ladder")
        self.query_one("#plan").display = front in ("", "toggles", "dispatch")
        self.query_one(DetailView).display = self._whole != "phases" and not failure(self._state)
        self.query_one(LadderStrip).display = narrow and self._state.view_name == "phases"
        self._divide_left(bool(front))
        self._divide_right()
        self._count_rows()
        # A pane that was hidden gets its size with the next drawing.
        self.call_after_refresh(self._count_rows)

    def _count_rows(self) -> None:
        for pane in self.query(Pane):
            pane.count_rows()

    def _divide_right(self) -> None:
        """The phases get what they need, the selected phase the rest; neither goes below its least."""
        height = self.query_one("#right", Area).size.height
        detail = self.query_one(DetailView)
        if height == 0:
            return
        wanted = self._pane("phases").wanted_height()
        if not detail.display:
            self._pane("phases").styles.height = "1fr"
            return
        least = layout.detail_height(height)
        pane = max(4, min(wanted, height - least))
        self._pane("phases").styles.height = pane if self._table("phases").row_count else "1fr"
        detail.styles.height = "1fr"
        detail.show(self._state)

    def _divide_left(self, alone: bool) -> None:
        height = self.query_one("#left", Area).size.height
        if height == 0:
            return
        if alone:
            self._pane("ladder").styles.height = "1fr"
            self.query_one("#plan").styles.height = "1fr"
            return
        frame = self._pane("ladder").gutter.height + 1
        self.query_one("#plan").border_title = "plan"
        wanted = [self._table(name).row_count + frame for name in ("ladder", "toggles", "dispatch")]
        ladder = layout.ladder_height(height, wanted[0], max(wanted[1:]))
        self._pane("ladder").styles.height = ladder
        self.query_one("#plan").styles.height = height - ladder

    # Panes

    def _table(self, name: str) -> KeyedTable:
        return self.query_one(f"#{name}", KeyedTable)

    def _pane(self, name: str) -> Pane:
        return self.query_one(f"#{name}-pane", Pane)

    def go_to(self, name: str) -> None:
        """Give a pane the keys; a narrow terminal shows it in the others' place."""
        self._front = name
        if self._whole:
            self._whole = name
        self._divide()
        self._table(name).focus()

    def action_pane(self, step: int) -> None:
        """Go to the next pane in tab order, or to the one before."""
        if self._state.view_name != "phases":
            return
        here = self.focused.id if self.focused is not None and self.focused.id in PANES else None
        at = PANES.index(here) if here else -1
        self.go_to(PANES[(at + step) % len(PANES)])

    def maximise(self) -> None:
        """Give the pane with the keys the whole screen, or give it back."""
        here = self.focused.id if self.focused is not None and self.focused.id in PANES else "phases"
        self._whole = "" if self._whole else str(here)
        self._divide()

    def give_back(self) -> bool:
        """Give the screen back to all panes; return whether one had it."""
        had, self._whole = bool(self._whole), ""
        self._divide()
        return had

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        if event.widget.id in PANES:
            self._front = str(event.widget.id)
        self._explain()

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        self._explain()
        table = event.data_table
        if table.id == "phases" and table.has_focus and event.row_key.value is not None:
            self.post_message(self.Selected(event.row_key.value))

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        if event.data_table.id in PANES and event.row_key.value is not None:
            self.post_message(self.Chosen(event.data_table.id, event.row_key.value))

    def on_keyed_table_header_clicked(self, event: KeyedTable.HeaderClicked) -> None:
        if event.table.id == "phases":
            self.post_message(self.SortBy(event.column))

    # The log

    def show_log(self, lines: tuple[str, ...]) -> None:
        pane = self.query_one(LogPane)
        if pane.display:
            pane.show(lines)

    def open_or_close_own_kernel(self) -> None:
        pane = self.query_one(OwnKernelPane)
        pane.display = not pane.display

    def open_or_close_log(self) -> bool:
        """Return whether it is open afterwards."""
        pane = self.query_one(LogPane)
        pane.display = not pane.display
        return bool(pane.display)
