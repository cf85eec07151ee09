"""How fast one warp alone gets through a loop, by the control bits of its machine code (sm_70 and later).

ptxas writes into every instruction how many cycles the warp pauses after it, and which of six scoreboards
it waits for or raises. Following them in order gives a turn's least time, whatever else the SM does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gputop.backends.cuda.compiler.cubin import entry_code
from gputop.backends.cuda.compiler.nvrtc import Cubin
from gputop.backends.cuda.compiler.sass import INSTRUCTION_BYTES, Instruction, SassLoop, disassemble

SCOREBOARDS = 6
NONE = 7
"""A scoreboard's number where an instruction raises none."""
CONTROL_BIT = 105

LATENCY_CYCLES = (
    ("LDSM", 33),
    ("LDS", 29),
    ("LD.E", 33),
    ("LDC", 30),
    ("HMMA.1688", 33),
    ("HMMA", 18),
    ("SHFL", 23),
    ("MUFU", 18),
    ("S2", 20),
)
"""Opcodes by their beginnings, the first that fits: from issue to use on Hopper, as microbenchmarks publish
them. Generic loads read shared memory in our kernels."""
OTHER_CYCLES = 15
"""Of any other instruction that raises a scoreboard."""
SOURCE_CYCLES = 12
"""Until an instruction that goes elsewhere has read its operands."""
FROM_MEMORY = ("LDG.", "ATOM")
FAR_CYCLES = 10_000
"""Stands for memory: far longer than all else, so that what waits for it is seen."""


@dataclass(frozen=True, slots=True)
class IssueModel:
    """A turn of a loop, its memory aside."""

    cycles: int
    """With memory that answers at once."""
    waits: int
    """How often it stands still until loads have come; loads that go out together are one wait."""


class Control(NamedTuple):
    """An instruction's control bits."""

    pause: int
    raises: int
    """Scoreboard that falls when its result is there."""
    reads: int
    """Scoreboard that falls when its operands have been read."""
    waits_for: int
    """Bit mask of scoreboards."""


def control(code: bytes) -> tuple[Control, ...]:
    """Decode the control bits of each instruction of an entry's code."""
    words = (code[at : at + INSTRUCTION_BYTES] for at in range(0, len(code), INSTRUCTION_BYTES))
    bits = (int.from_bytes(word, "little") >> CONTROL_BIT for word in words)
    return tuple(Control(max(b & 15, 1), b >> 5 & 7, b >> 8 & 7, b >> 11 & 63) for b in bits)


def issue_model(cubin: Cubin, entry: str, loop: SassLoop) -> IssueModel:
    """Return the model of one iteration, no branch taken. Raise Unavailable without nvdisasm."""
    code = disassemble(cubin, entry)[loop.first : loop.last + 1]
    bits = control(entry_code(cubin.code, entry))[loop.first : loop.last + 1]
    near, far = (_steady(code, bits, memory) for memory in (0, FAR_CYCLES))
    return IssueModel(near, round((far - near) / FAR_CYCLES))


def straight_cycles(code: Sequence[Instruction], bits: Sequence[Control]) -> int:
    """Cycles of one warp that walks through the code once, no branch taken and memory that answers at
    once.
    """
    return _cycles(code, bits, 1, 0)


def _steady(code: Sequence[Instruction], bits: Sequence[Control], memory_cycles: int) -> int:
    """Cycles that a turn adds once the loop has got going."""
    return _cycles(code, bits, 3, memory_cycles) - _cycles(code, bits, 2, memory_cycles)


def _cycles(code: Sequence[Instruction], bits: Sequence[Control], turns: int, memory_cycles: int) -> int:
    now, falls = 0, [0] * SCOREBOARDS
    for instruction, own in list(zip(code, bits, strict=True)) * turns:
        waited_for = (falls[board] for board in range(SCOREBOARDS) if own.waits_for >> board & 1)
        now = max((now, *waited_for))
        for board, after in (
            (own.raises, _latency(instruction.opcode, memory_cycles)),
            (own.reads, SOURCE_CYCLES),
        ):
            if board != NONE:
                falls[board] = max(falls[board], now + after)
        now += own.pause
    return now


def _latency(opcode: str, memory_cycles: int) -> int:
    if opcode.startswith(FROM_MEMORY):
        return memory_cycles
    return next((cycles for start, cycles in LATENCY_CYCLES if opcode.startswith(start)), OTHER_CYCLES)
