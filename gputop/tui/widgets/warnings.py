"""What to know before the rows below are believed: a busy machine, a split that does not add up."""

from __future__ import annotations

from collections.abc import Iterator

from rich.style import Style
from rich.text import Text

from gputop.results import phase_facts
from gputop.results.host_words import others_words
from gputop.tui.palette import PINNED
from gputop.tui.state import State
from gputop.tui.widgets.cached_static import CachedStatic


def warnings(state: State) -> Iterator[str]:
    """Yield each warning of the window on the screen, the one that the user can do something about first."""
    window = state.window
    if window is None or state.pending:
        return
    if others_words(window.health):
        used, cores = window.health.others_cores or 0.0, window.health.host_cores
        yield (
            f"! others use {used:.1f} of {cores} cores: these times are of a busy machine, "
            "and verdicts may stay UNRESOLVED"
        )
    totals = phase_facts.totals_of(state.lane)
    residual, device = totals.get("residual"), totals.get("device")
    if residual is not None and residual.status and device is not None and device.time_s:
        share = 100 * (1 - abs(residual.time_s or 0.0) / device.time_s)
        yield f"! phases account for {share:.0f} % of the pass: distrust the rows of this window"


class Warnings(CachedStatic):
    """Stands above the rows; takes no room if there is nothing to warn of."""

    def show(self, state: State) -> None:
        said = "\n".join(warnings(state))
        self.display = bool(said)
        self.put(Text(said, Style(color=PINNED, bold=True), no_wrap=True, overflow="ellipsis"))
