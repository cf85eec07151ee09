"""The worker as a process: what it answers on its pipe, and when it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gputop import __version__
from gputop.ipc.protocol import (
    PROTOCOL_VERSION,
    Bye,
    Failed,
    Hello,
    Measure,
    Measured,
    Message,
    Open,
    Opened,
    Progress,
    Resolve,
    Resolved,
    Stop,
    decode_event,
    encode,
)
from gputop.model.workloads import parse_workload
from gputop.plan.types import PlanRequest

ROOT = Path(__file__).resolve().parents[2]
WORKER = (sys.executable, "-m", "gputop", "worker")
TINY = Open(id=1, backend="cpu", workload=parse_workload("tiny"))
PLAN = PlanRequest("cpu-blas")


class Peer:
    """The other end of a worker's pipes."""

    def __init__(self, command: tuple[str, ...] = WORKER) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=ROOT)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout

    def send(self, *messages: Message) -> None:
        self.write(b"".join(encode(message) for message in messages))

    def write(self, data: bytes) -> None:
        self.stdin.write(data)
        self.stdin.flush()

    def event(self) -> Any:
        return decode_event(self.stdout.readline())

    def closing(self) -> Any:
        """The next event that is not progress."""
        while isinstance(event := self.event(), Progress):
            pass
        return event

    def exit_code(self) -> int:
        return self.process.wait(timeout=30)

    def end(self) -> str:
        """Kill what is left; returns its stderr."""
        self.process.kill()
        self.process.wait()
        assert self.process.stderr is not None
        self.stdin.close()
        with self.stdout, self.process.stderr as stderr:
            return stderr.read().decode()


@pytest.fixture
def peer() -> Iterator[Peer]:
    peer = Peer()
    assert isinstance(peer.event(), Hello)
    yield peer
    peer.end()


def altered(code: str) -> tuple[str, ...]:
    """A worker with some of its session replaced: `code` sees Session and its own `measure`."""
    setup = "from gputop.session.session import Session\nmeasure, view = Session.measure, Session.view\n"
    run = "\nfrom gputop.ipc.worker import main\nraise SystemExit(main())"
    return (sys.executable, "-c", setup + code + run)


def test_it_greets_with_its_protocol_and_version() -> None:
    peer = Peer()
    hello = peer.event()
    assert hello == Hello(
        protocol=PROTOCOL_VERSION, version=__version__, pid=peer.process.pid, host=hello.host
    )
    peer.end()


def test_a_line_that_is_no_request_is_answered_and_not_fatal(peer: Peer) -> None:
    peer.write(b'garbage\n{"type":"measure"}\n\xff\xfe\n')
    for _ in range(3):
        answer = peer.event()
        assert (answer.id, answer.exit_code, answer.fatal) == (0, 2, False)
        assert "Broken protocol line" in answer.message
    peer.send(Resolve(id=7, request=PLAN))
    assert peer.closing().id == 7


def test_a_request_before_open_is_bad_input(peer: Peer) -> None:
    peer.send(Measure(id=4, current=PLAN))
    answer = peer.event()
    assert (answer.id, answer.exit_code) == (4, 2)
    assert "first request must be open" in answer.message


@pytest.mark.parametrize("farewell", ["bye", "end of stdin"])
def test_it_ends_when_told_and_when_its_client_is_gone(peer: Peer, farewell: str) -> None:
    if farewell == "bye":
        peer.send(Bye())
    else:
        peer.stdin.close()
    assert peer.exit_code() == 0


def test_it_ends_when_its_client_goes_in_the_middle_of_a_window(peer: Peer) -> None:
    peer.send(TINY, Measure(id=2, current=PLAN, seconds=600))
    assert isinstance(peer.closing(), Opened)
    assert isinstance(peer.event(), Progress)
    peer.stdin.close()
    assert peer.exit_code() == 0


def test_an_interrupt_is_the_front_ends_business(peer: Peer) -> None:
    peer.process.send_signal(signal.SIGINT)
    peer.send(TINY)
    assert isinstance(peer.closing(), Opened)


def test_a_stop_sent_right_behind_its_request_ends_it(peer: Peer) -> None:
    peer.send(TINY, Measure(id=2, current=PLAN, seconds=600), Stop(), Resolve(id=3, request=PLAN))
    assert isinstance(peer.closing(), Opened)
    measured = peer.closing()
    assert isinstance(measured, Measured)
    assert measured.window.stopped_because == "stopped"
    assert isinstance(peer.closing(), Resolved)


def test_a_stop_with_nothing_under_way_does_not_end_the_next_window(peer: Peer) -> None:
    peer.send(TINY)
    assert isinstance(peer.closing(), Opened)
    peer.send(Stop(), Measure(id=2, current=PLAN, seconds=0.3))
    measured = peer.closing()
    assert isinstance(measured, Measured)
    assert measured.window.stopped_because != "stopped"


def test_what_a_library_prints_does_not_break_into_the_conversation() -> None:
    peer = Peer(
        altered(
            "import os\n"
            "def loud(self, request):\n"
            "    print('printed', flush=True)\n"
            "    os.write(1, b'raw bytes\\n')\n"
            "    os.system('echo from a child; cat')\n"
            "    return view(self, request)\n"
            "Session.view = loud\n"
        )
    )
    peer.send(TINY, Resolve(id=2, request=PLAN), Bye())
    assert isinstance(peer.event(), Hello)
    assert isinstance(peer.closing(), Opened)
    assert isinstance(peer.closing(), Resolved)
    assert peer.exit_code() == 0
    stderr = peer.end()
    assert [word in stderr for word in ("printed", "raw bytes", "from a child")] == [True] * 3


def test_an_unforeseen_fault_is_a_sentence_and_its_traceback_goes_to_the_log() -> None:
    peer = Peer(altered("def broken(self, request):\n    return 1 / 0\nSession.view = broken\n"))
    peer.send(TINY, Resolve(id=2, request=PLAN), Bye())
    assert isinstance(peer.event(), Hello)
    assert isinstance(peer.closing(), Opened)
    answer = peer.closing()
    assert isinstance(answer, Failed)
    assert answer.exit_code == 4
    assert "ZeroDivisionError: division by zero" in answer.message
    assert "\n" not in answer.message
    assert peer.exit_code() == 0
    assert "Traceback" in peer.end()


def test_a_lost_device_is_fatal_and_too_little_memory_is_not() -> None:
    peer = Peer(
        altered(
            "from gputop.util.errors import DeviceLost\n"
            "def broken(self, request):\n"
            "    raise MemoryError if request.sets else DeviceLost('The device is lost.')\n"
            "Session.view = broken\n"
        )
    )
    peer.send(
        TINY, Resolve(id=2, request=PLAN), Resolve(id=3, request=PlanRequest("cpu-blas", (("a", "b"),)))
    )
    assert isinstance(peer.event(), Hello)
    assert isinstance(peer.closing(), Opened)
    assert peer.closing() == Failed(id=2, exit_code=4, message="The device is lost.", fatal=True)
    answer = peer.closing()
    assert (answer.id, answer.exit_code, answer.fatal) == (3, 2, False)
    assert "not enough memory" in answer.message
    peer.end()


def test_a_flood_of_progress_is_thinned() -> None:
    peer = Peer(
        altered(
            "def flood(self, request, *others, say, **options):\n"
            "    for n in range(20000):\n"
            "        say(str(n))\n"
            "    return measure(self, request, *others, say=lambda text: None, **options)\n"
            "Session.measure = flood\n"
        )
    )
    peer.send(TINY)
    assert isinstance(peer.event(), Hello)
    assert isinstance(peer.closing(), Opened)
    began = time.monotonic()
    peer.send(Measure(id=2, current=PLAN, seconds=0.2))
    told = 0
    while isinstance(event := peer.event(), Progress):
        told += 1
    assert isinstance(event, Measured)
    assert 1 <= told <= 5 + 5 * (time.monotonic() - began) + 1
    peer.end()
