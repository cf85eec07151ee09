"""The real program in a real terminal: its worker is killed, and the terminal is none the worse."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.tui.terminal import PATIENCE_S, Program, children

MOUSE_MODES = {"1000", "1002", "1003", "1006", "1015"}
ALTERNATE_SCREEN = "1049"
ENTER = f"\x1b[?{ALTERNATE_SCREEN}h"
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


def workers_of(program: Program) -> list[int]:
    """Process ids of the workers that are alive just now: one, or none for a recording."""
    return [pid for pid, line in children(program.process.pid).items() if "worker" in line]


def worker_of(program: Program) -> int | None:
    return next(iter(workers_of(program)), None)


def entered(program: Program, times: int) -> bool:
    """Whether it took the alternate screen so often."""
    return program.output.count(ENTER) >= times


def window_shown(program: Program) -> int:
    found = re.search(r"window (\d+)", program.screen.text)
    return int(found.group(1)) if found else 0


def test_a_killed_worker_costs_one_window_and_the_terminal_stays_sane(program: Program) -> None:
    program.until(lambda: window_shown(program) > 0, "the first window")
    assert ALTERNATE_SCREEN in program.screen.modes
    assert program.screen.modes & MOUSE_MODES
    assert "tiny" in program.screen.text

    program.press("?")
    program.until_shown("finds any word by name")
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
    workers = workers_of(either)
    os.kill(either.process.pid, number)
    assert either.exit_code() == code
    assert_left_as_found(either, *workers)


def test_a_recording_is_shown_without_a_second_process(homes: dict[str, str]) -> None:
    program = Program(REPLAY, homes)
    try:
        program.until(lambda: window_shown(program) > 0, "the first window")
        assert children(program.process.pid) == {}
        program.press("q")
        assert program.exit_code() == 0
        assert_left_as_found(program)
    finally:
        program.close()


def test_a_signal_while_the_screen_is_put_together_leaves_as_q_does(program: Program) -> None:
    program.until(lambda: ALTERNATE_SCREEN in program.screen.modes, "the screen's beginning")
    os.kill(program.process.pid, signal.SIGTERM)
    assert program.exit_code() == 143
    assert "Traceback" not in program.screen.text
    assert not program.screen.modes & (MOUSE_MODES | {ALTERNATE_SCREEN})
    assert worker_of(program) is None


@pytest.mark.parametrize("command", [COMMAND, REPLAY], ids=["live", "replay"])
def test_another_encoding_gets_lines_and_is_named(command: list[str], homes: dict[str, str]) -> None:
    program = Program(command, {**homes, "PYTHONIOENCODING": "iso-8859-1"}, columns=160, rows=60)
    try:
        assert program.exit_code() == 0
        assert "(PYTHONIOENCODING=iso-8859-1), and the screen needs UTF-8" in program.output
        assert "gate" in program.output
        assert "\\u" not in program.output
        assert not program.screen.modes
    finally:
        program.close()


@pytest.mark.skipif(shutil.which("localedef") is None, reason="no localedef to make a locale with")
def test_a_locale_of_another_encoding_is_named(homes: dict[str, str], tmp_path: Path) -> None:
    locale = "de_DE.ISO-8859-1"
    made = ["localedef", "-i", "de_DE", "-f", "ISO-8859-1", str(tmp_path / locale)]
    if subprocess.run(made, capture_output=True).returncode:
        pytest.skip("localedef has no sources of locales here")
    env = {**homes, "LOCPATH": str(tmp_path), "LC_ALL": locale}
    program = Program(REPLAY, env, columns=160, rows=60)
    try:
        assert program.exit_code() == 0
        assert f"this terminal's encoding is iso8859-1 (LC_ALL={locale})" in program.output
    finally:
        program.close()


@pytest.mark.parametrize("command", [COMMAND, REPLAY], ids=["live", "replay"])
def test_a_terminal_that_obeys_nothing_gets_lines(command: list[str], homes: dict[str, str]) -> None:
    program = Program(command, {**homes, "TERM": "dumb"})
    try:
        assert program.exit_code() == 0
        assert "gpt2-small" in program.screen.text or "tiny" in program.screen.text
        assert not program.screen.modes
    finally:
        program.close()


def assert_left_as_found(program: Program, *workers: int) -> None:
    """The terminal is as before, and the workers are gone."""
    assert program.settings == program.before
    assert not program.screen.modes & (MOUSE_MODES | {ALTERNATE_SCREEN})
    assert CURSOR in program.screen.modes
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


def test_going_on_takes_the_terminal_again_with_as_many_threads(homes: dict[str, str]) -> None:
    program = Program(REPLAY, homes)
    try:
        program.until(lambda: window_shown(program) > 0, "the first window")
        before = program.threads
        for times in range(2, 5):
            os.kill(program.process.pid, signal.SIGCONT)
            program.until(partial(entered, program, times), "the screen anew")
        program.until(lambda: program.threads == before, "as many threads as before")

        os.kill(program.process.pid, signal.SIGTSTP)
        program.until(lambda: program.state == "T", "its stop")
        program.until(lambda: ALTERNATE_SCREEN not in program.screen.modes, "the main screen")
        assert program.settings == program.before
        os.kill(program.process.pid, signal.SIGCONT)
        program.until(lambda: ALTERNATE_SCREEN in program.screen.modes, "the alternate screen")
        program.until(lambda: window_shown(program) > 0, "its content")

        program.press("q")
        assert program.exit_code() == 0
        assert program.settings == program.before
    finally:
        program.close()


def test_a_terminal_that_takes_no_output_does_not_keep_it(homes: dict[str, str]) -> None:
    code = "import sys; from gputop.util import signals; signals.PATIENCE_S = 1.0; import gputop.cli as cli; "
    program = Program([sys.executable, "-c", f"{code}sys.exit(cli.main())", *COMMAND[3:]], homes)
    try:
        program.until(lambda: window_shown(program) > 0, "the first window")
        worker = worker_of(program)
        program.take_no_output()
        os.kill(program.process.pid, signal.SIGTERM)
        assert program.process.wait(timeout=PATIENCE_S) == 143
        assert program.settings == program.before
        assert is_gone(worker)
    finally:
        program.close()


@pytest.mark.parametrize(
    ("command", "controlling", "ignored"),
    [(COMMAND, False, ()), (REPLAY, True, ()), (COMMAND, True, (signal.SIGHUP,))],
    ids=["nobody-says-so", "SIGHUP", "SIGHUP-ignored"],
)
def test_a_terminal_that_is_gone_ends_it(
    command: list[str], homes: dict[str, str], controlling: bool, ignored: tuple[int, ...]
) -> None:
    program = Program(command, homes, controlling=controlling, ignored=ignored)
    try:
        program.until(lambda: window_shown(program) > 0, "the first window")
        workers = workers_of(program)
        program.hang_up()
        assert program.process.wait(timeout=PATIENCE_S) in (0, 129)
        assert all(map(is_gone, workers))
    finally:
        program.close()


def is_gone(pid: int | None) -> bool:
    """Whether it has ended; nobody may have collected it yet."""
    assert pid is not None
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
