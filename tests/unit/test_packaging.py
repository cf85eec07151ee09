"""What is built and what is promised of it."""

from __future__ import annotations

import importlib
import re
import tarfile
import tomllib
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from gputop import __version__

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CODE = (".py", ".tcss", ".typed", ".cu", ".cuh", ".c")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


def _sources(folder: str, *suffixes: str) -> set[str]:
    """Files below a folder of the checkout, relative to it."""
    base = ROOT / folder
    return {path.relative_to(base).as_posix() for path in base.rglob("*") if path.suffix in suffixes}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("dist")
    (path,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    return zipfile.ZipFile(path)


def test_the_sdist_holds_all_that_the_wheel_is_built_from(tmp_path: Path) -> None:
    (path,) = SdistBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    folders = ("gputop", "kernels", "phases")
    sources = {f"{folder}/{name}" for folder in folders for name in _sources(folder, *CODE)}
    assert sources <= names
    assert {"LICENSE", "README.md", "Makefile", "pyproject.toml", ".ci/run"} <= names
    assert [name for name in names if name.startswith(("build/", "dist/", ".venv/", "screenshots/"))] == []


def test_the_wheel_is_one_package(wheel: zipfile.ZipFile) -> None:
    tops = {PurePosixPath(name).parts[0] for name in wheel.namelist()}
    assert tops == {"gputop", f"gputop_roofline-{__version__}.dist-info"}


def test_the_wheel_holds_every_kernel_and_every_phase(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    kernels = _sources("kernels", ".cu", ".cuh")
    phases = _sources("phases", ".py")
    assert kernels
    assert phases
    assert {f"gputop/_data/kernels/{name}" for name in kernels} <= names
    assert {f"gputop/phases/{name}" for name in phases} <= names
    assert {f"gputop/{name}" for name in _sources("gputop", *CODE)} <= names
    assert "gputop/py.typed" in names
    assert [name for name in names if "__pycache__" in name or name.endswith(".pyc")] == []


def test_the_wheel_carries_its_licence(wheel: zipfile.ZipFile) -> None:
    text = wheel.read(f"gputop_roofline-{__version__}.dist-info/licenses/LICENSE").decode()
    assert "Apache License" in text
    assert PROJECT["license"] == "Apache-2.0"


def test_the_command_exists() -> None:
    module, _, function = PROJECT["scripts"]["gputop"].partition(":")
    assert callable(getattr(importlib.import_module(module), function))


def test_the_readme_names_each_extra() -> None:
    table = (ROOT / "README.md").read_text().partition("| extra | brings |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(PROJECT["optional-dependencies"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_installs_the_other_gputop(page: Path) -> None:
    """On the package index that name is another tool's."""
    assert re.findall(r"""install\s+["']?gputop(?!-roofline)\b""", page.read_text()) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_points_at_a_file_that_is_not_there(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_changelog_knows_this_version() -> None:
    assert f"## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text()
