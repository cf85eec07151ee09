"""A recording full of control sequences: neither the screen nor the tables send any to the terminal."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from gputop.model.workloads import parse_workload
from gputop.tui.options import Options
from tests.tui.fake.records import DEVICE, TIME_UTC
from tests.tui.screen import text_of, until, until_shown
from tests.tui.terminal import Program
from tests.tui.test_recording import app_on, recorded

SHOWN = "▷ evil 20"
FOREIGN = re.compile("owned|ee2J")
WITHOUT_ANY = frozenset({"question_mark", "2", "3", "4", "5", "6"})
"""Help, and views in which none of it has its place at this size."""
OWNED = re.compile(r"\x1b\]0;owned|\x1b\[31337|\x9b|\u202e")
EVIL = r"\u001b]0;owned\u0007\u001b[31337Ceee\u009b2J\u202e"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The canned recording with such text in names, notes, kernels, ideas, advice and verdicts."""
    path = recorded(tmp_path / "evil.jsonl", TIME_UTC)
    text = path.read_text()
    for word in (DEVICE.name, "gemm-", "Every product", "numpy 2.4.6"):
        assert word in text
        text = text.replace(word, word + EVIL)
    sentences = re.compile(r'"(?:advice|verdict|where|status)":"(?!FASTER|SLOWER|SAME|PASS)')
    path.write_text(sentences.sub(lambda found: found[0] + EVIL, text))
    return path


async def test_the_screen_draws_none_of_it(file: Path, tmp_path: Path) -> None:
    app = app_on(Options("replay", parse_workload("tiny"), device=str(file)), tmp_path)
    async with app.run_test(size=(120, 45)) as pilot:
        await until_shown(pilot, SHOWN)
        app._client.log.add("\x1b]0;owned\x07")
        for keys in ("g down enter", "2", "3", "4", "5", "6", "1", "w", "d enter", "escape", "question_mark"):
            await pilot.press(*keys.split())
            await until(pilot, lambda: app.is_drawn, "its drawing")
            shown = text_of(app)
            assert all(line.isprintable() for line in shown.splitlines())
            assert FOREIGN.search(shown) or keys in WITHOUT_ANY


@pytest.mark.parametrize("words", [(), ("--csv", "-"), ("--json", "-"), ("--csv", "/dev/null")])
def test_a_terminal_is_told_none_of_it(file: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    homes = {f"XDG_{kind}_HOME": str(tmp_path / kind) for kind in ("CACHE", "STATE", "DATA", "CONFIG")}
    program = Program([sys.executable, "-m", "gputop", "replay", str(file), *words], homes, columns=120)
    try:
        if words:
            assert program.exit_code() == 0
        else:
            program.until_shown(SHOWN)
            program.press("q")
            assert program.exit_code() == 0
        assert "eee" in program.output
        assert not OWNED.search(program.output)
    finally:
        program.close()


def test_a_recording_that_can_not_be_opened_is_said_on_the_terminal_without_it(tmp_path: Path) -> None:
    file = tmp_path / "\x1b]0;owned\x07.jsonl"
    file.write_text("{}\n")
    command = [sys.executable, "-m", "gputop", "--backend", "replay", "--device", str(file)]
    program = Program(command, {"XDG_STATE_HOME": str(tmp_path)})
    try:
        assert program.exit_code() == 2
        assert r"\x1b]0;owned\x07.jsonl, line 1" in program.output.replace("\r\n", "")
        assert not OWNED.search(program.output)
    finally:
        program.close()
