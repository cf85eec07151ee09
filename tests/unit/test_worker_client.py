"""The client against real workers: answers, deadlines, deaths and what comes after."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gputop.ipc import process
from gputop.ipc.answers import PlanImpossible
from gputop.ipc.protocol import PROTOCOL_VERSION, Hello, Open, Planned, encode
from gputop.ipc.worker_client import WorkerClient
from gputop.model.workloads import parse_workload
from gputop.plan.types import PlanRequest
from gputop.util.errors import GputopError, Unavailable, UsageError, WorkerLost

TINY = parse_workload("tiny")
PLAN = PlanRequest("cpu-blas")
OPEN = Open(backend="cpu", workload=TINY)
LONG_S = 600.0
STOPPED_S = 0.6
"""Longer than it takes a worker to stop its front end once it was asked."""


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs of clients that name no file of their own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def log_path(tmp_path: Path) -> Path:
    return tmp_path / "worker.log"


@pytest.fixture
def client(log_path: Path) -> Iterator[WorkerClient]:
    """Open on `tiny`; what is left of it is killed."""
    client = WorkerClient(log_path=log_path)
    client.start()
    client.open("cpu", TINY)
    yield client
    client.kill()


def speaking(*lines: bytes, then: str = "sys.stdin.read()") -> list[str]:
    """A command that says these lines instead of being a worker."""
    code = f"import sys; sys.stdout.buffer.write({b''.join(lines)!r}); sys.stdout.flush(); {then}"
    return [sys.executable, "-c", code]


def hello(protocol: int = PROTOCOL_VERSION, version: str = "9.9") -> bytes:
    return encode(Hello(protocol=protocol, version=version, pid=1, host="elsewhere"))


def has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_window_comes_back_typed_and_progress_is_told(client: WorkerClient) -> None:
    told: list[str] = []
    window = client.measure(PLAN, seconds=0.3, on_progress=told.append)
    assert window.workload == "tiny"
    lane = window.lane("current")
    assert lane is not None
    assert lane.gate.ok
    assert {row.phase for row in lane.rows} >= {"qkv", "sum", "device", "wall"}
    assert told


def test_what_the_worker_refuses_is_raised_as_what_it_is(client: WorkerClient) -> None:
    with pytest.raises(UsageError, match="Did you mean 'cpu-blas'"):
        client.resolve(PlanRequest("cpu-bals"))
    assert client.resolve(PLAN).rung == "cpu-blas"


def test_stop_from_another_thread_ends_the_window_under_way(client: WorkerClient) -> None:
    stopper: list[threading.Thread] = []

    def stop_once(_: str) -> None:
        if not stopper:
            stopper.append(threading.Thread(target=client.stop))
            stopper[0].start()

    window = client.measure(PLAN, seconds=LONG_S, on_progress=stop_once)
    assert window.stopped_because == "stopped"


def test_a_worker_killed_in_a_ladder_is_said_in_words(client: WorkerClient) -> None:
    client.resolve(PLAN)
    pid = client.pid
    assert pid is not None
    with pytest.raises(WorkerLost, match="died during ladder: it was killed by SIGKILL"):
        client.measure_ladder([PLAN], seconds=LONG_S, on_progress=lambda _: os.kill(pid, signal.SIGKILL))


def test_a_worker_killed_in_a_window_costs_that_window_and_no_more(
    client: WorkerClient, log_path: Path
) -> None:
    first = client.measure(PLAN, seconds=0.2)
    lost_pid = client.pid
    assert lost_pid is not None
    with pytest.raises(WorkerLost, match=r"died during measure: it was killed by SIGKILL.*worker\.log"):
        client.measure(PLAN, seconds=LONG_S, on_progress=lambda _: os.kill(lost_pid, signal.SIGKILL))
    assert not client.alive
    reopened = client.restart()
    assert reopened is not None
    assert reopened.workload == TINY
    second = client.measure(PLAN, seconds=0.2)
    assert client.pid != lost_pid
    assert (first.number, second.number) == (1, 2)
    assert {row.window for lane in second.lanes for row in lane.rows} == {2}
    assert log_path.read_text().count("starting:") == 2


def test_a_worker_that_hangs_is_killed_and_reported(log_path: Path) -> None:
    client = WorkerClient(log_path=log_path, silence_s=30.0)
    client.start()
    client.open("cpu", TINY)
    pid = client.pid
    assert pid is not None
    client.silence_s = 0.5
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(WorkerLost, match=r"hung: no word for 0\.5 s during resolve, so it was killed"):
        client.resolve(PLAN)
    assert has_ended(pid)
    client.silence_s = 30.0
    client.restart()
    assert client.resolve(PLAN).rung == "cpu-blas"
    client.kill()


def test_why_a_worker_gave_up_before_it_was_asked_is_told(log_path: Path) -> None:
    failed = b'{"type":"failed","id":0,"exit_code":3,"message":"no thread can be started"}\n'
    client = WorkerClient(command=speaking(hello(), failed, then="pass"), log_path=log_path)
    client.start()
    while client.alive:
        # Its end is what the next call meets first.
        pass
    with pytest.raises(Unavailable, match="no thread can be started"):
        client.call(OPEN)


def test_time_in_which_the_front_end_was_stopped_is_no_silence(log_path: Path) -> None:
    """The worker here stops its front end for longer than its patience, and answers meanwhile."""
    answer = b'{"type":"failed","id":1,"exit_code":2,"message":"answered in time"}\n'
    worker = (
        f"import os, signal, sys, time\nos.write(1, {hello()!r})\nsys.stdin.readline()\n"
        f"os.kill(os.getppid(), signal.SIGSTOP)\ntime.sleep({1.5 * STOPPED_S})\n"
        f"os.write(1, {answer!r})\nos.kill(os.getppid(), signal.SIGCONT)\nsys.stdin.read()"
    )
    front_end = (
        "import sys\nfrom pathlib import Path\nfrom gputop.ipc.worker_client import WorkerClient\n"
        "from gputop.plan.types import PlanRequest\n"
        f"client = WorkerClient(command=[sys.executable, '-c', {worker!r}], log_path=Path({str(log_path)!r}),"
        f" silence_s={STOPPED_S})\n"
        "client.start()\n"
        "try:\n    client.resolve(PlanRequest('cpu-blas'))\nexcept Exception as error:\n    print(error)\n"
        "client.kill()\n"
    )
    ran = subprocess.run([sys.executable, "-c", front_end], capture_output=True, text=True)
    assert ran.stdout == "answered in time\n", ran.stderr


def test_progress_extends_the_deadline_and_its_end_does_not() -> None:
    progress = b'{"type":"progress","id":1,"text":"compiling"}\n'
    talk = f"for _ in range(5): time.sleep(0.2); sys.stdout.write({progress.decode()!r}); sys.stdout.flush()"
    client = WorkerClient(
        command=speaking(hello(), then=f"import time\n{talk}\nsys.stdin.read()"), silence_s=0.8
    )
    client.start()
    told: list[str] = []
    with pytest.raises(WorkerLost, match="hung"):
        client.call(OPEN, on_progress=told.append)
    assert told == ["compiling"] * 5


def test_what_is_opened_at_the_launch_is_asked_for_once(log_path: Path) -> None:
    client = WorkerClient(log_path=log_path)
    client.launch(OPEN)
    client.start()
    told: list[str] = []
    assert client.open("cpu", TINY, on_progress=told.append).workload == TINY
    assert told == ["opening cpu"]
    assert client.resolve(PLAN).rung == "cpu-blas"
    client.kill()
    reopened = client.restart()
    assert reopened is not None
    assert reopened.workload == TINY
    client.kill()


def test_another_opening_than_that_of_the_launch_is_asked_for_too(log_path: Path) -> None:
    client = WorkerClient(log_path=log_path)
    client.launch(OPEN)
    client.start()
    other = replace(TINY, seed=7)
    assert client.open("cpu", other).workload == other
    client.kill()


def test_what_can_not_be_opened_is_said_when_it_is_waited_for(log_path: Path) -> None:
    client = WorkerClient(log_path=log_path)
    client.launch(Open(backend="cpu", workload=TINY, device="7"))
    client.start()
    with pytest.raises(UsageError, match="no device '7'"):
        client.open("cpu", TINY, device="7")
    client.kill()


def test_a_worker_that_dies_before_it_hears_of_the_opening_is_lost(log_path: Path) -> None:
    client = WorkerClient(command=[sys.executable, "-c", "pass"], log_path=log_path)
    client.launch(OPEN)
    with pytest.raises(WorkerLost, match="died during start"):
        client.start()


def test_kill_from_another_thread_ends_a_call(client: WorkerClient) -> None:
    killer: list[threading.Thread] = []

    def kill_once(_: str) -> None:
        if not killer:
            killer.append(threading.Thread(target=client.kill))
            killer[0].start()

    with pytest.raises(WorkerLost, match="SIGKILL"):
        client.measure(PLAN, seconds=LONG_S, on_progress=kill_once)
    killer[0].join()


def test_a_worker_launched_ahead_is_the_one_that_is_met(log_path: Path) -> None:
    client = WorkerClient(log_path=log_path)
    client.launch()
    launched = client.pid
    assert client.hello is None
    assert client.start().pid == launched == client.pid
    client.kill()
    client.launch()
    abandoned = client.pid
    client.kill()
    assert client.start().pid != abandoned, "one that was killed before it was met is not waited for"
    client.close()
    client.launch()
    never_met = client.pid
    assert never_met is not None
    client.close()
    assert has_ended(never_met)


def test_close_ends_the_worker_and_twice_is_harmless(log_path: Path) -> None:
    client = WorkerClient(log_path=log_path)
    pid = client.start().pid
    client.close()
    client.close()
    assert has_ended(pid)
    client.stop()
    client.kill()
    with pytest.raises(WorkerLost, match="not running"):
        client.resolve(PLAN)


def test_a_block_that_fails_leaves_no_worker(log_path: Path) -> None:
    class Trouble(Exception):
        pass

    def run() -> None:
        with WorkerClient(log_path=log_path) as client:
            pids.append(client.pid or 0)
            raise Trouble

    pids: list[int] = []
    with pytest.raises(Trouble):
        run()
    assert has_ended(pids[0])


def test_another_protocol_is_refused_with_both_versions() -> None:
    client = WorkerClient(command=speaking(hello(protocol=999)))
    with pytest.raises(Unavailable, match=r"elsewhere is gputop 9\.9 and speaks protocol 999") as refusal:
        client.start()
    assert "install one version on both sides" in str(refusal.value)
    assert not client.alive


def test_a_banner_before_the_greeting_is_only_logged(log_path: Path) -> None:
    client = WorkerClient(command=speaking(b"Welcome to gpu-server!\n\xff\n", hello()), log_path=log_path)
    assert client.start().host == "elsewhere"
    client.kill()
    assert any("Welcome to gpu-server!" in line for line in client.log.lines())
    assert "Welcome to gpu-server!" in log_path.read_text()


@pytest.mark.parametrize("line", ["b'[' * 100_000", "b'x' * 300_000", r"b'\xed\xa0\x80'"])
def test_the_reader_survives_whatever_is_said(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`line` is Python: as bytes some would be too long for a command's argument."""
    monkeypatch.setattr(process, "LONGEST_EVENT_BYTES", 200_000)
    first = f"sys.stdout.buffer.write({line}); print(flush=True)"
    greeting = f"sys.stdout.buffer.write({hello()!r}); sys.stdout.flush(); sys.stdin.read()"
    client = WorkerClient(command=speaking(then=f"{first}; {greeting}"))
    assert client.start().host == "elsewhere"
    client.kill()
    assert any("not an event" in said for said in client.log.lines())


def test_a_window_is_preceded_by_what_can_be_chosen_on_its_plans(client: WorkerClient) -> None:
    planned: list[Planned] = []
    client.measure(PLAN, PlanRequest("cpu-loops"), seconds=0.1, on_planned=planned.append)
    assert [(each.current, each.pinned) for each in planned] == [
        (client.resolve(PLAN), client.resolve(PlanRequest("cpu-loops")))
    ]
    impossible = PlanRequest("cpu-blas", (("batch", "0"),))
    with pytest.raises(PlanImpossible, match="batch") as refused:
        client.measure(PLAN, impossible, seconds=0.1, on_planned=planned.append)
    assert refused.value.request == impossible
    assert len(planned) == 1


def test_a_request_that_can_not_be_sent_is_refused_and_not_tried_again(client: WorkerClient) -> None:
    with pytest.raises(UsageError, match=r"'/none/\\udcff' is not UTF-8"):
        client.open("replay", TINY, device="/none/\udcff")
    assert client.resolve(PLAN).rung == "cpu-blas"
    assert client.restart() is not None
    assert client.resolve(PLAN).rung == "cpu-blas"


def test_a_worker_that_can_not_start_says_why_in_its_last_words() -> None:
    client = WorkerClient(
        command=[sys.executable, "-c", "import sys; sys.exit('no such thing as a free lunch')"]
    )
    with pytest.raises(WorkerLost, match=r"exited with code 1.*last words: no such thing as a free lunch"):
        client.start()


def test_a_command_that_does_not_exist_is_not_here() -> None:
    with pytest.raises(Unavailable, match="no-such-command"):
        WorkerClient(command=["no-such-command"]).start()


def test_no_greeting_within_the_deadline_is_a_hang() -> None:
    client = WorkerClient(command=[sys.executable, "-c", "import sys; sys.stdin.read()"], handshake_s=0.3)
    with pytest.raises(WorkerLost, match=r"no word for 0\.3 s during start"):
        client.start()
    assert not client.alive


def test_a_read_only_home_does_not_stop_a_measurement(tmp_path: Path) -> None:
    blocked = tmp_path / "a file, not a folder"
    blocked.touch()
    with WorkerClient(log_path=blocked / "worker.log") as client:
        assert client.log.path is None
        assert client.alive


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for ssh, first on PATH, that runs on this machine what it is asked to run elsewhere."""
    script = tmp_path / "bin" / "ssh"
    script.parent.mkdir()
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    write_script(script, f'echo "$*" > {tmp_path}/asked\nexec {sys.executable} -m "$7" "$8"\n')
    return script


def write_script(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_a_remote_worker_is_reached_by_ssh(ssh: Path, tmp_path: Path) -> None:
    with WorkerClient(remote="me@gpu-server") as client:
        assert client.hello is not None
        assert client.hello.protocol == PROTOCOL_VERSION
    assert (
        tmp_path / "asked"
    ).read_text() == "-o BatchMode=yes -o ConnectTimeout=20 -- me@gpu-server gputop worker\n"


@pytest.mark.parametrize(
    ("code", "words", "expected"),
    [
        (127, "sh: gputop: not found", "pip install gputop-roofline"),
        (255, "Host key verification failed", "does not trust the key"),
    ],
)
def test_a_host_that_can_not_serve_is_not_here(ssh: Path, code: int, words: str, expected: str) -> None:
    write_script(ssh, f"echo '{words}' >&2\nexit {code}\n")
    with pytest.raises(Unavailable, match=expected):
        WorkerClient(remote="gpu-server").start()


@pytest.mark.parametrize("host", ["", "-oProxyCommand=evil"])
def test_an_option_is_no_host(host: str) -> None:
    with pytest.raises(UsageError, match="no ssh destination"):
        WorkerClient(remote=host)


def test_every_exit_code_comes_back_as_its_error() -> None:
    for kind in (UsageError, Unavailable, WorkerLost):
        failed = f'{{"type":"failed","id":1,"exit_code":{kind.exit_code},"message":"why"}}\n'.encode()
        client = WorkerClient(command=speaking(hello(), failed))
        client.start()
        with pytest.raises(GputopError, match="why") as raised:
            client.call(OPEN)
        assert type(raised.value) is kind
        client.kill()


def test_a_file_where_the_user_stands_does_not_become_the_workers(tmp_path: Path) -> None:
    (tmp_path / "queue.py").write_text("raise SystemExit('the wrong queue')")
    code = (
        "from gputop.ipc.worker_client import WorkerClient\n"
        "client = WorkerClient()\nprint(client.start().protocol)\nclient.close()"
    )
    root = Path(__file__).resolve().parents[2]
    env = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == str(PROTOCOL_VERSION), done.stderr
