"""The real program in a real terminal: its worker is killed, and the terminal is none the worse."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tui.terminal import PATIENCE_S, Program, children

MOUSE_MODES = {"1000", "1002", "1003", "1006", "1015"}
ALTERNATE_SCREEN = "1049"
CURSOR = "25"
COMMAND = [sys.executable, "-m", "gputop", "--workload", "tiny", "--backend", "cpu", "--seconds", "0.3"]
REPLAY = [sys.executable, "-m", "gputop", "replay", "h200"]

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds the worker in /proc")


@pytest.fixture
def homes(tmp_path: Path) -> dict[str, str]:
    """A user's folders of this test's own."""
    return {f"XDG_{kind}_HOME": str(tmp_path / kind) for kind in ("CACHE", "STATE", "DATA", "CONFIG")}


@pytest.fixture
def program(homes: dict[str, str]) -> Iterator[Program]:
    running = Program(COMMAND, homes)
    yield running
    running.close()


@pytest.fixture(params=[COMMAND, REPLAY], ids=["live", "replay"])
def either(request: pytest.FixtureRequest, homes: dict[str, str]) -> Iterator[Program]:
    running = Program(request.param, homes)
    yield running
    running.close()


def worker_of(program: Program) -> int | None:
    """Process id of the worker that is alive just now."""
    found = [pid for pid, line in children(program.process.pid).items() if "worker" in line]
    return found[0] if found else None


def window_shown(program: Program) -> int:
    found = re.search(r"window (\d+)(?:,| ·)", program.screen.text)
    return int(found.group(1)) if found else 0


def test_a_killed_worker_costs_one_window_and_the_terminal_stays_sane(program: Program) -> None:
    program.until(lambda: window_shown(program) > 0, "the first window")
    assert ALTERNATE_SCREEN in program.screen.modes
    assert program.screen.modes & MOUSE_MODES
    assert "tiny" in program.screen.text

    program.press("?")
    program.until_shown("Every key, column, mark and colour")
    behind = window_shown(program)
    program.until(lambda: window_shown(program) > behind, "a window on the screen behind the dialog")
    program.press("\x1b")

    worker = worker_of(program)
    assert worker is not None
    os.kill(worker, signal.SIGKILL)
    program.until_shown("A window is lost")
    program.until_shown("SIGKILL")
    program.until(lambda: worker_of(program) not in (None, worker), "a new worker")
    last = window_shown(program)
    program.until(lambda: window_shown(program) != last, "a window of the new worker")

    second = worker_of(program)
    assert second is not None
    program.press("q")
    assert program.exit_code() == 0
    assert_left_as_found(program, second)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_to_end_leaves_as_q_does(either: Program, number: signal.Signals, code: int) -> None:
    either.until(lambda: window_shown(either) > 0, "the first window")
    worker = worker_of(either)
    assert worker is not None
    os.kill(either.process.pid, number)
    assert either.exit_code() == code
    assert_left_as_found(either, worker)


def test_a_signal_while_the_screen_is_put_together_leaves_as_q_does(program: Program) -> None:
    program.until(lambda: ALTERNATE_SCREEN in program.screen.modes, "the screen's beginning")
    os.kill(program.process.pid, signal.SIGTERM)
    assert program.exit_code() == 143
    assert "Traceback" not in program.screen.text
    assert not program.screen.modes & (MOUSE_MODES | {ALTERNATE_SCREEN})
    assert worker_of(program) is None


@pytest.mark.parametrize("command", [COMMAND, REPLAY], ids=["live", "replay"])
def test_a_terminal_that_obeys_nothing_gets_lines(command: list[str], homes: dict[str, str]) -> None:
    program = Program(command, {**homes, "TERM": "dumb"})
    try:
        assert program.exit_code() == 0
        assert "gpt2-small" in program.screen.text or "tiny" in program.screen.text
        assert not program.screen.modes
    finally:
        program.close()


def assert_left_as_found(program: Program, worker: int) -> None:
    """The terminal is as before, and the worker is gone."""
    assert program.settings == program.before
    assert not program.screen.modes & (MOUSE_MODES | {ALTERNATE_SCREEN})
    assert CURSOR in program.screen.modes
    assert not Path(f"/proc/{worker}").exists()


def test_a_terminal_that_is_gone_ends_it_though_nobody_says_so(program: Program) -> None:
    """It has no controlling terminal here, so that closing this one sends no signal."""
    program.until(lambda: window_shown(program) > 0, "the first window")
    worker = worker_of(program)
    assert worker is not None
    program.hang_up()
    assert program.process.wait(timeout=PATIENCE_S) == 0
    assert not Path(f"/proc/{worker}").exists() or "Z" in Path(f"/proc/{worker}/stat").read_text().split()
