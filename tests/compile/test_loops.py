"""Loops are found in machine code, counted, and are those that the findings speak of."""

from __future__ import annotations

import pytest

from docs.loops import K_MAJOR, WMMA, MainLoop
from gputop.backends.cuda.compiler.sass import Instruction, SassLoop, disassemble, loops, main_loop
from gputop.cli.sass_loops import rows
from gputop.model.workloads import parse_workload
from gputop.plan.types import PlanRequest
from gputop.util.errors import Unavailable, UsageError
from tests.compile import sources
from tests.gpu.plans import catalog

ARCH = "90"
COMPILERS_DIFFER = 0.1
"""Share of a loop's instructions by which another NVRTC of the same major version may differ."""


def compiled_loop(source: str, entry: str) -> SassLoop:
    cubin = sources.cubin(source, ARCH)
    assert cubin is not None
    try:
        found = main_loop(disassemble(cubin, entry))
    except Unavailable as error:
        pytest.skip(str(error))
    assert found is not None
    return found


@pytest.mark.parametrize("told", [WMMA, K_MAJOR], ids=lambda told: told.entry)
def test_a_loop_is_what_the_findings_say(told: MainLoop) -> None:
    found = compiled_loop(told.source, told.entry)
    assert found.instructions == pytest.approx(told.instructions, rel=COMPILERS_DIFFER)
    assert found.mix[told.math] == told.math_count
    assert found.count(r"LD\.E$") == told.word_loads
    assert found.count("FSETP") == told.rounding // 2, "one comparison and one addition an operand"


def test_rounding_and_generic_loads_are_what_wmma_pays_for_not_knowing_its_layout() -> None:
    wmma, by_hand = (compiled_loop(told.source, told.entry) for told in (WMMA, K_MAJOR))
    assert by_hand.count("LDSM") > 0
    assert by_hand.count("FSETP") == 0
    assert K_MAJOR.flops_per_instruction > 4 * WMMA.flops_per_instruction
    assert wmma.count("LDSM") == 0


def test_the_innermost_loop_with_most_multiply_adds_is_the_main_one() -> None:
    code = [
        Instruction("MOV", "R0, 0x7"),
        Instruction("LDG.E", "R1, [R2]"),
        Instruction("FFMA", "R3, R1, R1, R3"),
        Instruction("LDS", "RZ, [RZ]", "@!PT"),
        Instruction("BRA", "0x20", "@P0"),
        Instruction("BRA", "0x10", "@P1"),
        Instruction("EXIT", ""),
        Instruction("BRA", "0x70"),
    ]
    inner, outer = loops(code)
    assert (inner.first, inner.last, inner.mix) == (2, 4, {"FFMA": 1, "BRA": 1})
    assert outer.instructions == 4
    assert main_loop(code) == inner
    assert main_loop(code[:1]) is None


def test_a_plans_kernels_are_listed_with_their_sites() -> None:
    try:
        found = {row[0]: row for row in rows(catalog(), parse_workload("mini"), PlanRequest("wmma"))}
    except Unavailable as error:
        pytest.skip(str(error))
    assert found["gemm_wmma_tall"][1] == "qkv w1 w2"
    assert found["gemm_wmma_tall"][3] == str(WMMA.math_count)
    assert int(found["gemm_wmma_tall"][5]) > WMMA.instructions, "a warp alone waits for its own results"
    assert found["gemm_wmma_tall"][6] == "0", "copies run ahead"
    assert "HMMA.1684" in found["gemm_wmma_tall"][7]
    assert found["pointwise_store"][2:7] == ("",) * 5


def test_a_frameworks_pass_has_no_loops_of_ours() -> None:
    with pytest.raises(UsageError, match="torch-compile is a framework's own pass"):
        next(rows(catalog(), parse_workload("mini"), PlanRequest("torch-compile")))
