"""Compile tests need NVRTC and no GPU. Their CUBINs stay in build/, so that a second run is short."""

from __future__ import annotations

import pytest

from gputop.backends.cuda.compiler.nvrtc import toolchain
from gputop.util.errors import Unavailable

ALL_ARCHS = ("80", "86", "89", "90", "100", "120")
USUAL_ARCHS = ("90",)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    try:
        toolchain()
    except Unavailable as error:
        for item in items:
            if "tests/compile/" in item.path.as_posix():
                item.add_marker(pytest.mark.skip(reason=str(error)))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`device_arch`: the compute capabilities to compile for."""
    if "device_arch" in metafunc.fixturenames:
        archs = ALL_ARCHS if metafunc.config.getoption("--thorough") else USUAL_ARCHS
        metafunc.parametrize("device_arch", archs)


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(request.config.rootpath / "build" / "cache"))
