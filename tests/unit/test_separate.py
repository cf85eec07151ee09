"""Plans that a library would let disturb all others run in processes of their own."""

from __future__ import annotations

import pytest

from gputop.backends.cuda.availability import available
from gputop.backends.cuda.backend import is_separate
from gputop.backends.cuda.separate import prepared
from gputop.backends.cuda.separate.messages import Prepare
from gputop.backends.cuda.separate.prepared import SeparatePrepared
from gputop.model.workloads import parse_workload
from gputop.plan.types import Plan, PlanRequest, Step
from gputop.planner.resolver import Resolver, plan_dims
from gputop.util.errors import Unavailable, WorkerLost
from gputop.util.paths import kernels_dir

WORKLOAD = parse_workload("mini")


def resolved(rung: str) -> tuple[Plan, tuple[Step, ...]]:
    catalog = Resolver.load().on("sm_90")
    plan = catalog.resolve(PlanRequest(rung), WORKLOAD.dims, "cuda")
    return plan, catalog.steps(plan, plan_dims(WORKLOAD, plan))


def silent(text: str) -> None:
    """Says nothing."""


@pytest.mark.parametrize("rung", ["oracle-fp32", "oracle-tf32", "dispatch", "torch-eager", "torch-compile"])
def test_plans_of_libraries_that_change_launches_are_separate(rung: str) -> None:
    assert is_separate(*resolved(rung))


@pytest.mark.parametrize("rung", ["naive", "split-k", "cublaslt", "graph", "megakernel", "hopper"])
def test_other_plans_share_the_measuring_process(rung: str) -> None:
    assert not is_separate(*resolved(rung))


def test_what_is_missing_there_is_said_here() -> None:
    """The other process opens the device itself, and says that there is none as this one would."""
    missing = available()
    if missing is None:
        pytest.skip("there is a device here")
    plan, steps = resolved("oracle-tf32")
    with pytest.raises(Unavailable) as caught:
        SeparatePrepared(Prepare(WORKLOAD, None, kernels_dir(), plan), steps, silent)
    assert str(caught.value) == missing


def test_a_process_that_ends_by_itself_loses_the_plan_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prepared, "MODULE", "this")
    plan, steps = resolved("oracle-tf32")
    with pytest.raises(WorkerLost, match=r"runs oracle-tf32 ended by itself \(exit code 0\)"):
        SeparatePrepared(Prepare(WORKLOAD, None, kernels_dir(), plan), steps, silent)
