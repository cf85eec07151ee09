"""The two names over the place that toggles and dispatch share on a short terminal."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text
from textual import events
from textual.message import Message

from gputop.tui.palette import CURRENT, FAINT
from gputop.tui.widgets.cached_static import CachedStatic

NAMES = ("toggles", "dispatch")
HINTS = {"toggles": "t", "dispatch": "d"}


class PaneTabs(CachedStatic):
    """Shows which of the two is in front; a click on the other brings it forward."""

    class Picked(Message):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def show(self, front: str) -> None:
        line = Text()
        for name in NAMES:
            style = Style(color=CURRENT, bold=True, underline=True) if name == front else Style(color=FAINT)
            line.append(name, style + Style(meta={"turn": name}))
            line.append(f" {HINTS[name]}   ", Style(color=FAINT))
        self.put(line)

    def on_click(self, event: events.Click) -> None:
        name = event.style.meta.get("turn")
        if name in NAMES:
            self.post_message(self.Picked(name))
