"""The bottom line: which keys do what just now. Each can be clicked."""

from __future__ import annotations

from collections.abc import Mapping

from rich.style import Style
from rich.text import Text
from textual import events

from gputop.tui.actions import Action, shown_actions
from gputop.tui.palette import CURRENT, MUTED
from gputop.tui.state import State
from gputop.tui.widgets.cached_static import CachedStatic

ENTER: Mapping[str, str] = {
    "ladder": "choose",
    "phases": "inspect",
    "toggles": "flip",
    "dispatch": "kernels",
}
"""Pane -> what enter does in it."""
GAP = 2


def label(action: Action, state: State) -> str:
    """Return what a key would do in this state."""
    pinned = state.pinned_word is not None and state.pinned_word == state.current_word
    switched = {
        "stop_or_go": (not state.measuring, "go on"),
        "pin": (pinned, "unpin"),
        "freeze": (state.frozen is not None, "let go"),
    }
    on, instead = switched.get(action.name, (False, ""))
    return instead if on else action.label


def key_bar(state: State, pane: str | None, width: int) -> Text:
    """Keys and labels in `width` cells. The least needed are left out; help and quit stay."""
    shown = shown_actions(state, lambda action: action.footer)
    entries = [(action, f"{action.shown} {label(action, state)}") for action in shown]
    enter = f"⏎ {ENTER[pane]}" if pane is not None and pane in ENTER else ""
    needed = len(enter) + GAP + sum(len(said) + GAP for _, said in entries) - GAP
    for entry in sorted(entries, key=lambda entry: -entry[0].least_needed):
        if needed <= width or entry[0].least_needed == 0:
            break
        entries.remove(entry)
        needed -= len(entry[1]) + GAP
    bar = Text(no_wrap=True)
    if enter:
        bar.append("⏎", Style(color=CURRENT, bold=True))
        bar.append(enter[1:] + " " * GAP, Style(color=MUTED))
    for action, said in entries:
        click = Style(meta={"action": action.name})
        bar.append(action.shown, click + Style(color=CURRENT, bold=True))
        bar.append(said.removeprefix(action.shown), click + Style(color=MUTED))
        bar.append(" " * GAP)
    return bar


class KeyBar(CachedStatic):
    """One line at the bottom."""

    def show(self, state: State, pane: str | None) -> None:
        self.put(key_bar(state, pane, self.app.size.width - self.gutter.width))

    async def on_click(self, event: events.Click) -> None:
        name = event.style.meta.get("action")
        if name is not None:
            await self.app.run_action(name)
