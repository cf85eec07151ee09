"""The names of the views with their keys; the one on the screen stands out, and each can be clicked."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text
from textual import events
from textual.message import Message

from gputop.tui.palette import CURRENT, FAINT, MUTED
from gputop.tui.state import VIEWS, State, View
from gputop.tui.widgets.cached_static import CachedStatic

TITLES: dict[View, str] = {
    "phases": "phases",
    "roofline": "roofline",
    "ladder": "ladder",
    "inspect": "inspect",
    "whatif": "what-if",
    "diff": "diff",
}


def tabs_text(state: State, narrow: bool) -> Text:
    """Return `1 phases  2 roofline ...`, on a narrow terminal only the title of the view that is shown."""
    line = Text(no_wrap=True)
    for number, view in enumerate(VIEWS, 1):
        here = view == state.view_name
        click = Style(meta={"view": view})
        if line:
            line.append("  ")
        line.append(str(number), click + Style(color=CURRENT if here else FAINT, bold=here))
        if narrow and not here:
            continue
        line.append(
            f" {TITLES[view]}", click + Style(color=CURRENT if here else MUTED, bold=here, underline=here)
        )
    return line


class ViewTabs(CachedStatic):
    """One line; a click chooses a view."""

    class Picked(Message):
        def __init__(self, view: View) -> None:
            super().__init__()
            self.view = view

    def show(self, state: State, narrow: bool) -> None:
        text = tabs_text(state, narrow)
        self.styles.width = text.cell_len + self.gutter.width
        self.put(text)

    def on_click(self, event: events.Click) -> None:
        view = event.style.meta.get("view")
        if view is not None:
            self.post_message(self.Picked(view))
