"""Every key of the screen, one record each: bindings, palette, bottom line and help come from this table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from textual.binding import Binding, BindingType

from gputop.tui.state import State, View


@dataclass(frozen=True, slots=True)
class Action:
    """Something the user can ask for: from any pane, or in one view."""

    keys: str
    """As Textual names them, separated by commas."""
    shown: str
    """As a person names them."""
    name: str
    """The app's action, or the view's."""
    label: str
    """For the bottom line; a word or two."""
    doc: str
    """For palette and help; a sentence."""
    view: View | None = None
    """The view that it belongs to; None: any."""
    live_only: bool = False
    """Whether it does nothing in a recording."""
    footer: bool = False
    """Whether it stands in the bottom line."""
    least_needed: int = 0
    """The highest leave a narrow bottom line first; 0 always stays."""

    def idle(self, state: State) -> bool:
        """Return whether it would do nothing in this state."""
        return (self.live_only and state.replaying) or (
            self.view is not None and self.view != state.view_name
        )

    @property
    def binding(self) -> Binding:
        return Binding(self.keys, self.name, self.label, key_display=self.shown, tooltip=self.doc, show=False)


ACTIONS = (
    Action("1", "1", "view('phases')", "phases", "The phases, the ladder and the plan"),
    Action("2", "2", "view('roofline')", "roofline", "The phases below the measured roofs"),
    Action("3", "3", "view('ladder')", "ladder", "Every rung on a time axis, with its prediction"),
    Action("4", "4", "view('inspect')", "inspect", "Everything that is known of the selected phase"),
    Action(
        "5",
        "5",
        "view('whatif')",
        "what-if",
        "What another launch, batch, math or card would do for the selected phase",
    ),
    Action(
        "6,c", "6", "view('diff')", "diff", "The two plans phase by phase, and every change that was measured"
    ),
    Action(
        "p",
        "p",
        "pin",
        "pin",
        "Pin the current plan, so that others are paired with it; again to unpin",
        footer=True,
    ),
    Action(
        "s",
        "s",
        "sort",
        "sort",
        "Sort the phases by the next column; a click on a heading sorts by that one, a second click turns it",
        footer=True,
        least_needed=2,
    ),
    Action(
        "a",
        "a",
        "apply",
        "apply",
        "Apply the step that the advice says was measured faster",
        footer=True,
        least_needed=1,
    ),
    Action(
        "e",
        "e",
        "export",
        "export",
        "Write the phases (CSV, JSON) or the verdict (Markdown), both gates run first, or the screen (SVG)",
        footer=True,
        least_needed=2,
    ),
    Action(
        "slash,ctrl+p",
        "/",
        "command_palette",
        "find",
        "Find a rung, a phase, a kernel, a toggle, a column or a word",
        footer=True,
    ),
    Action(
        "space",
        "space",
        "stop_or_go",
        "stop",
        "Stop measuring, or go on",
        live_only=True,
        footer=True,
        least_needed=1,
    ),
    Action(
        "f",
        "f",
        "freeze",
        "freeze",
        "Hold the window on the screen, or let go; measuring goes on",
        live_only=True,
        footer=True,
        least_needed=4,
    ),
    Action("t", "t", "go_toggles", "toggles", "Go to the toggles", footer=True, least_needed=3),
    Action("d", "d", "go_dispatch", "dispatch", "Go to the dispatch table", footer=True, least_needed=3),
    Action("g", "g", "go_ladder", "ladder", "Go to the list of rungs"),
    Action("z", "z", "maximise", "whole", "Give the pane with the keys the whole screen, or give it back"),
    Action(
        "left",
        "←",
        "neighbour(-1)",
        "rung before",
        "Choose the rung before the current one; in the inspector, the phase before",
    ),
    Action(
        "right",
        "→",
        "neighbour(1)",
        "next rung",
        "Choose the rung after the current one; in the inspector, the next phase",
    ),
    Action("k", "k", "kernels", "kernels", "Choose another kernel for the selected phase"),
    Action("w", "w", "log", "worker", "Open or close what the worker says"),
    Action(
        "y",
        "y",
        "own_kernel",
        "your kernel",
        "Open or close what became of your own kernel when it was saved",
        live_only=True,
    ),
    Action("h", "h", "recording", "H200", "Open the recording of an H200; again to go back"),
    Action(
        "escape",
        "esc",
        "put_away",
        "back",
        "Put a message away, give a pane its place back, or go back to the phases",
    ),
    Action("T", "T", "theme", "theme", "Turn from the dark theme to the light one, or back"),
    Action("ctrl+z", "^z", "suspend_process", "suspend", "Suspend gputop; fg in the shell brings it back"),
    Action("question_mark", "?", "help", "help", "Every key, column, mark and colour", footer=True),
    Action("q", "q", "quit", "quit", "End the worker and leave", footer=True),
    Action("l", "l", "level", "level", "Bytes of memory or of L2", view="roofline", footer=True),
    Action("plus", "+", "zoom(True)", "zoom", "Draw only where the phases are", view="roofline", footer=True),
    Action("minus", "-", "zoom(False)", "whole", "Draw the roofs too", view="roofline"),
    Action(
        "v",
        "v",
        "link",
        "pinned",
        "Join each phase with its point in the pinned plan",
        view="roofline",
        footer=True,
    ),
    Action(
        "u", "u", "path", "up the ladder", "The selected phase at every rung", view="roofline", footer=True
    ),
    Action("down", "↓", "app.next_phase(1)", "next phase", "Select the next phase", view="roofline"),
    Action("up", "↑", "app.next_phase(-1)", "phase before", "Select the phase before", view="roofline"),
    Action(
        "v",
        "v",
        "basis",
        "against",
        "Against the rung before, the first, or the pinned plan",
        view="ladder",
        footer=True,
    ),
    Action(
        "o",
        "o",
        "baselines",
        "baselines",
        "Hide or show library and framework baselines",
        view="ladder",
        footer=True,
    ),
    Action("down", "↓", "knob(1)", "next", "Choose what to turn", view="whatif"),
    Action("up", "↑", "knob(-1)", "before", "Choose what to turn", view="whatif"),
    Action("right", "→", "turn(1)", "more", "Turn it up", view="whatif", footer=True),
    Action("left", "←", "turn(-1)", "less", "Turn it down", view="whatif", footer=True),
    Action(
        "n",
        "n",
        "cliff",
        "next cliff",
        "Go to the next value at which an SM holds one more block",
        view="whatif",
        footer=True,
    ),
    Action("r", "r", "reset", "reset", "Take the measured shape again", view="whatif", footer=True),
)

MOVING = (
    ("↑ ↓", "Move within a pane; the line at the bottom explains what is highlighted"),
    ("enter, click", "Make the rung current, flip the toggle, open a site's kernels, inspect the phase"),
    ("tab, shift+tab", "Next pane, pane before"),
)


def bindings_of(view: View | None) -> list[BindingType]:
    """Return the bindings of one view, or those that hold everywhere."""
    return [action.binding for action in ACTIONS if action.view == view]


def shown_actions(state: State, keep: Callable[[Action], bool]) -> tuple[Action, ...]:
    """Return the actions that do something now and that `keep` wants, those of the view first."""
    able = [action for action in ACTIONS if not action.idle(state) and keep(action)]
    return tuple(sorted(able, key=lambda action: action.view is None))
