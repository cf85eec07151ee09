"""A recording served in this process: its faults are sentences, and it takes turns with a worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gputop.ipc.connection import Connection
from gputop.model.workloads import parse_workload
from gputop.plan.types import PlanRequest
from gputop.session.replay import Replay
from gputop.util.errors import UsageError, WorkerLost

TINY = parse_workload("tiny")
WMMA = PlanRequest("wmma")


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with Connection(log_path=tmp_path / "worker.log") as connection:
        yield connection


def test_a_worker_runs_while_a_device_is_open_and_only_then(connection: Connection) -> None:
    worker = connection._worker
    assert connection.open("replay", TINY, device="h200-products").device.recording
    assert connection.recording is not None
    assert not worker.alive
    connection.open("cpu", TINY)
    assert worker.alive
    assert connection.recording is None
    with pytest.raises(UsageError, match="no recording 'none'"):
        connection.open("replay", TINY, device="none")
    assert connection.resolve(PlanRequest("cpu-blas")).word == "cpu-blas", "what was open stays open"
    connection.open("replay", TINY, device="h200-products")
    assert not worker.alive
    assert connection.resolve(WMMA).word == "wmma"


def test_what_was_read_ahead_is_read_once(tmp_path: Path) -> None:
    ahead = Replay.open("h200-products")
    with Connection(log_path=tmp_path / "worker.log", read_ahead=ahead) as connection:
        connection.open("replay", TINY, device="h200-products")
        assert connection.recording is ahead.recording
        connection.open("replay", TINY, device="h200-products")
        assert connection.recording is not ahead.recording, "a file may have changed since"


def test_kernels_of_ones_own_change_nothing_in_a_recording(connection: Connection, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a recording was measured already"):
        connection.open("replay", TINY, device="h200-products", kernels_dir=str(tmp_path))


def test_a_fault_of_ours_costs_one_question_and_stands_in_the_log(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("nothing")

    connection.open("replay", TINY, device="h200-products")
    with monkeypatch.context() as patch:
        patch.setattr(Replay, "view", broken)
        with pytest.raises(WorkerLost, match=r"failed at resolve \(KeyError: 'nothing'\)"):
            connection.resolve(WMMA)
    assert any("Traceback" in line for line in connection.log.lines())
    assert connection.restart() is not None
    assert connection.resolve(WMMA).word == "wmma"


def test_nothing_is_open_at_first(connection: Connection) -> None:
    with pytest.raises(WorkerLost, match="is not running"):
        connection.resolve(WMMA)
