"""What the views beside the phases share: a pane that draws the state as text and scrolls."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll

from gputop.tui.state import State, View
from gputop.tui.widgets.cached_static import CachedStatic


class ViewPane(VerticalScroll):
    """One view. Subclasses say which, and draw it."""

    view: ClassVar[View]
    can_focus = True

    def __init__(self) -> None:
        super().__init__(id=f"view-{self.view}", classes="view")
        self._state = State()
        self._body = CachedStatic()

    def compose(self) -> ComposeResult:
        yield self._body

    def show(self, state: State) -> None:
        """Draw the state in the room that there is."""
        self._state = state
        width, height = self.content_size
        if width > 0 and height > 0:
            self._body.put(self.draw(state, width, height))

    def draw(self, state: State, width: int, height: int) -> Text:
        """Return the view's text."""
        raise NotImplementedError

    def explain(self, state: State) -> str:
        """Return the sentence below the view."""
        return ""

    def on_resize(self) -> None:
        self.show(self._state)
