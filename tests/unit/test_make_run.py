"""`make run` by itself chooses the packages that fit the driver: the real Makefile, a driver of our own, pip
and gputop replaced by scripts that say what they were asked for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from gputop.backends.cuda.runtime.driver import LEAST_DRIVER, LIBRARY, OLDEST_DRIVER

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("Makefile", "pyproject.toml", "gputop/backends/cuda/runtime/driver.py")
PYTHON = """#!/bin/sh
if [ "$2" = pip ]; then
    echo "$@" >> asked
    case "$*" in *cuda*) exit $PIP_ANSWERS;; esac
elif [ "$2" != compileall ]; then
    exec {python} "$@"
fi
"""

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not (shutil.which("make") and shutil.which("cc")),
    reason="needs Linux, make and a C compiler",
)


@dataclass(frozen=True, slots=True)
class Checkout:
    """A folder in which `make run` works, and how it went."""

    folder: Path

    def run(self, serves: int | None, pip_answers: int = 0, *args: str) -> subprocess.CompletedProcess[str]:
        """`make run` with a driver that serves this CUDA; None: without a driver."""
        libraries = self.folder / "lib"
        libraries.mkdir(exist_ok=True)
        # A machine that has a driver of its own shows none through this one.
        code = f"int cuDriverGetVersion(int *v) {{ *v = {serves or 0}; return {0 if serves else 100}; }}"
        command = ["cc", "-shared", "-x", "c", "-", "-o", str(libraries / LIBRARY)]
        subprocess.run(command, input=code, text=True, check=True)
        env = {**os.environ, "LD_LIBRARY_PATH": str(libraries), "PIP_ANSWERS": str(pip_answers)}
        for name in ("MAKEFLAGS", "MAKELEVEL", "EXTRAS"):
            env.pop(name, None)
        return subprocess.run(
            ["make", "run", *args], cwd=self.folder, env=env, capture_output=True, text=True, timeout=60
        )

    @property
    def installed(self) -> list[str]:
        """What pip was asked for, call by call."""
        return [line.split()[-1] for line in (self.folder / "asked").read_text().splitlines()]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    for name in NEEDED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    scripts = tmp_path / ".venv" / "bin"
    scripts.mkdir(parents=True)
    for name, text in (("python", PYTHON.format(python=sys.executable)), ("gputop", "#!/bin/sh\necho ran\n")):
        (scripts / name).write_text(text)
        (scripts / name).chmod(0o755)
    return Checkout(tmp_path)


@pytest.mark.parametrize(
    ("serves", "extra"), [(OLDEST_DRIVER, "cuda13"), (13010, "cuda13"), (OLDEST_DRIVER - 10, "cuda12")]
)
def test_the_extra_that_fits_the_driver_is_installed_once_and_said(
    checkout: Checkout, serves: int, extra: str
) -> None:
    done = checkout.run(serves)
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert f"extra {extra}" in done.stderr
    assert checkout.installed == [".", f".[{extra}]"]
    again = checkout.run(serves)
    assert (again.stdout, again.stderr) == ("ran\n", "")
    assert checkout.installed == [".", f".[{extra}]"]


def test_a_failed_installation_leaves_the_cpu_and_the_command_that_tries_again(checkout: Checkout) -> None:
    done = checkout.run(OLDEST_DRIVER, pip_answers=1)
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert "make run EXTRAS=cuda13" in done.stderr
    assert checkout.run(OLDEST_DRIVER, pip_answers=1).stderr == "", "each start would wait for the network"
    again = checkout.run(OLDEST_DRIVER, 0, "EXTRAS=cuda13")
    assert again.returncode == 0
    assert checkout.installed == [".", ".[cuda13]", ".[cuda13]"]


def test_without_a_driver_nothing_is_added_until_there_is_one(checkout: Checkout) -> None:
    done = checkout.run(None)
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert "driver" not in done.stderr
    assert checkout.installed == ["."]
    checkout.run(OLDEST_DRIVER)
    assert checkout.installed == [".", ".[cuda13]"]


def test_a_driver_too_old_is_said_and_the_cpu_measured(checkout: Checkout) -> None:
    done = checkout.run(LEAST_DRIVER - 10)
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert "needs 12.4" in done.stderr
    assert checkout.installed == ["."]


def test_extras_that_are_named_are_the_only_ones(checkout: Checkout) -> None:
    checkout.run(OLDEST_DRIVER, 0, "EXTRAS=torch")
    assert checkout.installed == [".[torch]"]
