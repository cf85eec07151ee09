"""Every key of the screen, one record each: bindings, palette and help are made from this table."""

from __future__ import annotations

from dataclasses import dataclass

from textual.binding import Binding

from gputop.tui.state import State


@dataclass(frozen=True, slots=True)
class Action:
    """Something the user can ask for from any pane."""

    keys: str
    """As Textual names them, separated by commas."""
    shown: str
    """As a person names them."""
    name: str
    """The app's action."""
    label: str
    """For the bottom line; a word or two."""
    doc: str
    """For palette and help; a sentence."""
    stops: bool = False
    """Whether it stops what goes on, which in a recording is nothing."""
    footer: bool = True
    """Whether it stands in the bottom line."""
    least_needed: int = 0
    """The highest leave a narrow bottom line first; 0 always stays."""

    def idle(self, state: State) -> bool:
        """Whether it would do nothing in this state."""
        return self.stops and state.nothing_to_stop

    @property
    def binding(self) -> Binding:
        return Binding(self.keys, self.name, self.label, key_display=self.shown, tooltip=self.doc)


ACTIONS = (
    Action("space", "space", "stop_or_go", "stop", "Stop measuring, or go on", stops=True),
    Action("p", "p", "pin", "pin", "Pin the current plan, so that others are paired with it; again to unpin"),
    Action(
        "f",
        "f",
        "freeze",
        "freeze",
        "Hold the window on the screen, or let go; measuring goes on",
        least_needed=1,
    ),
    Action(
        "e",
        "e",
        "export",
        "export",
        "Write the phase table as CSV, once the plan has passed both gates",
        least_needed=2,
    ),
    Action("l", "l", "log", "log", "Open or close what the worker says", least_needed=4),
    Action("t", "t", "go_toggles", "toggles", "Go to the toggles", footer=False),
    Action("d", "d", "go_dispatch", "dispatch", "Go to the dispatch table", footer=False),
    Action("h", "h", "recording", "H200", "Open the recording of an H200; again to go back", footer=False),
    Action("escape", "esc", "put_away", "put away", "Put the message of what went wrong away", footer=False),
    Action("ctrl+p", "^p", "command_palette", "palette", "Every action by name", least_needed=3),
    Action("question_mark", "?", "help", "help", "Every key, column, mark and colour"),
    Action("q", "q", "quit", "quit", "End the worker and leave"),
)

MOVING = (
    ("↑ ↓", "Move within a pane; the line at the bottom explains what is highlighted"),
    ("enter, click", "Make the rung current, flip the toggle, open a site's kernels"),
    ("tab, shift+tab", "Next pane, pane before"),
)
