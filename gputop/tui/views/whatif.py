"""What would fill the SMs better: registers, shared memory and block size of the selected kernel, by keys.

The figures are the occupancy calculator's, for this architecture. No time is forecast from them.
"""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.binding import BindingType

from gputop.perf.block_shape import KNOBS, BlockShape, cliff_text, next_cliff, occupancy_figures, turned
from gputop.results.phase_facts import block_shape
from gputop.tui import facts
from gputop.tui.actions import bindings_of
from gputop.tui.palette import CURRENT, FAINT, GOOD, MUTED, PINNED, TEXT
from gputop.tui.state import State, View
from gputop.tui.views.pane import ViewPane


def whatif_text(state: State, shape: BlockShape | None, chosen: int, width: int) -> Text:
    """Return the selected kernel's shape as measured and as turned, and the next cliff of each knob."""
    row = facts.selected_row(state)
    device = state.window.device if state.window else None
    if row is None or device is None:
        return Text("Nothing is measured yet.", Style(color=MUTED))
    measured = block_shape(row)
    arch = device.arch or ""
    if measured is None or shape is None or not arch.startswith("sm_"):
        return Text(
            f"{row.phase}: its launch is not known here (a CPU, or a library that does not say), so there is "
            "nothing to turn.",
            Style(color=MUTED),
        )
    text = Text.assemble(
        (f"what-if · {row.phase} · {row.kernel}", Style(color=TEXT, bold=True)),
        ("   occupancy as the hardware's rules give it; no time is forecast\n\n", Style(color=MUTED)),
    )
    for number, knob in enumerate(KNOBS):
        here = number == chosen
        before, value = getattr(measured, knob.field), getattr(shape, knob.field)
        mark = "▸" if here else " "
        changed = f"  (measured: {knob.write(before)})" if value != before else ""
        text.append(f"{mark} {knob.title:<20}", Style(color=CURRENT if here else MUTED, bold=here))
        text.append(f"{knob.write(value):>10}", Style(color=PINNED if changed else TEXT))
        text.append(changed, Style(color=FAINT))
        if (cliff := cliff_text(shape, knob, arch)) != "":
            text.append(f"  {cliff}", Style(color=GOOD))
        text.append("\n")
    text.append("\n")
    text.append(f"  {'':<22}{'measured':>14}{'what-if':>14}\n", Style(color=MUTED))
    before, after = (occupancy_figures(item, arch, device.sm_count or 0) for item in (measured, shape))
    for title, one in before.items():
        two = after[title]
        color = PINNED if one != two else MUTED
        text.append(f"  {title:<22}{one:>14}{two:>14}\n", Style(color=color))
    return text


class WhatIfView(ViewPane):
    """↑ ↓ choose a knob, ← → turn it, r takes the measured shape again."""

    view: ClassVar[View] = "whatif"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of("whatif")

    def __init__(self) -> None:
        super().__init__()
        self.chosen = 0
        self.shape: BlockShape | None = None
        self._subject: tuple[str, BlockShape | None] | None = None

    def draw(self, state: State, width: int, height: int) -> Text:
        row = facts.selected_row(state)
        subject = (row.phase, block_shape(row)) if row else None
        if subject != self._subject:
            self._subject = subject
            self.shape = subject[1] if subject else None
        return whatif_text(state, self.shape, self.chosen, width)

    def explain(self, state: State) -> str:
        return "↑ ↓ choose what to turn, ← → turn it, n goes to its next cliff, r takes the measured shape."

    def action_knob(self, step: int) -> None:
        self.chosen = (self.chosen + step) % len(KNOBS)
        self.show(self._state)

    def action_turn(self, steps: int) -> None:
        arch = self._arch
        if self.shape is not None and arch:
            self.shape = turned(self.shape, KNOBS[self.chosen], steps, arch)
            self.show(self._state)

    def action_cliff(self) -> None:
        arch = self._arch
        cliff = next_cliff(self.shape, KNOBS[self.chosen].field, arch) if self.shape and arch else None
        if cliff is not None:
            self.shape = cliff
            self.show(self._state)

    def action_reset(self) -> None:
        self.shape = self._subject[1] if self._subject else None
        self.show(self._state)

    @property
    def _arch(self) -> str:
        window = self._state.window
        arch = window.device.arch if window else None
        return arch if arch and arch.startswith("sm_") else ""
