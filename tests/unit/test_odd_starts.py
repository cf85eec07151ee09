"""Starts in surroundings that lack something: a home, modules that only a wrapper adds, room for threads."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

import platformdirs
import pytest

from gputop.util import cgroups, paths, thread_limits
from gputop.util.child_environment import search_path
from gputop.util.errors import Unavailable
from gputop.util.paths import NOWHERE
from tests.limits import control_group, joining

RUN = ("run", "--backend", "cpu", "--workload", "tiny", "--seconds", "0.05")
GPUTOP = (sys.executable, "-m", "gputop")
LIMITS = {resource.RLIMIT_NPROC: (7, 9)}
STRANGER = ("unshare", "--user", "--map-user=12345")
"""Without an entry in passwd, and with the rights of whoever runs the tests."""


def started(command: Sequence[str], cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run with nothing in the environment but a path and `env`."""
    full = {"PATH": os.environ["PATH"], "PYTHONPATH": str(paths.PACKAGE.parent), **env}
    return subprocess.run(command, cwd=cwd, env=full, capture_output=True, text=True)


def can_be_a_stranger() -> bool:
    if shutil.which(STRANGER[0]) is None:
        return False
    code = "import os, pwd\ntry: pwd.getpwuid(os.getuid())\nexcept KeyError: print('unknown')"
    return subprocess.run([*STRANGER, sys.executable, "-c", code], capture_output=True).stdout == b"unknown\n"


def test_without_a_home_it_measures_and_says_once_that_nothing_is_kept(tmp_path: Path) -> None:
    if not can_be_a_stranger():
        pytest.skip("no user without an entry in passwd can be had")
    ran = started([*STRANGER, *GPUTOP, *RUN, "--windows", "2"], tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "gate PASS" in ran.stdout
    assert ran.stderr.count("There is no home folder") == 1
    assert not list(tmp_path.iterdir()), "no folder called ~ either"


def test_a_home_that_can_not_be_written_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    ran = started([*GPUTOP, *RUN], tmp_path, HOME=str(tmp_path / "home"))
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count(f"{tmp_path}/home/.cache/gputop can't be written: nothing is cached") == 1


@pytest.mark.parametrize("answer", [RuntimeError("no home"), Path("~/.cache/gputop")], ids=str)
def test_a_home_that_is_not_known_is_no_place(
    monkeypatch: pytest.MonkeyPatch, answer: Exception | Path
) -> None:
    """Versions of platformdirs raise, or give back the mark for a home."""

    def find(name: str) -> Path:
        if isinstance(answer, Exception):
            raise answer
        return answer

    for name in ("user_cache_path", "user_log_path"):
        monkeypatch.setattr(platformdirs, name, find)
    assert paths.cache_dir("ceilings") == NOWHERE / "ceilings"
    assert paths.log_dir() is None
    assert "no home folder" in paths.why_no_cache()


def test_a_wrapper_s_search_path_reaches_every_child(tmp_path: Path) -> None:
    """As Nix does: the packages are added inside of Python, which by itself has none."""
    bare = getattr(sys, "_base_executable", sys.executable)
    wrapper = tmp_path / "gputop-wrapped"
    wrapper.write_text(
        f"import sys\nsys.path[1:1] = {[entry for entry in sys.path if entry]!r}\n"
        "from gputop.cli import main\nsys.exit(main())\n"
    )
    ran = started([bare, "-E", "-s", str(wrapper), *RUN], tmp_path, HOME=str(tmp_path / "home"))
    assert ran.returncode == 0, ran.stderr


def test_where_the_user_stands_is_not_searched_by_a_child(tmp_path: Path) -> None:
    (tmp_path / "queue.py").write_text("raise SystemExit('this is not the queue')\n")
    (tmp_path / "shown.py").write_text(
        "from gputop.util.child_environment import search_path\nprint(search_path())\n"
    )
    ran = started([sys.executable, "-m", "shown"], tmp_path)
    assert str(tmp_path) not in ran.stdout
    assert str(paths.PACKAGE.parent) in ran.stdout


def test_a_search_path_holds_what_can_be_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    extra, odd = tmp_path / "extra", tmp_path / "with:colon"
    for folder in (extra, odd):
        folder.mkdir()
    unsaid = ["", "relative", str(odd), str(tmp_path / "gone")]
    monkeypatch.setattr(sys, "path", [*unsaid, str(extra), *sys.path])
    found = search_path()
    assert str(extra) in found
    assert not {*unsaid} & {*found}


def as_on_windows(code: str) -> subprocess.CompletedProcess[str]:
    """A Python that takes itself for one of Windows, without the names that are missing there."""
    lacking = "import os, signal, sys\ndel signal.SIGHUP, os.killpg, os.getuid\nsys.platform = 'win32'\n"
    return subprocess.run([sys.executable, "-c", lacking + code], capture_output=True, text=True)


@pytest.mark.parametrize("words", [[], ["doctor"], ["--version"]])
def test_on_windows_the_command_line_says_where_gputop_runs(words: list[str]) -> None:
    ran = as_on_windows(f"from gputop.cli import main\nsys.exit(main({words!r}))")
    assert ran.returncode == 3
    assert ran.stderr.startswith("gputop: gputop runs on Linux, on macOS, and on Windows inside WSL2.")
    assert len(ran.stderr.splitlines()) == 1


@pytest.mark.parametrize("module", ["gputop.session.session", "gputop.ipc.worker_client"])
def test_on_windows_the_library_says_so_when_it_is_imported(module: str) -> None:
    ran = as_on_windows(f"try: import {module}\nexcept ImportError as error: print(error)")
    assert ran.stdout.startswith("gputop runs on Linux, on macOS, and on Windows inside WSL2."), ran.stderr


@pytest.mark.parametrize("most", [1, 3, 5])
def test_a_control_group_without_room_for_threads_is_named(most: int, tmp_path: Path) -> None:
    with control_group("pids", {"pids.max": str(most)}) as procs:
        command = joining(procs, [*GPUTOP, *RUN])
        ran = started(command, tmp_path, HOME=str(tmp_path))
        name = procs.parent.name
    assert ran.returncode == 3, ran.stderr
    threads = "thread" if most == 1 else "threads"
    assert f"the control group {name} may have {most} {threads} (pids.max)" in ran.stderr
    assert "report" not in ran.stderr
    assert "Traceback" not in ran.stderr


def other_user_s(python: str, wrapper: Path) -> list[str]:
    """The command that runs the wrapper as a user who has no other process, with room for 3 threads."""
    setpriv = ("setpriv", "--reuid=12345", "--clear-groups")
    return [*setpriv, "prlimit", "--nproc=3", python, "-E", "-s", str(wrapper)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user, and is not bound itself")
def test_a_user_s_own_limit_is_named() -> None:
    if shutil.which("setpriv") is None or shutil.which("prlimit") is None:
        pytest.skip("no setpriv or no prlimit here")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        wrapper = Path(folder) / "wrapped.py"
        wrapper.write_text(
            f"import sys\nsys.path[1:1] = {[entry for entry in sys.path if 'site-packages' in entry]!r}\n"
            f"sys.path.insert(1, {str(paths.PACKAGE.parent)!r})\n"
            "from gputop.cli import main\nsys.exit(main())\n"
        )
        for python in ("/usr/bin/python3", sys.executable):
            command = other_user_s(python, wrapper)
            try:
                readable = started([*command, "--version"], Path(folder), HOME=folder).returncode == 0
            except OSError:
                continue
            if readable:
                break
        else:
            pytest.skip("another user can't read any Python with the packages")
        ran = started([*command, *RUN], Path(folder), HOME=folder)
    assert ran.returncode == 3, ran.stderr
    assert "this user may have 3 threads (ulimit -u)" in ran.stderr


def test_doctor_without_room_for_threads_blames_no_package(tmp_path: Path) -> None:
    with control_group("pids", {"pids.max": "6"}) as procs:
        ran = started(joining(procs, [*GPUTOP, "doctor"]), tmp_path, HOME=str(tmp_path))
    assert ran.returncode == 3, ran.stderr
    assert "pids.max" in ran.stderr
    assert "install" not in ran.stderr


def test_a_user_s_limit_is_named_with_what_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proc = tmp_path / "proc"
    for pid, (uid, threads) in enumerate(((os.getuid(), 5), (os.getuid() + 1, 90), (os.getuid(), 2)), 10):
        (proc / str(pid)).mkdir(parents=True)
        status = f"Name:\tx\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nThreads:\t{threads}\n"
        (proc / str(pid) / "status").write_text(status)
    monkeypatch.setattr(resource, "getrlimit", lambda which: LIMITS.get(which, (-1, -1)))
    monkeypatch.setattr(cgroups, "pids_limit", lambda proc: cgroups.PidsLimit(100, 20, "job"))
    assert thread_limits.sentence(proc) == (
        "No further thread or process can be started here: this user may have 7 threads (ulimit -u), "
        "and has 7. Raise that limit."
    )
    monkeypatch.setattr(cgroups, "pids_limit", lambda proc: cgroups.PidsLimit(30, 35, "job"))
    assert "the control group job may have 30 threads (pids.max), and has 35" in thread_limits.sentence(proc)


def test_errors_of_a_met_limit_are_told_from_others() -> None:
    assert thread_limits.is_met(RuntimeError("can't start new thread"))
    assert thread_limits.is_met(BlockingIOError(11, "Resource temporarily unavailable"))
    assert not thread_limits.is_met(RuntimeError("anything else"))
    assert not thread_limits.is_met(FileNotFoundError(2, "No such file"))
    assert not thread_limits.is_met(ValueError("can't start new thread"))


def test_what_can_be_started_at_once_is_found_by_starting_it(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.active_count()
    thread_limits.require(20)
    assert threading.active_count() == begun
    start = threading.Thread.start

    def start_three(thread: threading.Thread) -> None:
        if threading.active_count() >= begun + 3:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_three)
    with pytest.raises(Unavailable, match="No further thread"):
        thread_limits.require(20)
    assert threading.active_count() == begun
