"""`python -m gputop`."""

from __future__ import annotations

import sys

from gputop.cli import main

if __name__ == "__main__":
    sys.exit(main())
