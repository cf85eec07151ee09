"""`gputop search` on the real worker: killed, resumed, with candidates that die or are wrong."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gputop.cli import command_table
from gputop.search import journal
from gputop.search.journal import Begun, Ended, Line, Measured
from gputop.util.errors import UsageError
from tests.homes import homes_in

ROOT = Path(__file__).resolve().parents[2]
GPUTOP = (sys.executable, "-m", "gputop")
SEARCH = (
    *("search", "--backend", "cpu", "--workload", "tiny", "--budget", "12"),
    *("--seconds", "0.05", "--efficiency", "1", "--together", "1", "--ablate", "1"),
)
FAULTY = """
import os
from dataclasses import replace
from gputop.backends.cpu import kernels
from gputop.session.session import Session

honest, blas = Session.measure, kernels.TABLE["cpu_blas_attention"]
kernels.TABLE["cpu_blas_attention"] = lambda *operands: blas(*operands)[:-1]

def measure(self, current, pinned=None, **more):
    if "wo:cpu_blas_gemm" in str(current):
        os._exit(9)
    return honest(self, current, pinned, **more)

Session.measure = measure
from gputop.ipc.worker import main
from tests.homes import homes_in
raise SystemExit(main())
"""
DEADLINE_S = 90.0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def env(home: Path, calibrated: Path) -> dict[str, str]:
    """A user's home of these tests' own, and an `ssh` that runs a worker with faulty kernels here."""
    (home / "worker.py").write_text(FAULTY)
    ssh = home / "ssh"
    ssh.write_text(f"#!/bin/sh\nexec {sys.executable} {home}/worker.py\n")
    ssh.chmod(0o755)
    path = f"{home}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, **homes_in(home, calibrated), "PYTHONPATH": str(ROOT), "PATH": path}


def gputop(env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        (*GPUTOP, *words), env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=150, check=False
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in err
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


def stopped_by(env: dict[str, str], file: Path, number: signal.Signals) -> tuple[int, tuple[Line, ...], str]:
    """A search that a signal ends after its first window: exit code, lines of its journal, stdout."""
    words = (*GPUTOP, *SEARCH, "--journal", str(file))
    process = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    ends = time.monotonic() + DEADLINE_S
    while not (file.exists() and b'"kind":"measured"' in file.read_bytes()):
        assert process.poll() is None, "it ended by itself"
        assert time.monotonic() < ends, "no window was measured"
        time.sleep(0.02)
    process.send_signal(number)
    out, _ = process.communicate(timeout=DEADLINE_S)
    return process.returncode, journal.read(file)[0], out.decode()


@pytest.fixture(scope="module")
def killed(env: dict[str, str], home: Path) -> tuple[Line, ...]:
    """What a search that was killed left."""
    code, lines, _ = stopped_by(env, home / "killed.jsonl", signal.SIGKILL)
    assert code == -signal.SIGKILL
    return lines


@pytest.fixture(scope="module")
def resumed(
    env: dict[str, str], home: Path, killed: tuple[Line, ...]
) -> tuple[subprocess.CompletedProcess[str], list[dict[str, str]], list[dict[str, object]]]:
    """The same search gone on with, on a worker two of whose candidates have a fault: stdout, CSV, JSON."""
    done = gputop(
        env, *SEARCH, "--journal", str(home / "killed.jsonl"), "--resume", "--remote", "anywhere",
        "--save", "mine", "--csv", str(home / "search.csv"), "--json", str(home / "search.json"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO((home / "search.csv").read_text())))
    return done, rows, json.loads((home / "search.json").read_text())["rows"]


def test_killed_it_goes_on_and_measures_nothing_again(
    home: Path, killed: tuple[Line, ...], resumed: tuple[object, list[dict[str, str]], object]
) -> None:
    lines = journal.read(home / "killed.jsonl")[0]
    assert lines[: len(killed)] == killed
    assert isinstance(lines[len(killed)], Begun)
    tried = [
        (cell.site, str(cell.kernel))
        for line in lines
        if isinstance(line, Measured) and line.stage == "search"
        for cell in line.cells
    ]
    assert len(tried) == len(set(tried))
    assert any(isinstance(line, Ended) for line in lines)
    searched = [(row["site"], row["kernel"]) for row in resumed[1] if row["stage"] == "search"]
    assert searched == tried


def test_what_dies_or_is_wrong_is_struck_with_why_and_the_rest_is_measured(
    killed: tuple[Line, ...], resumed: tuple[object, list[dict[str, str]], object]
) -> None:
    rows = resumed[1]
    struck = {row["site"]: row["status"] for row in rows if row["stage"] == "struck"}
    expected = {"wo": "it exited with code 9", "attention": "gate FAIL"}
    before = {cell.site for line in killed if isinstance(line, Measured) for cell in line.cells}
    assert not before & set(expected), "the killed search began with what takes longest"
    assert set(struck) == set(expected)
    assert all(why in struck[site] for site, why in expected.items())
    measured = [row for row in rows if row["stage"] == "search"]
    assert {"qkv", "w1", "w2"} <= {row["site"] for row in measured}
    assert not {row["site"] for row in measured} & set(struck)
    assert all(row["incumbent_s"] and row["time_s"] and row["gate"].startswith("PASS") for row in measured)


def test_both_files_hold_the_same_rows_and_the_whole_table(
    resumed: tuple[subprocess.CompletedProcess[str], list[dict[str, str]], list[dict[str, object]]],
) -> None:
    done, rows, of_json = resumed
    assert [(row["stage"], row["site"], row["kernel"]) for row in rows] == [
        (row["stage"], row["site"], row["kernel"]) for row in of_json
    ]
    table = [row["site"] for row in rows if row["stage"] == "table"]
    assert table == ["embed", "ln1", "qkv", "attention", "wo", "ln2", "w1", "w2", "lnf", "head"]
    assert "within the hard constraints" in done.stdout
    assert "stopped by " in done.stdout
    assert "cell by cell against cpu-blas" in done.stdout


def test_the_saved_table_is_a_rung_of_this_device(
    env: dict[str, str], home: Path, resumed: tuple[object, list[dict[str, str]], object]
) -> None:
    tiny = ("--backend", "cpu", "--workload", "tiny", "--seconds", "0.05")
    done = gputop(env, "run", *tiny, "--rung", "mine", "--csv", "-")
    assert done.returncode == 0, done.stderr
    listed = gputop(env, "list", "rungs", "--backend", "cpu").stdout
    assert re.search(r"mine +cpu +saved +Found by a search from cpu-loops on .*, tiny, ", listed)
    ran = {row["phase"]: row["kernel"] for row in csv.DictReader(io.StringIO(done.stdout)) if row["kernel"]}
    assert ran == {row["site"]: row["kernel"] for row in resumed[1] if row["stage"] == "table"}


def test_interrupted_it_shows_what_is_known_and_how_to_go_on(env: dict[str, str], home: Path) -> None:
    code, lines, out = stopped_by(env, home / "interrupted.jsonl", signal.SIGINT)
    assert code == 130
    known = [cell.site for line in lines if isinstance(line, Measured) for cell in line.cells]
    assert known
    assert "stopped by interrupted; --resume goes on" in out
    assert f"{len(known)} paired measurement" in out
    changed = any(cell.accepted for line in lines if isinstance(line, Measured) for cell in line.cells)
    assert ("stopped before the closing check" in out) == changed


def test_a_journal_of_another_search_is_refused(env: dict[str, str], home: Path, killed: object) -> None:
    done = gputop(env, *SEARCH, "--rung", "cpu-blas", "--journal", str(home / "killed.jsonl"), "--resume")
    assert done.returncode == 2
    assert "is of plan cpu-loops, and this is cpu-blas" in done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--journal", __file__), "is there already: --resume goes on with it"),
        (("--save", "cpu-blas"), "a rung that comes with gputop"),
        (("--save", "no name"), "is no name for a rung"),
        (("--efficiency", "2"), "is no efficiency"),
        (("--ablate", "-1"), "-1 is too small"),
    ],
)
def test_what_cannot_be_is_known_before_anything_is_measured(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        command_table.dispatch([*SEARCH, *words])
