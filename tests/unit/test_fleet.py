"""A fleet of two cpu workers here: a real scheduler, real Dask workers, real measuring processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gputop.backends.cuda import availability
from gputop.backends.cuda.runtime.devices import Visible
from gputop.cli import main
from gputop.fleet import fleet as fleet_module
from gputop.fleet.fleet import Fleet, FleetDevice, Outcome, check_address
from gputop.fleet.jobs import Job, LadderJob, Met, Opening, Pair, PairJob
from gputop.fleet.local import LocalFleet, cpu_shares, gpu_shares
from gputop.fleet.pairs import PairMeasurer
from gputop.ipc.protocol import Opened
from gputop.model.workloads import parse_workload
from gputop.plan.types import PlanRequest
from gputop.results import recording
from gputop.results.records import DeviceFacts
from gputop.util.errors import UsageError, WorkerLost
from tests.unit.pretend import pretend_devices

psutil: Any = pytest.importorskip("psutil", reason="Dask is not installed")
distributed: Any = pytest.importorskip("distributed")

GPUTOP = (sys.executable, "-m", "gputop")
LOOPS, BLAS = PlanRequest("cpu-loops"), PlanRequest("cpu-blas")
MEASURE = ("--backend", "cpu", "--workload", "tiny", "--rungs", "cpu-loops,cpu-blas", "--seconds", "0.3")
GONE_S = 20.0
ARRIVAL_S = 60.0

needs_two_cores = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="needs two cores"
)


@pytest.fixture(scope="module")
def local() -> Iterator[LocalFleet]:
    with LocalFleet(cpu_shares(2)) as started:
        # A command takes the workers that are there.
        with distributed.Client(started.address) as client:
            client.wait_for_workers(2, timeout=ARRIVAL_S)
        yield started


def connected(local: LocalFleet, progress: Any = lambda text: None, workers: int = 2) -> Fleet:
    opening = Opening("cpu", parse_workload("tiny"))
    return Fleet(local.address, opening, note=lambda text: None, progress=progress, workers=workers)


def process_of(local: LocalFleet, device: FleetDevice) -> subprocess.Popen[bytes]:
    """The Dask worker that runs on this device's cores."""
    return next(
        process
        for process in local.processes
        if process.poll() is None and os.sched_getaffinity(process.pid) == set(device.met.cores)
    )


@needs_two_cores
def test_a_ladder_stands_side_by_side_and_pooled(
    local: LocalFleet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "fleet.json"
    code = main(["fleet", "ladder", "--scheduler", local.address, *MEASURE, "--json", str(table)])
    out, err = capsys.readouterr()
    assert code == 0
    assert len(re.findall(r"device \d .* is done", err)) == 2
    assert re.search(r"^cpu-blas +cpu-loops ", out, re.MULTILINE)
    rows = json.loads(table.read_text())["rows"]
    assert {(row["number"], row["name"]) for row in rows if row["number"]} == {
        (number, rung) for number in (1, 2) for rung in ("cpu-loops", "cpu-blas")
    }
    assert all(row["gate"] == "PASS" and row["value"] > 0 for row in rows if row["number"])


@needs_two_cores
def test_each_device_has_a_recording_of_its_own(
    local: LocalFleet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fleet", "record", str(tmp_path), "--scheduler", local.address, *MEASURE]) == 0
    files = sorted(tmp_path.iterdir())
    assert [file.name[0] for file in files] == ["1", "2"]
    for file in files:
        kept = recording.read(file)
        assert kept.whole
        assert {window.comparison is not None for window in kept.windows} == {True}
    assert "2: " in capsys.readouterr().out


@needs_two_cores
def test_whoever_leaves_takes_along_what_was_measuring_for_it(local: LocalFleet) -> None:
    """As ^C does: Dask itself lets a task that runs go on to its end."""
    heard: list[str] = []
    with connected(local, heard.append) as fleet:
        (dask_worker,) = {process_of(local, device).pid for device in fleet.devices[:1]}
        (measuring,) = psutil.Process(dask_worker).children()
        fleet.start(fleet.devices[0], LadderJob((LOOPS, BLAS), seconds=600.0))
        while not heard:
            assert list(fleet.ended()) == []
    gone, alive = psutil.wait_procs([measuring], timeout=GONE_S)
    assert (len(gone), alive) == (1, [])


@needs_two_cores
def test_a_device_that_is_killed_in_mid_ladder_is_named_and_the_rest_goes_on(local: LocalFleet) -> None:
    heard: list[str] = []
    with connected(local, heard.append) as fleet:
        victim, other = fleet.devices
        for device in fleet.devices:
            fleet.start(device, LadderJob((LOOPS, BLAS), seconds=0.5))
        while not heard:
            assert list(fleet.ended()) == []
        process_of(local, victim).kill()
        outcomes: dict[FleetDevice, Outcome[Any]] = {}
        while len(outcomes) < 2:
            outcomes |= {outcome.device: outcome for outcome in fleet.ended()}
        assert isinstance(outcomes[victim].error, WorkerLost)
        assert victim.name in str(outcomes[victim].error)
        ladder = outcomes[other].result
        assert ladder is not None
        assert [entry.gate.ok for entry in ladder.entries] == [True, True]
        assert fleet.devices == (other,)


@needs_two_cores
def test_each_pair_has_a_window_of_its_own_or_the_reason(local: LocalFleet) -> None:
    pairs = [Pair(LOOPS, BLAS), Pair(BLAS, LOOPS), Pair(BLAS, PlanRequest("no-such-rung"))]
    with connected(local, workers=1) as fleet:
        measurer = PairMeasurer(fleet, seconds=0.1)
        outcomes = {outcome.pair: outcome for outcome in measurer.measure(pairs)}
        assert measurer.under_way == 0
    for pair in pairs[:2]:
        window = outcomes[pair].window
        assert window is not None
        assert [(lane.role, lane.plan) for lane in window.lanes] == [
            ("current", pair.candidate.rung),
            ("pinned", pair.incumbent.rung),
        ]
    error = outcomes[pairs[2]].error
    assert isinstance(error, UsageError)
    assert "no-such-rung" in str(error)


@needs_two_cores
def test_a_search_goes_on_when_one_of_its_devices_is_killed(
    local: LocalFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goes on where the test before left one worker."""
    for name in ("XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    local.start(next(share for share in cpu_shares(2) if not _is_served(local, share.cores)))
    given: list[FleetDevice] = []
    start = Fleet.start

    def start_and_kill(fleet: Fleet, device: FleetDevice, job: Job[Any]) -> None:
        start(fleet, device, job)
        if isinstance(job, PairJob):
            given.append(device)
            if len(given) == 3:
                process_of(local, device).kill()

    monkeypatch.setattr(Fleet, "start", start_and_kill)
    table = tmp_path / "search.json"
    words = (*MEASURE[:4], "--budget", "3", "--seconds", "0.05", "--json", str(table))
    assert main(["search", "--scheduler", local.address, *words]) == 0
    err = capsys.readouterr().err
    assert len(set(given)) == 2, "both devices measured"
    assert err.count("takes part") == 2, "one of them came after the start"
    assert len(json.loads(table.read_text())["rows"]) >= 3


def _is_served(local: LocalFleet, cores: tuple[int, ...]) -> bool:
    alive = [process for process in local.processes if process.poll() is None]
    return any(os.sched_getaffinity(process.pid) == set(cores) for process in alive)


def met(host: str, cores: tuple[int, ...], uuid: str | None = None) -> Met:
    workload = parse_workload("tiny")
    device = DeviceFacts("cuda" if uuid else "cpu", "A device", uuid=uuid)
    return Met("1", host, cores, Opened(id=1, device=device, workload=workload, rungs=(), default_rung=""))


def test_two_workers_that_would_disturb_each_other_share_a_place() -> None:
    """Cores of a host, or a GPU, whichever cores its workers run on."""
    assert met("a", (0, 1)).places & met("a", (1, 2)).places
    assert not met("a", (0, 1)).places & met("b", (0, 1)).places
    assert not met("a", (0,)).places & met("a", (1,)).places
    assert met("a", (0,), "GPU-1").places & met("a", (1,), "GPU-1").places
    assert not met("a", (0,), "GPU-1").places & met("a", (0,), "GPU-2").places


def test_each_local_gpu_is_one_workers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    uuids = [f"GPU-00000000-0000-0000-0000-00000000000{n}" for n in range(3)]
    archs = ("90", "70", "80")
    listed = [
        Visible(n, uuid, "A GPU", arch, 1 << 30)
        for n, (uuid, arch) in enumerate(zip(uuids, archs, strict=True))
    ]
    pretend_devices(monkeypatch, listed)
    monkeypatch.setattr(availability, "available", lambda: None)
    assert [share.device for share in gpu_shares(2)] == [uuids[0], uuids[2]], "the old one is passed over"
    with pytest.raises(UsageError, match="2 devices"):
        gpu_shares(3)


def test_without_a_gpu_there_is_no_fleet_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    lacking = availability.available()
    if lacking is None:
        pytest.skip("a GPU is here")
    assert main(["fleet", "calibrate", "--local", "1", "--backend", "cuda"]) == 3
    assert lacking in capsys.readouterr().err


def test_ctrl_c_ends_every_process(tmp_path: Path) -> None:
    command = [*GPUTOP, "fleet", "ladder", "--local", "1", *MEASURE[:-1], "600"]
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, env=env, text=True, start_new_session=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "device 1" in line:
                break
        started = psutil.Process(process.pid).children(recursive=True)
        assert len(started) >= 2, "a Dask worker and a measuring process"
        os.killpg(process.pid, signal.SIGINT)
        # Amid an import that makes a dataclass, Python ends itself by the signal. Of both a shell says 130.
        assert process.wait(GONE_S) in (130, -signal.SIGINT)
        assert psutil.wait_procs(started, timeout=GONE_S)[1] == []
        assert "Traceback" not in process.stderr.read()


@pytest.mark.parametrize(
    "address", ["node1", "tcp://node1", "http://node1:8786", "node1:port", "tcp://:1", ""]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="HOST:PORT"):
        check_address(address)


def test_without_a_scheduler_there_is_no_fleet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fleet_module, "CONNECT_S", 0.2)
    assert main(["fleet", "ladder", "--scheduler", "tcp://127.0.0.1:9", *MEASURE]) == 3
    assert "No Dask scheduler answers" in capsys.readouterr().err


def test_without_dask_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "dask", None)
    assert main(["fleet", "ladder", "--local", "1"]) == 3
    assert "fleet" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("record", "--local", "1"), "FOLDER"),
        (("ladder", "folder", "--local", "1"), "leave 'folder' out"),
        (("ladder", "--local", "1", "--force"), "--force"),
        (("calibrate", "--local", "1", "--batches", "1,2"), "--batches"),
        (("ladder",), "--scheduler"),
        (("ladder", "--local", "4096", "--backend", "cpu"), "cores"),
        (("ladder", "--local", "1", "--backend", "replay"), "replay"),
        (("laddre", "--local", "1"), "'ladder'"),
    ],
)
def test_what_can_not_be_is_refused(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fleet", *words]) == 2
    assert said in capsys.readouterr().err
