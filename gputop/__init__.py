"""Where a forward pass spends its time, how far each phase is from physics, and what one change buys."""

import sys

__version__ = "0.1.0"

UNSUPPORTED = (
    "gputop runs on Linux, on macOS, and on Windows inside WSL2. This is a Python for Windows itself: "
    "install gputop in WSL2 (wsl --install)."
    if sys.platform == "win32"
    else ""
)
"""Why gputop can't run on this system; empty if it can."""
