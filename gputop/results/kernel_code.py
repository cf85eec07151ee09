"""A kernel's machine code as facts: what it needs, and what each of its loops issues."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gputop.perf.kernel_facts import known_kernels
from gputop.perf.loop_mix import LoopMix
from gputop.util.units import size_bytes, whole

SCHEMA_CODE = "gputop.code/1"
MULTIPLY_ADDS = re.compile("HMMA|HGMMA|IMMA|DMMA|FFMA")
"""Opcodes that a loop is there for: named first, however few they are."""
SHOWN_LOOPS = 3
SHOWN_OPCODES = 6


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
    compiler: str = ""
    """`NVRTC 13.0` of what is shipped with gputop; empty for what was compiled here."""


def known_code(arch: str, kernel: str) -> tuple[KernelCode, ...]:
    """Return what is shipped of a kernel's entries for an architecture (`sm_90`); nothing if it is not known.

    It needs neither compiler nor disassembler, and knows none of a user's own kernels.
    """
    known = known_kernels(arch)
    return tuple(
        KernelCode(
            entry=entry,
            arch=known.arch,
            source=facts.source,
            cubin=facts.cubin,
            registers=facts.registers,
            smem_bytes=facts.smem_bytes,
            spill_bytes=facts.spill_bytes,
            instructions=facts.instructions,
            loops=facts.loops,
            compiler=known.compiler,
        )
        for entry in known.kernels.get(kernel, ())
        if (facts := known.entries.get(entry)) is not None
    )


def code_lines(code: KernelCode) -> Iterator[str]:
    """Yield the kernel's place and needs, then the mix of its largest loops."""
    yield f"{code.entry}   {code.source}"
    needs = f"{whole(code.registers)} registers, spilled {spilled(code.spill_bytes)}"
    shipped = f" by {code.compiler}, as shipped" if code.compiler else ""
    yield f"  {code.arch}{shipped}, cubin {code.cubin}: {needs}, {whole(code.instructions)} instructions"
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
