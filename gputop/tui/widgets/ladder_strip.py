"""The ladder in one line for narrow terminals: the current rung in the middle, its neighbours beside it."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text

from gputop.plan.choices import RungView
from gputop.tui.palette import CURRENT, FAINT, MUTED, PINNED
from gputop.tui.state import State
from gputop.tui.widgets.cached_static import CachedStatic
from gputop.tui.widgets.ladder_table import sequence_s
from gputop.util.units import seconds

LABEL = "ladder  "
JOIN = " ─ "


def strip_text(state: State, width: int) -> Text:
    """Return as many rungs around the current one as `width` cells hold; ← and → walk them."""
    usable = [rung for rung in state.rungs if not rung.refused]
    if not usable or state.current is None:
        return Text("")
    ids = [rung.id for rung in usable]
    here = ids.index(state.current.rung) if state.current.rung in ids else 0
    first = last = here
    items = [_item(state, rung) for rung in usable]
    room = width - len(LABEL) - 4
    used = items[here].cell_len
    while True:
        grown = False
        for at in (first - 1, last + 1):
            if 0 <= at < len(items) and used + len(JOIN) + items[at].cell_len <= room:
                used += len(JOIN) + items[at].cell_len
                first, last = min(first, at), max(last, at)
                grown = True
        if not grown:
            break
    line = Text(LABEL, Style(color=MUTED), no_wrap=True)
    line.append("… " if first > 0 else "", Style(color=FAINT))
    line.append_text(Text(JOIN, Style(color=FAINT)).join(items[first : last + 1]))
    line.append(" …" if last + 1 < len(items) else "", Style(color=FAINT))
    return line


def neighbour(state: State, step: int) -> str | None:
    """Return the rung that is `step` places from the current one among those that can run here."""
    ids = [rung.id for rung in state.rungs if not rung.refused]
    if state.current is None or state.current.rung not in ids:
        return ids[0] if ids else None
    at = ids.index(state.current.rung) + step
    return ids[at] if 0 <= at < len(ids) else None


def _item(state: State, rung: RungView) -> Text:
    is_current = state.current is not None and rung.id == state.current.rung
    is_pinned = state.pinned is not None and rung.id == state.pinned.rung and not is_current
    mark = "▸" if is_current else "◆" if is_pinned else ""
    color = CURRENT if is_current else PINNED if is_pinned else MUTED
    time_s = sequence_s(state, rung.id)
    aside = f" {seconds(time_s)}" if time_s is not None else ""
    return Text(f"{mark}{rung.id}{aside}", Style(color=color, bold=is_current))


class LadderStrip(CachedStatic):
    """One line."""

    def show(self, state: State) -> None:
        self.put(strip_text(state, max(1, self.app.size.width - self.gutter.width)))
