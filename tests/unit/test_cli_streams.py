"""The command line with streams that are closed, full, or left by their reader."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from gputop.cli.terminal import Narrator

GPUTOP = (sys.executable, "-m", "gputop")


@pytest.mark.parametrize("words", [("list", "workloads"), ("--version",), ("--help",), ("run", "--help")])
@pytest.mark.parametrize(
    ("redirections", "code", "sentence"),
    [
        ("<&- >&- 2>&-", 0, b""),
        (">/dev/full", 2, b"gputop: Can't write to stdout: No space left on device.\n"),
        (">/dev/full 2>&1", 2, b""),
    ],
)
def test_streams_that_are_closed_or_full(
    redirections: str, code: int, sentence: bytes, words: tuple[str, ...]
) -> None:
    if "/dev/full" in redirections and not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    shell = ("sh", "-c", f'exec "$@" {redirections}', "sh", *GPUTOP, *words)
    done = subprocess.run(shell, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (code, sentence)


def test_narration_that_can_not_be_written_ends_nothing() -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    Narrator(Full()).note("a window was lost")
