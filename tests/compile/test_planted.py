"""Faults of the GPU tests match the text of the kernels, once each; with --thorough they compile too.

Without a GPU: whether a gate catches them is for tests/gpu. Here no fault can silently come to test nothing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gputop.backends.cuda.bind import plan_launches
from gputop.backends.cuda.compiler.nvrtc import arch_of, compile_source
from gputop.model.workloads import parse_workload
from gputop.plan.plan_string import parse_word
from gputop.planner.resolver import Resolver, plan_dims
from tests.compile import sources
from tests.gpu.planted import FAULTS, LAPSES, Fault, altered, planted

ARCH = "90"
MINI = parse_workload("mini")


def compiled(kernels: Path, source: str) -> bytes:
    arch = arch_of((kernels / source).read_text(encoding="utf-8"), ARCH)
    assert arch is not None
    return compile_source(kernels / source, source, arch, (kernels,)).code


EVERY = pytest.mark.parametrize("fault", [*FAULTS, *LAPSES], ids=lambda fault: fault.id)


@EVERY
def test_a_fault_is_in_a_source_that_its_plan_runs(tmp_path: Path, fault: Fault) -> None:
    planted(tmp_path, fault)
    plan = Resolver.load().resolve(parse_word(fault.word), MINI.dims, "cuda")
    dims = plan_dims(MINI, plan)
    steps = Resolver.load().steps(plan, dims)
    run = {step.kernel.source for step in steps}
    run |= {launch.source for _, launch in plan_launches(steps, plan, dims)}
    assert fault.source in run or fault.source.startswith("measure/")


@pytest.mark.thorough
@EVERY
def test_a_fault_compiles_to_other_code(tmp_path: Path, fault: Fault) -> None:
    whole = sources.cubin(fault.source, ARCH)
    assert whole is not None
    assert compiled(planted(tmp_path, fault), fault.source) != whole.code


def test_no_two_faults_have_one_name() -> None:
    assert len({fault.id for fault in (*FAULTS, *LAPSES)}) == len(FAULTS) + len(LAPSES)


def test_text_that_is_not_there_once_is_refused(tmp_path: Path) -> None:
    for number, text in enumerate(("no such text", "sum")):
        with pytest.raises(AssertionError, match="times, not once"):
            altered(tmp_path / str(number), "gemm/01_naive.cu", ((text, "x"),))
