"""Every kernel against float64 on fresh random weights and tokens, at the edges of its tiles."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from gputop.session.session import Session
from tests.gpu.plans import SHAPES, Shape, Trial, gate_of, request_for, trials

SEED = secrets.randbits(31)


@pytest.fixture(scope="module", params=SHAPES, ids=lambda shape: f"{shape.name}-{SEED}")
def tried(request: pytest.FixtureRequest) -> Iterator[tuple[Session, Shape]]:
    shape: Shape = request.param
    opened = Session.open("cuda", shape.workload(SEED))
    yield opened, shape
    opened.close()


@pytest.mark.parametrize("trial", trials(), ids=lambda trial: trial.id)
def test_a_kernel_is_right_at_every_shape_it_takes(tried: tuple[Session, Shape], trial: Trial) -> None:
    session, shape = tried
    request = request_for(trial, shape)
    if isinstance(request, str):
        pytest.skip(request)
    gate = gate_of(session, request)
    assert gate.status == "PASS", gate.where
