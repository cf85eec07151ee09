"""Where a start goes: with GPUTOP_TIMES set, when each step of this process began, on stderr.

The front end's lines go to the terminal, the worker's to its log; both count seconds from one start.
"""

from __future__ import annotations

import os
import sys
import time

VARIABLE = "GPUTOP_TIMES"
_EARLIEST_S = 1e9
"""Unix seconds: anything below is a yes, not a time."""


def mark(step: str) -> None:
    """Say that `step` begins, where that is asked for."""
    if asked := os.environ.get(VARIABLE):
        print(f"{time.time() - _start_s(asked):7.3f} s  {step}", file=sys.stderr, flush=True)


def _start_s(asked: str) -> float:
    """When the front end began, in Unix seconds: the first process that asks notes it for those it starts."""
    try:
        start_s = float(asked)
    except ValueError:
        start_s = 0.0
    if start_s < _EARLIEST_S:
        # What Python did before this was read is processor time nearly alone.
        start_s = time.time() - time.process_time()
        os.environ[VARIABLE] = f"{start_s:.6f}"
    return start_s
