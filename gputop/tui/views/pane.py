"""What the views beside the phases share: a pane that draws the state as text and scrolls."""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll

from gputop.tui.palette import FAINT, PINNED
from gputop.tui.state import State, View
from gputop.tui.widgets.cached_static import CachedStatic


def _stale(state: State, text: Text) -> Text:
    """Return a view without its colours, under the sentence that it is of the plan before."""
    lane, window = state.lane, state.window
    assert lane is not None
    assert window is not None
    said = f"Still {lane.plan}, window {window.number}: the window of {state.current_word} is under way.\n"
    return Text.assemble((said, Style(color=PINNED)), (text.plain, Style(color=FAINT)))


class ViewPane(VerticalScroll):
    """One view. Subclasses say which, and draw it."""

    view: ClassVar[View]
    can_focus = True
    shows_window: ClassVar[bool] = True
    """Whether it shows the window on the screen, which is stale while another plan's is under way."""

    def __init__(self) -> None:
        super().__init__(id=f"view-{self.view}", classes="view")
        self._state = State()
        self._body = CachedStatic()
        self._room = (0, 0)
        """Width and height that the body was drawn for."""

    def compose(self) -> ComposeResult:
        yield self._body

    def show(self, state: State) -> None:
        """Draw the state in the room that there is."""
        self._state = state
        width, height = self.content_size
        self._room = width, height
        if width <= 0 or height <= 0:
            return
        text = self.draw(state, width, height)
        if state.pending and self.shows_window:
            text = _stale(state, text)
        self._body.put(text)

    def draw(self, state: State, width: int, height: int) -> Text:
        """Return the view's text."""
        raise NotImplementedError

    def explain(self, state: State) -> str:
        """Return the sentence below the view."""
        return ""

    def on_resize(self) -> None:
        if tuple(self.content_size) != self._room:
            self.show(self._state)
