"""What kernels declare of their loops is what their machine code says, or less where compilers differ."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import pytest

from gputop.backends.cuda.compiler.cubin import entry_code
from gputop.backends.cuda.compiler.issue_model import control, issue_model
from gputop.backends.cuda.compiler.nvrtc import Cubin
from gputop.backends.cuda.compiler.sass import INSTRUCTION_BYTES, SassLoop, disassemble, loops
from gputop.phases import layernorm_cuda
from gputop.phases.sass_loops import LOOP_BODIES, LoopBody
from gputop.util.errors import Unavailable, UsageError
from tests.compile import sources

ARCH = "90"
INSTRUCTIONS_DIFFER = 0.2
"""Share of a turn's instructions: versions of a compiler, and code in it for what is left over."""
CYCLES_ABOVE = 1.1
"""A declared turn may take so much longer than the compiled one at most."""
DECLARED: Mapping[str, LoopBody] = {**LOOP_BODIES, "layernorm_weights_ahead": layernorm_cuda.SENDING}
LOOPS_WITHIN = frozenset(
    {"attention_flash_64", "attention_flash_128", "attention_flash_warps", "attention_parallel dots"}
)
"""Turns that go through loops of their own, or past code that they never run: no loop has their figures."""


@cache
def cubins() -> dict[str, Cubin]:
    """Entry -> the file that has it."""
    found = (sources.cubin(name, ARCH) for name in sources.NAMES if not name.startswith("measure/"))
    return {entry: cubin for cubin in found if cubin is not None for entry in cubin.functions}


def kernel_loops(name: str) -> tuple[str, Cubin, tuple[SassLoop, ...]]:
    """Of the kernel that a turn is of."""
    entry = name.split()[0]
    cubin = cubins()[entry]
    try:
        return entry, cubin, loops(disassemble(cubin, entry))
    except Unavailable as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", sorted(DECLARED.keys() - LOOPS_WITHIN))
def test_a_turn_is_one_of_its_kernels_loops(name: str) -> None:
    told = DECLARED[name]
    entry, cubin, every = kernel_loops(name)
    loop = min(every, key=lambda loop: abs(loop.instructions - told.instructions))
    assert told.instructions == pytest.approx(loop.instructions, rel=INSTRUCTIONS_DIFFER)
    found = issue_model(cubin, entry, loop)
    assert told.cycles <= CYCLES_ABOVE * found.cycles
    assert told.waits <= found.waits
    assert (told.waits == 0) == (found.waits == 0)


@pytest.mark.parametrize("name", sorted(LOOPS_WITHIN))
def test_a_turn_through_other_loops_takes_longer_than_each_of_them(name: str) -> None:
    told = LOOP_BODIES[name]
    _, _, every = kernel_loops(name)
    assert told.instructions > min(loop.instructions for loop in every)
    assert told.cycles > told.instructions


def test_a_warp_never_issues_more_than_one_instruction_a_cycle() -> None:
    for name, told in DECLARED.items():
        assert told.cycles >= told.instructions, name


def test_control_bits_are_of_every_instruction_and_never_without_a_cycle() -> None:
    cubin = cubins()["gemm_coalesced"]
    bits = control(entry_code(cubin.code, "gemm_coalesced"))
    try:
        assert len(bits) >= len(disassemble(cubin, "gemm_coalesced"))
    except Unavailable as error:
        pytest.skip(str(error))
    assert len(entry_code(cubin.code, "gemm_coalesced")) == INSTRUCTION_BYTES * len(bits)
    assert all(own.pause >= 1 for own in bits)
    with pytest.raises(UsageError, match="no entry 'gone'"):
        entry_code(cubin.code, "gone")


def test_loads_that_go_out_together_are_one_wait() -> None:
    """The coalesced kernel asks for 16 columns of two operands in a turn, and stands still three times."""
    entry, cubin, (loop, *_) = kernel_loops("gemm_coalesced")
    assert issue_model(cubin, entry, loop).waits == 3
