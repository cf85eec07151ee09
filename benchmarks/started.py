"""A gputop on a terminal of its own, in the folders of a user who has calibrated; how figures print."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.tui.terminal import Program

GPUTOP = (sys.executable, "-m", "gputop")
LIVE = ("--backend", "cpu", "--rung", "cpu-blas")
GATE = "PASS"
"""Stands in the headline beside the first time, and never without one."""


@contextmanager
def calibrated_homes(backend: str = "cpu") -> Iterator[dict[str, str]]:
    """Folders of a user in which a backend's ceilings are kept."""
    with tempfile.TemporaryDirectory(prefix="gputop-benchmark-") as folder:
        homes = {
            f"XDG_{kind}_HOME": str(Path(folder) / kind) for kind in ("CACHE", "STATE", "DATA", "CONFIG")
        }
        command = (*GPUTOP, "calibrate", "--backend", backend, "--workload", "tiny")
        subprocess.run(command, env={**os.environ, **homes}, check=True, capture_output=True)
        yield homes


@contextmanager
def started(words: Sequence[str], homes: dict[str, str], columns: int, rows: int) -> Iterator[Program]:
    """A running program, killed at the end."""
    program = Program((*GPUTOP, *words), homes, columns=columns, rows=rows)
    try:
        yield program
    finally:
        program.close()


def report(name: str, value: float, most: float, unit: str) -> bool:
    """Print a figure beside the most that is allowed; return whether it is within."""
    holds = value <= most
    print(f"{name:<44} {value:>9.3g} {unit:<14} at most {most:g} {unit}   {'ok' if holds else 'MISSED'}")
    return holds


def load_line() -> str:
    """Return what else runs here: a figure of a busy machine is an upper bound."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def cpu_seconds(pid: int) -> float:
    """Return user and system seconds of a process, without its children's (proc(5), fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
