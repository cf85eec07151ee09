"""What would fill the SMs better: registers, shared memory and block size of the selected kernel, by keys.

The figures are the occupancy calculator's, for this architecture. No time is forecast from them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.binding import BindingType

from gputop.perf.gpu_specs import SmLimits, limits
from gputop.perf.occupancy import Occupancy, theoretical
from gputop.results.records import Row
from gputop.tui import facts
from gputop.tui.actions import bindings_of
from gputop.tui.palette import CURRENT, FAINT, GOOD, MUTED, PINNED, TEXT
from gputop.tui.state import State, View
from gputop.tui.views.pane import ViewPane
from gputop.util.errors import UsageError
from gputop.util.units import size_bytes

SMEM_STEP_BYTES = 1024
REGISTER_STEP = 8
WARP = 32
FIGURES = (
    "blocks an SM",
    "warps an SM",
    "limited by",
    "waves",
    "SMs without a block",
    "warps this grid gives",
)


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """What decides how many blocks an SM holds, and how many SMs have one."""

    threads: int
    registers: int
    smem_bytes: int
    blocks: int

    def occupancy(self, arch: str) -> Occupancy | None:
        """Return the occupancy; None if such a block fits on no SM."""
        try:
            found = theoretical(arch, self.threads, self.registers, 0, self.smem_bytes)
        except UsageError:
            return None
        return found if found.blocks_per_sm > 0 else None


@dataclass(frozen=True, slots=True)
class Knob:
    """One field of the shape that a key turns."""

    field: str
    title: str
    step: int
    write: Callable[[int], str]
    most: Callable[[SmLimits], int]


KNOBS = (
    Knob("registers", "registers a thread", REGISTER_STEP, str, lambda sm: sm.registers_per_thread),
    Knob(
        "smem_bytes", "shared memory", SMEM_STEP_BYTES, size_bytes, lambda sm: sm.smem_per_block_optin_bytes
    ),
    Knob("threads", "threads a block", WARP, str, lambda sm: sm.threads_per_block),
    Knob("blocks", "blocks of the grid", 4, str, lambda sm: 1 << 20),
)


def shape_of(row: Row) -> LaunchShape | None:
    """Return a row's launch shape; None if any part of it is unknown."""
    blocks = facts.blocks_of(row)
    threads = 1
    for part in (row.block or "0").split("x"):
        threads *= int(part)
    if not blocks or not threads or row.registers is None or row.smem_bytes is None:
        return None
    return LaunchShape(threads, row.registers, row.smem_bytes, blocks)


def turned(shape: LaunchShape, knob: Knob, steps: int, arch: str) -> LaunchShape:
    """Return the shape with a knob turned, within what the architecture allows."""
    value = getattr(shape, knob.field) + steps * knob.step
    least = WARP if knob.field == "threads" else 0 if knob.field == "smem_bytes" else 1
    bounded = max(least, min(value, knob.most(limits(arch))))
    return replace(shape, **{knob.field: bounded})


def next_cliff(shape: LaunchShape, knob: Knob, arch: str) -> LaunchShape | None:
    """Return the nearest smaller value of a knob at which an SM holds one more block, or None."""
    now = shape.occupancy(arch)
    if now is None or knob.field == "blocks":
        return None
    value = getattr(shape, knob.field)
    unit = {"registers": 1, "smem_bytes": 256, "threads": WARP}[knob.field]
    for smaller in range(value - unit, 0, -unit):
        trial = replace(shape, **{knob.field: smaller})
        found = trial.occupancy(arch)
        if found is not None and found.blocks_per_sm > now.blocks_per_sm:
            return trial
    return None


def whatif_text(state: State, shape: LaunchShape | None, chosen: int, width: int) -> Text:
    """Return the selected kernel's shape as measured and as turned, and the next cliff of each knob."""
    row = facts.selected_row(state)
    device = state.window.device if state.window else None
    if row is None or device is None:
        return Text("Nothing is measured yet.", Style(color=MUTED))
    measured = shape_of(row)
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
        cliff = next_cliff(shape, knob, arch)
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
    measured: LaunchShape, shape: LaunchShape, arch: str, sm: SmLimits, sms: int
) -> tuple[tuple[str, str, str], ...]:
    columns = [_figures(item, arch, sm, sms) for item in (measured, shape)]
    return tuple((title, columns[0][title], columns[1][title]) for title in columns[0])


def _figures(shape: LaunchShape, arch: str, sm: SmLimits, sms: int) -> dict[str, str]:
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
        self.shape: LaunchShape | None = None
        self._subject: tuple[str, LaunchShape | None] | None = None

    def draw(self, state: State, width: int, height: int) -> Text:
        row = facts.selected_row(state)
        subject = (row.phase, shape_of(row)) if row else None
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
        cliff = next_cliff(self.shape, KNOBS[self.chosen], arch) if self.shape and arch else None
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
