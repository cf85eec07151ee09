"""GPU tests: skipped with the reason where the cuda backend can't be used.

One session is open at a time: the backend's stream is the thread's current one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gputop.backends.cuda.availability import available
from gputop.backends.cuda.compiler.sources import Sources
from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.utility_kernels import Tools
from gputop.backends.cuda.timing.events import Timer

HERE = Path(__file__).parent
KERNELS = HERE / "kernels"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ours = [item for item in items if HERE in item.path.parents]
    why = available() if ours else None
    for item in ours:
        item.add_marker(pytest.mark.gpu)
        if why is not None:
            item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture
def context() -> Iterator[Context]:
    opened = Context(0)
    yield opened
    opened.close()


@pytest.fixture
def tools(context: Context) -> Tools:
    return Tools(context, Sources.before_ours())


@pytest.fixture
def timer(context: Context, tools: Tools) -> Timer:
    return Timer(context, tools)
