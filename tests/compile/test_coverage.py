"""What the GPU tests of kernels reach, known without a GPU: no record goes untried."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gputop.backends.cuda.bind import plan_launches
from tests.gpu.plans import MATHS, PRODUCTS, SHAPES, Trial, catalog, request_for, trials

LEAST_SHAPES = 2


@pytest.mark.parametrize("trial", trials(), ids=lambda trial: trial.id)
def test_a_kernel_is_tried_at_several_shapes(trial: Trial) -> None:
    reached = []
    for shape in SHAPES:
        if not isinstance(request_for(trial, shape), str):
            reached.append(shape.name)
        if len(reached) == LEAST_SHAPES:
            return
    pytest.fail(f"{trial.id} can only be tried at {', '.join(reached) or 'no shape'}")


def test_every_entry_of_an_attention_is_tried_where_the_keys_are_more_than_one_round() -> None:
    """Four warps with 32 keys each go through 128 of them at a time."""
    tried: set[str] = set()
    kernels = [trial for trial in trials() if trial.kernel.covers == ("attention",)]
    for trial in kernels:
        for shape in (shape for shape in SHAPES if shape.dims.seq > 160):
            request = request_for(trial, shape)
            if not isinstance(request, str):
                plan = catalog().resolve(request, shape.dims, "cuda")
                dims = replace(shape.dims, batch=plan.batch)
                steps = [step for step in catalog().steps(plan, dims) if step.kernel == trial.kernel]
                assert steps
                tried |= {launch.entry for _, launch in plan_launches(tuple(steps), plan, dims)}
    assert tried == {entry for trial in kernels for entry in trial.kernel.entries}


def test_every_record_is_tried_in_every_math_that_a_plan_can_have() -> None:
    tried = {(trial.kernel.name, trial.math) for trial in trials()}
    for kernel in catalog().kernels.values():
        if kernel.backend == "cuda":
            maths = {math for math in MATHS if (kernel.name, math) in tried}
            assert maths, kernel.name
            if set(PRODUCTS) & set(kernel.covers):
                assert maths == set(kernel.maths) & set(MATHS), kernel.name
