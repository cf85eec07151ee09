"""What a launch costs in this process at this moment: empty launches, each after the other, as one graph.

A library may change that for all later launches of its process (see backends/cuda/separate), and then times
of one plan differ between windows by more than what any change of a kernel brings.
"""

from __future__ import annotations

from typing import Any

from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.graph import capture
from gputop.backends.cuda.runtime.utility_kernels import Tools
from gputop.backends.cuda.timing.events import Timer

LAUNCHES = 200
RUNS = 3


class LaunchSentinel:
    """Takes about a millisecond a reading."""

    def __init__(self, context: Context, tools: Tools, timer: Timer) -> None:
        self._context = context
        self._tools = tools
        self._timer = timer
        self._graph: Any = None

    def launch_s(self) -> float:
        """Seconds of one launch, the least of a few runs: comparable with the ceiling `launch_graph`."""
        if self._graph is None:
            self._graph = capture(self._context, [self._tools.empty()] * LAUNCHES, "the launch sentinel")
        return min(self._timer.whole([self._launch])[0] for _ in range(RUNS)) / LAUNCHES

    def _launch(self) -> None:
        self._graph.launch(self._context.stream)
