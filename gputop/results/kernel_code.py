"""A kernel's machine code as facts: what it needs, and what each of its loops issues."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gputop.util.units import size_bytes, whole

SCHEMA_CODE = "gputop.code/1"
MULTIPLY_ADDS = re.compile("HMMA|HGMMA|IMMA|DMMA|FFMA")
"""Opcodes that a loop is there for: named first, however few they are."""
SHOWN_LOOPS = 3
SHOWN_OPCODES = 6


@dataclass(frozen=True, slots=True)
class LoopMix:
    """The body of one loop: what a warp issues in one turn, both sides of a branch counted."""

    first: int
    last: int
    """Numbers of its first and last instruction in the kernel."""
    opcodes: tuple[tuple[str, int], ...]
    """(opcode without its modifiers, instructions), the most frequent first."""

    @property
    def instructions(self) -> int:
        return sum(count for _, count in self.opcodes)


@dataclass(frozen=True, slots=True)
class KernelCode:
    """One kernel entry as compiled for one architecture."""

    entry: str
    arch: str
    source: str
    """`kernels/gemm/11_warpgroup.cu:118`; without a line if the entry's name stands in no text of its own."""
    cubin: str
    """Digest of the machine code, as in the phase table."""
    registers: int | None
    smem_bytes: int | None
    """Static."""
    spill_bytes: int | None
    instructions: int | None
    """Of the whole kernel; None without a disassembler."""
    loops: tuple[LoopMix, ...] = ()
    """Those with most multiply-adds first, then the longest."""


def opcode_mix(opcodes: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Return how often each opcode stands, its modifiers left out: `LDG.E.128` counts as `LDG`."""
    found: Counter[str] = Counter()
    for opcode, count in opcodes.items():
        found[opcode.split(".")[0]] += count
    return tuple(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def code_lines(code: KernelCode) -> Iterator[str]:
    """Yield the kernel's place and needs, then the mix of its largest loops."""
    yield f"{code.entry}   {code.source}"
    needs = f"{whole(code.registers)} registers, spilled {spilled(code.spill_bytes)}"
    yield f"  {code.arch}, cubin {code.cubin}: {needs}, {whole(code.instructions)} instructions"
    for loop in code.loops[:SHOWN_LOOPS]:
        total = loop.instructions
        opcodes = sorted(loop.opcodes, key=lambda item: not MULTIPLY_ADDS.match(item[0]))
        mix = "  ".join(f"{name} {100 * count / total:.0f} %" for name, count in opcodes[:SHOWN_OPCODES])
        yield f"  loop of {total} instructions: {mix}"
    if len(code.loops) > SHOWN_LOOPS:
        yield f"  and {len(code.loops) - SHOWN_LOOPS} more loops"


def spilled(spill_bytes: int | None) -> str:
    """Return `none` for 0, since that is what one hopes to read."""
    return "none" if spill_bytes == 0 else size_bytes(spill_bytes)
