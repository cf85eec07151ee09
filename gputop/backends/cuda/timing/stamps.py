"""Times that a kernel of several tasks notes itself, read from its workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gputop.util.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORKSPACE = "stamps"
"""Name of the `Scratch` that holds them."""
NS = 1e-9


def seconds_apart(workspace: NDArray[np.uint8]) -> list[float]:
    """Seconds of each task, from (cycles, nanoseconds) pairs of int64: its begin, then every task's end.

    Cycles count finely and nanoseconds truly: a task's cycles over the clock of the whole. UsageError
    when they do not rise.
    """
    cycles, nanoseconds = workspace.view(np.int64).reshape(-1, 2).T
    whole_s = float(nanoseconds[-1] - nanoseconds[0]) * NS
    spent = np.diff(cycles)
    if whole_s <= 0.0 or (spent < 0).any() or not spent.any():
        raise UsageError("A kernel that notes when its tasks end left times that do not rise.")
    clock_hz = float(cycles[-1] - cycles[0]) / whole_s
    return [float(count) / clock_hz for count in spent]
