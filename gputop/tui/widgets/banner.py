"""The banner over a frozen screen."""

from __future__ import annotations

from rich.text import Text

from gputop.tui.state import State
from gputop.tui.widgets.cached_static import CachedStatic
from gputop.tui.widgets.device_line import age


def banner_line(state: State, now_s: float) -> str:
    """Empty while the screen is live."""
    if state.frozen is None or state.latest is None:
        return ""
    newest = state.latest.window.number
    held = f"‖ FROZEN at window {state.frozen.window.number}"
    if state.replaying:
        return f"{held} of the recording; window {newest} was chosen last. f lets go."
    goes_on = f"measuring goes on, newest is window {newest}" if state.measuring else "measuring is stopped"
    return f"{held}, {age(now_s - state.frozen.at_s)} old; {goes_on}. f lets go."


class Banner(CachedStatic):
    """Says that the screen is held, and how old it is."""

    def show(self, state: State, now_s: float) -> None:
        said = banner_line(state, now_s)
        self.display = bool(said)
        self.put(Text(said))
