"""Every kernel against float64 on fresh random weights and tokens, at the edges of its tiles."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from gputop.errors import NotHere
from gputop.session.session import Session
from gputop.spec import Kernel, Workload
from tests.gpu.plans import edge_workloads, kernels, request_for

SEED = secrets.randbits(31)
SETS = {
    "plain": (("batch", "2"),),
    "fused and pruned": (("batch", "2"), ("fused_stores", "on"), ("fused_qkv", "on"), ("prune", "on")),
}


@pytest.fixture(scope="module", params=edge_workloads(SEED), ids=lambda workload: f"{workload.name}-{SEED}")
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    workload: Workload = request.param
    opened = Session.open("cuda", workload)
    yield opened
    opened.close()


@pytest.mark.parametrize("sets", SETS.values(), ids=SETS)
@pytest.mark.parametrize("kernel", kernels(), ids=lambda kernel: kernel.name)
def test_a_kernel_is_right_at_every_shape_it_takes(
    session: Session, kernel: Kernel, sets: tuple[tuple[str, str], ...]
) -> None:
    request = request_for(kernel, session.workload.dims, sets)
    if isinstance(request, str):
        pytest.skip(request)
    try:
        gate = session.check(request)
    except NotHere as error:
        pytest.skip(str(error))
    assert gate.status == "PASS", gate.where
