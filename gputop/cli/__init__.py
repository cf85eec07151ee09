"""The command line: stdout is data, stderr is narration, and a fault is a sentence with an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from gputop.errors import GputopError

INTERRUPTED = 130
"""Exit code after ^C, as shells expect it."""
INTERNAL_FAULT = 70
"""Exit code of a fault of gputop's own (EX_SOFTWARE): none of the promised ones would be true."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    from gputop.cli.commands import dispatch
    from gputop.times import mark

    mark("gputop: started")
    try:
        code = dispatch(list(sys.argv[1:] if argv is None else argv))
        # Written here so that a reader that left (`| head`) is noticed here and not at interpreter exit.
        sys.stdout.flush()
        mark("gputop: done")
        return code
    except GputopError as error:
        _tell(f"gputop: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("GPUTOP_TRACEBACK"):
            raise
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        _tell(f"gputop: a fault of its own ({what}). GPUTOP_TRACEBACK=1 shows where; please report it.")
        return INTERNAL_FAULT


def _tell(text: str) -> None:
    print(text, file=sys.stderr)
