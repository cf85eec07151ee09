"""What all tests share: how hypothesis searches, and the options of a run."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.homes import keep_ceilings

# A busy two-core machine makes an example's time say nothing; CI repeats the same examples.
settings.register_profile("gputop", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("gputop"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "gputop")


@pytest.fixture(scope="session", autouse=True)
def data_home(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Workers that tests start keep their windows here, never beside those of whoever runs the tests."""
    os.environ["XDG_DATA_HOME"] = str(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session", autouse=True)
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache home of tests that have none of their own: it holds this machine's ceilings."""
    home = tmp_path_factory.mktemp("cache")
    os.environ["XDG_CACHE_HOME"] = str(home)
    keep_ceilings()
    return home


def pytest_configure() -> None:
    """Let what tests start be ended by signals: a run in the background ignores some, and so would they."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes long, but with --thorough."""
    if not config.getoption("--thorough"):
        long = [item for item in items if item.get_closest_marker("thorough")]
        items[:] = [item for item in items if item not in long]
        config.hook.pytest_deselected(items=long)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--thorough",
        action="store_true",
        help="run what takes long too: each kernel for each architecture, emitted programs, large shapes",
    )
    parser.addoption(
        "--update-goldens",
        action="store_true",
        help="write the files that texts are compared with, where a change of them is meant",
    )
