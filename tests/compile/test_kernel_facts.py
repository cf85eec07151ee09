"""What is shipped of our kernels' machine code is what NVRTC makes of their sources."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from docs.write_kernel_facts import ARCHITECTURES, facts_of, why_not
from gputop.backends.cuda.compiler.cubin import entry_code
from gputop.backends.cuda.compiler.issue_model import control, issue_model
from gputop.backends.cuda.compiler.nvrtc import Cubin
from gputop.backends.cuda.compiler.sass import INSTRUCTION_BYTES, disassemble, loops
from gputop.perf.kernel_facts import KnownKernels, known_kernels
from gputop.util.errors import Unavailable, UsageError
from tests.compile import sources

ARCH = "90"
COMPILERS_DIFFER = 0.5
"""Share of a kernel's code by which another version of NVRTC may differ."""


@cache
def compiled(arch: str) -> KnownKernels:
    try:
        return facts_of(arch)
    except Unavailable as error:
        pytest.skip(str(error))


@pytest.mark.thorough
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_file_is_what_its_compiler_makes_of_the_sources(arch: str) -> None:
    found, shipped = compiled(arch), known_kernels(f"sm_{arch}")
    assert found.entries.keys() == shipped.entries.keys(), "run python -m docs.write_kernel_facts"
    for entry, facts in found.entries.items():
        told = shipped.entries[entry]
        if found.compiler == shipped.compiler:
            assert facts == told, f"{entry}: run python -m docs.write_kernel_facts"
        assert told.code.code_bytes == pytest.approx(facts.code.code_bytes, rel=COMPILERS_DIFFER), entry


def test_facts_by_another_compiler_replace_none_unless_that_is_asked_for() -> None:
    shipped = known_kernels(f"sm_{ARCH}")
    assert why_not(shipped, shipped) == ""
    assert why_not(shipped, replace(shipped, compiler="")) == "", "there were none"
    why = why_not(replace(shipped, compiler="NVRTC 99.9"), shipped)
    assert f"by {shipped.compiler}, and this is NVRTC 99.9" in why
    assert "nvidia-cuda-nvrtc==" in why


def test_a_warp_never_issues_more_than_one_instruction_a_cycle() -> None:
    for entry, facts in known_kernels(f"sm_{ARCH}").entries.items():
        assert facts.code.loop_cycles >= facts.code.loop_instructions, entry


@cache
def coalesced() -> Cubin:
    cubin = sources.cubin("gemm/02_coalesced.cu", ARCH)
    assert cubin is not None
    return cubin


def test_control_bits_are_of_every_instruction_and_never_without_a_cycle() -> None:
    cubin = coalesced()
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
    try:
        loop, *_ = loops(disassemble(coalesced(), "gemm_coalesced"))
    except Unavailable as error:
        pytest.skip(str(error))
    assert issue_model(coalesced(), "gemm_coalesced", loop).waits == 3
