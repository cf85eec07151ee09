"""Where a start goes: with GPUTOP_TIMES set, when each step of this process began, on stderr."""

from __future__ import annotations

import os
import sys
import time

_ASKED = bool(os.environ.get("GPUTOP_TIMES"))


def mark(step: str) -> None:
    """Say that `step` begins, where that is asked for. Unix seconds: two processes can be compared."""
    if _ASKED:
        print(f"{time.time():.3f} {step}", file=sys.stderr, flush=True)
