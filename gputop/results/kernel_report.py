"""What is known of a user's own kernel after a save: whether it compiles, and its machine code."""

from __future__ import annotations

from dataclasses import dataclass

from gputop.plan.types import PlanRequest


@dataclass(frozen=True, slots=True)
class MachineCode:
    """One kernel as compiled; None is unknown, as all of a C function is."""

    kernel: str
    registers: int | None = None
    """A thread's."""
    spill_bytes: int | None = None
    smem_bytes: int | None = None
    """Static shared memory of a block."""
    code_bytes: int | None = None
    mix: tuple[tuple[str, int], ...] = ()
    """Opcode -> how many instructions of its main loop, or of all of it if it has none; most first."""
    of_loop: bool = False
    """Whether `mix` is the main loop's."""


@dataclass(frozen=True, slots=True)
class SourceFault:
    """Why a kernel can't be used, and the lines of its source around the first error."""

    why: str
    file: str = ""
    line: int | None = None
    """None: no line is known."""
    lines: tuple[tuple[int, str], ...] = ()
    """Numbered lines around it."""


@dataclass(frozen=True, slots=True)
class KernelReport:
    """One kernel after its files were saved."""

    kernel: str
    """Its name, or the file of a record that can't be used."""
    file: str
    """Its source below the folder, or that record."""
    fault: SourceFault | None = None
    site: str = ""
    """Where it is tried; empty if it can't be."""
    base: PlanRequest | None = None
    """The plan with the kernel that it would replace."""
    trial: PlanRequest | None = None
    """The same plan with it."""
    code: MachineCode | None = None
    incumbent: MachineCode | None = None
    """The kernel that it would replace."""
