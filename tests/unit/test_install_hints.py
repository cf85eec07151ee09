"""The command that adds or repairs something is one of the tool that installed gputop."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
import sysconfig
from pathlib import Path

import pytest

from gputop.util import install_hints, paths


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Python that runs gputop, from a wheel, in a folder of its own with pip; the shell finds none."""
    path = tmp_path / "env" / "bin" / "python3"
    path.parent.mkdir(parents=True)
    path.touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "env"))
    monkeypatch.setattr(paths, "checkout", lambda: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return path


@pytest.fixture
def no_pip(python: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    return python


def test_the_bare_name_only_if_the_shell_finds_the_same_python(
    python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert install_hints.extra("torch") == f"{python} -m pip install 'gputop-roofline[torch]'"
    monkeypatch.setenv("PATH", str(python.parent))
    assert install_hints.extra("torch") == "python3 -m pip install 'gputop-roofline[torch]'"
    other = python.parents[2] / "other"
    other.mkdir()
    (other / "python3").symlink_to(python)
    monkeypatch.setenv("PATH", f"{other}:{python.parent}")
    assert install_hints.install("x") == f"{python} -m pip install x", (
        "an environment's Python is a link to another"
    )


def test_its_path_is_as_short_as_it_can_be(python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(python.parents[2])
    assert install_hints.install("x") == "env/bin/python3 -m pip install x"
    monkeypatch.chdir("/")
    monkeypatch.setenv("HOME", str(python.parents[2]))
    monkeypatch.setattr(sys, "executable", str(python.parents[2] / "my env" / "python3"))
    monkeypatch.setattr(Path, "cwd", lambda: Path("/nowhere"))
    assert install_hints.install("x") == "~/'my env/python3' -m pip install x"


def test_pip_says_what_it_would_else_refuse_or_ask(python: Path) -> None:
    assert install_hints.upgrade("x>=2") == f"{python} -m pip install --upgrade 'x>=2'"
    assert install_hints.install_again("x") == f"{python} -m pip install --force-reinstall --no-deps x"
    assert install_hints.uninstall("x", "y") == f"{python} -m pip uninstall --yes x y"


def test_a_checkout_with_its_own_environment_is_served_by_make(
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
    (root / ".venv").mkdir()
    (root / ".venv" / ".installed-cuda13").touch()
    assert install_hints.extra("cuda13") == f"python3 -m pip install --editable '{root}[cuda13]'", (
        "make would find nothing to do"
    )


def test_an_environment_of_pipx_is_changed_by_pipx(no_pip: Path) -> None:
    (no_pip.parents[1] / "pipx_metadata.json").touch()
    assert install_hints.extra("cuda13") == "pipx inject env 'gputop-roofline[cuda13]'"
    assert install_hints.upgrade("x") == "pipx runpip env install --upgrade x"
    assert install_hints.install_again("x") == "pipx runpip env install --force-reinstall --no-deps x"
    assert install_hints.uninstall("x") == "pipx runpip env uninstall --yes x"


@pytest.mark.parametrize(
    ("file", "content"), [("uv-receipt.toml", ""), ("pyvenv.cfg", "home = /usr/bin\nuv = 0.9.1\n")]
)
def test_an_environment_of_uv_has_no_pip_and_is_changed_by_uv(no_pip: Path, file: str, content: str) -> None:
    (no_pip.parents[1] / file).write_text(content)
    assert install_hints.extra("cuda13") == f"uv pip install --python {no_pip} 'gputop-roofline[cuda13]'"
    assert install_hints.upgrade("x") == f"uv pip install --python {no_pip} --upgrade x"
    assert install_hints.install_again("x") == f"uv pip install --python {no_pip} --reinstall --no-deps x"
    assert install_hints.uninstall("x") == f"uv pip uninstall --python {no_pip} x"


def test_without_any_installer_python_brings_its_own(no_pip: Path) -> None:
    assert install_hints.install("x") == f"{no_pip} -m ensurepip && {no_pip} -m pip install x"


def test_a_python_that_a_distribution_keeps_must_be_told_twice(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "EXTERNALLY-MANAGED").touch()
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    assert install_hints.install("x") == f"{python} -m pip install x", "an environment is the user's"
    monkeypatch.setattr(sys, "base_prefix", sys.prefix)
    assert install_hints.install("x") == f"{python} -m pip install --break-system-packages x"


def test_a_requirement_has_the_bounds_that_gputop_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ["numpy<3,>=2.0", "cupy-cuda13x<15,>=14.2; extra == 'cuda13'", "cupy-cuda13x-more==1"]
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: asked)
    assert install_hints.requirement_of("numpy") == "numpy<3,>=2.0"
    assert install_hints.requirement_of("cupy-cuda13x") == "cupy-cuda13x<15,>=14.2"
    assert install_hints.requirement_of("cupy") == "cupy"
