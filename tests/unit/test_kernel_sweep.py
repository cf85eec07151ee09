"""The routing of a plan's sites on a real worker, and its end where time runs out."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path

import pytest

from gputop.cli.commands import ladder
from gputop.cli.kernel_sweep import OUT_OF_TIME, Router
from gputop.cli.worker_session import WorkerSession
from gputop.plan.types import PlanRequest
from tests.homes import homes_in


@pytest.fixture
def bench(tmp_path: Path, calibrated: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerSession]:
    for name, folder in homes_in(tmp_path, calibrated).items():
        monkeypatch.setenv(name, folder)
    parser = argparse.ArgumentParser()
    ladder.COMMAND.add_arguments(parser)
    options = parser.parse_args(["--backend", "cpu", "--workload", "tiny", "--seconds", "0.05"])
    with WorkerSession(options) as opened:
        yield opened


def test_what_the_budget_leaves_out_is_said_and_not_guessed(bench: WorkerSession) -> None:
    late = chain([0.0], repeat(1e9))
    routing = Router(bench, PlanRequest("cpu-blas"), clock=lambda: next(late)).measure()
    others = [route for route in routing.routes if not route.incumbent]
    assert others
    for route in others:
        assert (route.time_s, route.ratio, route.status) == (None, None, OUT_OF_TIME)
    own = [route for route in routing.routes if route.incumbent]
    assert [route.site for route in own] == list(routing.sites())
    assert all(route.time_s is None for route in own), "its time is known only from windows"
