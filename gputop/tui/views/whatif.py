"""What would fill the SMs better: registers, shared memory and block size of the selected kernel, by keys.

The figures are the occupancy calculator's, for this architecture. No time is forecast from them.
"""

from __future__ import annotations

from math import ceil
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.binding import BindingType

from gputop.perf.block_shape import KNOBS, WARP, BlockShape, next_cliff, turned
from gputop.perf.gpu_specs import SmLimits, limits
from gputop.results.phase_facts import block_shape
from gputop.tui import facts
from gputop.tui.actions import bindings_of
from gputop.tui.palette import CURRENT, FAINT, GOOD, MUTED, PINNED, TEXT
from gputop.tui.state import State, View
from gputop.tui.views.pane import ViewPane

FIGURES = (
    "blocks an SM",
    "warps an SM",
    "limited by",
    "waves",
    "SMs without a block",
    "warps this grid gives",
)


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
    sm = limits(arch)
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
        cliff = next_cliff(shape, knob.field, arch)
        if cliff is not None:
            found = cliff.occupancy(arch)
            held = found.blocks_per_sm if found else 0
            said = (
                f"  one more block an SM from {knob.write(getattr(cliff, knob.field))} down ({held} blocks)"
            )
            text.append(said, Style(color=GOOD))
        text.append("\n")
    text.append("\n")
    text.append(f"  {'':<22}{'measured':>14}{'what-if':>14}\n", Style(color=MUTED))
    sms = device.sm_count or 0
    for title, one, two in _compared(measured, shape, arch, sm, sms):
        color = PINNED if one != two else MUTED
        text.append(f"  {title:<22}{one:>14}{two:>14}\n", Style(color=color))
    return text


def _compared(
    measured: BlockShape, shape: BlockShape, arch: str, sm: SmLimits, sms: int
) -> tuple[tuple[str, str, str], ...]:
    columns = [_figures(item, arch, sm, sms) for item in (measured, shape)]
    return tuple((title, columns[0][title], columns[1][title]) for title in columns[0])


def _figures(shape: BlockShape, arch: str, sm: SmLimits, sms: int) -> dict[str, str]:
    found = shape.occupancy(arch)
    if found is None:
        return dict.fromkeys(FIGURES, "does not fit")
    most = sm.warps_per_sm
    held = found.blocks_per_sm * sms
    return {
        "blocks an SM": str(found.blocks_per_sm),
        "warps an SM": f"{found.warps_per_sm} of {most}",
        "limited by": found.limiters[0] if found.limiters else "nothing",
        "waves": f"{shape.blocks / held:.2f}" if held else "unknown",
        "SMs without a block": str(max(0, sms - shape.blocks)),
        "warps this grid gives": f"{ceil(shape.blocks / max(1, sms)) * ceil(shape.threads / WARP)} an SM",
    }


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
