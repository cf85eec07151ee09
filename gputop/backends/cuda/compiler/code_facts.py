"""What the model of a launch takes from a kernel's machine code: its size, its main loop, and the rest."""

from __future__ import annotations

from collections.abc import Sequence

from gputop.backends.cuda.compiler.cubin import entry_code
from gputop.backends.cuda.compiler.issue_model import control, issue_model, straight_cycles
from gputop.backends.cuda.compiler.nvrtc import Cubin
from gputop.backends.cuda.compiler.sass import (
    INSTRUCTION_BYTES,
    Instruction,
    SassLoop,
    disassemble,
    holds,
    loops,
    main_loop,
)
from gputop.plan.launch_shape import CodeFacts
from gputop.util.errors import Unavailable

LOADS = r"LDG\."

_known: dict[tuple[str, str], CodeFacts | None] = {}
"""By the digest of a CUBIN and an entry: many sites share a kernel."""


def code_facts(cubin: Cubin, entry: str) -> CodeFacts | None:
    """Return the facts of one kernel; None without nvdisasm."""
    key = (cubin.digest, entry)
    if key not in _known:
        try:
            _known[key] = _read(cubin, entry)
        except Unavailable:
            _known[key] = None
    return _known[key]


def _read(cubin: Cubin, entry: str) -> CodeFacts:
    code = _without_padding(disassemble(cubin, entry))
    once = straight_cycles(code, control(entry_code(cubin.code, entry))[: len(code)])
    size_bytes = len(code) * INSTRUCTION_BYTES
    loop = main_loop(code)
    if loop is None:
        return CodeFacts(size_bytes, outside_cycles=once)
    cycles = issue_model(cubin, entry, loop).cycles
    return CodeFacts(
        code_bytes=size_bytes,
        loop_flops=loop.flops,
        loop_instructions=loop.instructions,
        loop_cycles=cycles,
        loads_per_wait=_loads_per_wait(cubin, entry, code, loop),
        outside_cycles=max(0, once - cycles),
    )


def _without_padding(code: Sequence[Instruction]) -> Sequence[Instruction]:
    """Behind the last exit a kernel branches to itself, and is filled up to a whole line."""
    ends = [index for index, instruction in enumerate(code) if instruction.opcode.split(".")[0] == "EXIT"]
    return code[: ends[-1] + 1] if ends else code


def _loads_per_wait(cubin: Cubin, entry: str, code: Sequence[Instruction], main: SassLoop) -> float:
    """In the loop that brings the main loop's operands: itself, or the innermost with most loads in it."""
    inside = [loop for loop in loops(code) if main.first <= loop.first and loop.last <= main.last]
    innermost = [loop for loop in inside if not any(holds(loop, other) for other in inside)]
    bringing = max(innermost, key=lambda loop: loop.count(LOADS), default=main)
    loads = bringing.count(LOADS)
    waits = issue_model(cubin, entry, bringing).waits
    return loads / waits if loads and waits else 1.0
