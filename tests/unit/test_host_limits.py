"""What a host allows and what others take of it: real processes in real control groups, and beside others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gputop.ipc.protocol import PROTOCOL_VERSION, Hello, Open, encode
from gputop.ipc.worker_client import WorkerClient
from gputop.model.workloads import parse_workload
from gputop.plan.types import PlanRequest
from gputop.results.export import windows_json
from gputop.results.host_words import quota_words
from gputop.session.session import Session
from gputop.util import host_cpu
from gputop.util.errors import WorkerLost
from gputop.util.host_cpu import CpuTimes, CpuUse
from tests.limits import control_group, joining

BURN = "print(flush=True)\nwhile True: pass"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A user's folders of this test's own."""
    return {**os.environ, **{f"XDG_{kind}_HOME": str(tmp_path / kind) for kind in ("CACHE", "STATE")}}


@pytest.fixture
def burner() -> Iterator[None]:
    """Another program that takes all it can get."""
    with subprocess.Popen([sys.executable, "-c", BURN], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield
        process.kill()


@pytest.mark.usefixtures("burner")
def test_what_others_use_is_read_in_the_window_and_said_of_it() -> None:
    session = Session.open("cpu", parse_workload("tiny"))
    window = session.measure(PlanRequest("cpu-blas"), seconds=0.5)
    session.close()
    others = window.health.others_cores
    if others is None:
        pytest.skip("this system does not tell what its cores do")
    assert window.health.host_cores == host_cpu.affinity_cores()
    # The burner gets the share of a core that the machine gives it, whoever else is at work.
    assert others > 0.1
    lane = window.lane("current")
    assert lane is not None
    statuses = [row.status or "" for row in lane.rows if row.phase in ("device", "wall")]
    assert all("others use" in status and "of your" in status for status in statuses)
    assert any(note.startswith("others use") for note in window.notes)
    (record,) = json.loads(windows_json([window]))["rows"]
    assert record["others_cores"] == others


def test_a_quota_bounds_the_threads_and_its_waits_are_counted(env: dict[str, str]) -> None:
    code = (
        "from gputop.util import host_cpu\n"
        "before = host_cpu.cpu_times()\n"
        "while host_cpu.cpu_times().own_s - before.own_s < 0.1: pass\n"
        "use = host_cpu.use_between(before, host_cpu.cpu_times())\n"
        "print(host_cpu.usable_cores(), host_cpu.whole_cores(), use.throttled_s)\n"
    )
    files = {"cpu.cfs_quota_us": "5000", "cpu.cfs_period_us": "50000"}
    with control_group("cpu", files) as procs:
        command = joining(procs, [sys.executable, "-c", code])
        ran = subprocess.run(command, env=env, capture_output=True, text=True)
    usable, whole, throttled = ran.stdout.split()
    assert (usable, whole) == ("0.1", "1")
    assert float(throttled) > 0.05, "nine tenths of the time it waits"


def test_a_batch_too_large_for_the_control_group_is_refused_with_the_one_that_fits(
    env: dict[str, str],
) -> None:
    command = [sys.executable, "-m", "gputop", "run", "--backend", "cpu", "--workload", "mini"]
    with control_group("memory", {"memory.limit_in_bytes": str(700 << 20)}) as procs:
        run = joining(procs, [*command, "--seconds", "0.1", "--batch"])
        refused = subprocess.run([*run, "512"], env=env, capture_output=True, text=True)
        assert refused.returncode == 2, refused.stderr
        fits = refused.stderr.strip().rpartition("--batch ")[2].rstrip(".")
        fitting = subprocess.run([*run, fits], env=env, capture_output=True, text=True)
    assert fitting.returncode == 0, fitting.stderr


def test_a_worker_that_the_kernel_ends_for_its_memory_says_so(tmp_path: Path) -> None:
    greeting = encode(Hello(protocol=PROTOCOL_VERSION, version="9.9", pid=1, host="here"))
    code = f"import os, sys; os.write(1, {greeting!r}); sys.stdin.readline(); bytearray(10**10)"
    with control_group("memory", {"memory.limit_in_bytes": str(64 << 20)}) as procs:
        command = joining(procs, [sys.executable, "-c", code])
        client = WorkerClient(command=command, log_path=tmp_path / "worker.log")
        client.start()
        with pytest.raises(WorkerLost, match=r"SIGKILL\. Memory is the likely cause: the kernel ended"):
            client.call(Open(backend="cpu", workload=parse_workload("tiny")))


READINGS = CpuTimes(10.0, 100.0, 50.0, 1.0)


@pytest.mark.parametrize(
    ("after", "others"),
    [
        (CpuTimes(12.0, 104.0, 51.0, 1.5), 1.5),
        (CpuTimes(12.0, 101.9, 52.0, None), 0.0),
        (CpuTimes(12.0, 100.0, 52.0, 1.5), None),
        (CpuTimes(12.0, None, 52.0, 1.5), None),
        (CpuTimes(10.01, 100.02, 50.0, 1.0), None),
    ],
    ids=["beside-two", "a-step-less-than-own", "counts-other-cores", "not-told", "too-soon"],
)
def test_others_are_what_is_left_of_the_cores_time(after: CpuTimes, others: float | None) -> None:
    use = host_cpu.use_between(READINGS, after)
    assert use == CpuUse(host_cpu.affinity_cores(), others, after.throttled_s and after.throttled_s - 1.0)


def test_cores_that_stat_does_not_list_are_unknown(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("cpu  9 9 9 9 9 9 9 9 0 0\ncpu4096 9 9 9 9 9 9 9 9 0 0\nintr 5\n")
    assert host_cpu.cpu_times(tmp_path).all_s is None


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity here")
def test_steal_is_others_and_idling_nobodys(tmp_path: Path) -> None:
    line = "cpu{} 100 10 50 7000 900 3 7 30 5 5\n"
    (tmp_path / "stat").write_text("".join(map(line.format, os.sched_getaffinity(0))))
    ticks = 200 * len(os.sched_getaffinity(0))
    assert host_cpu.cpu_times(tmp_path).all_s == ticks / os.sysconf("SC_CLK_TCK")


def test_a_quota_stands_in_the_device_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gputop.util.cgroups.cpu_quota", lambda: 0.5)
    session = Session.open("cpu", parse_workload("tiny"))
    assert quota_words(session.facts) == "0.5 cores by quota"
    session.close()


def test_a_process_that_measures_for_this_one_is_no_other_program() -> None:
    if not Path("/proc/self/stat").exists():
        pytest.skip("this system does not tell what a process used")
    before = host_cpu.cpu_times()
    burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    host_cpu.measures_for_us(burner.pid)
    try:
        while host_cpu.cpu_times().own_s - before.own_s < 0.1:
            assert burner.poll() is None
    finally:
        burner.kill()
        burner.wait()
        host_cpu.has_ended(burner.pid)
