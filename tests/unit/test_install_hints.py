"""The command that mends something works in the reader's shell, whichever environment is active there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gputop.util import install_hints, paths


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Python that runs gputop, from a wheel, in a folder of its own; the shell finds none."""
    path = tmp_path / "env" / "bin" / "python3"
    path.parent.mkdir(parents=True)
    path.touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "env"))
    monkeypatch.setattr(paths, "checkout", lambda: None)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return path


def test_the_bare_name_only_where_the_shell_finds_the_same_python(
    python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert install_hints.extra("torch") == f"{python} -m pip install 'gputop-roofline[torch]'"
    monkeypatch.setenv("PATH", str(python.parent))
    assert install_hints.extra("torch") == "python3 -m pip install 'gputop-roofline[torch]'"
    other = python.parents[2] / "other"
    other.mkdir()
    (other / "python3").symlink_to(python)
    monkeypatch.setenv("PATH", f"{other}:{python.parent}")
    assert install_hints.pip("check") == f"{python} -m pip check", (
        "an environment's Python is a link to another"
    )


def test_its_path_is_as_short_as_it_can_be(python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(python.parents[2])
    assert install_hints.pip("check") == "env/bin/python3 -m pip check"
    monkeypatch.chdir("/")
    monkeypatch.setenv("HOME", str(python.parents[2]))
    monkeypatch.setattr(sys, "executable", str(python.parents[2] / "my env" / "python3"))
    monkeypatch.setattr(Path, "cwd", lambda: Path("/nowhere"))
    assert install_hints.pip("check") == "~/'my env/python3' -m pip check"


def test_a_checkout_with_its_own_environment_is_mended_by_make(
    python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = python.parents[2]
    monkeypatch.setattr(paths, "checkout", lambda: root)
    assert install_hints.extra("torch").startswith(str(python)), "another environment than make's"
    monkeypatch.setattr(sys, "prefix", str(root / ".venv"))
    monkeypatch.chdir(root)
    assert install_hints.extra("cuda13") == "make run EXTRAS=cuda13"
    monkeypatch.chdir(python.parent)
    assert install_hints.extra("cuda13,blaslt") == f"make -C {root} run EXTRAS=cuda13,blaslt"
