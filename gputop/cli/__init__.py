"""The command line: stdout is data, stderr is narration, and a fault is a sentence with an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from gputop import UNSUPPORTED

UNAVAILABLE = 3
"""Exit code where gputop can't run at all, as of `errors.Unavailable`."""
INTERRUPTED = 130
"""Exit code after ^C, as shells expect it."""
INTERNAL_FAULT = 70
"""Exit code of a fault of gputop's own (EX_SOFTWARE): none of the promised ones would be true."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    _open_streams()
    if UNSUPPORTED:
        print(f"gputop: {UNSUPPORTED}", file=sys.stderr)
        return UNAVAILABLE
    # Not above: on a system that lacks what they need they can't be imported.
    from gputop.util import thread_limits
    from gputop.util.errors import GputopError, Unavailable
    from gputop.util.signals import Terminated, raise_on_signal

    try:
        with raise_on_signal():
            # Imported in here: ^C may come at any moment.
            from gputop.cli.command_table import dispatch
            from gputop.util.startup_trace import mark

            mark("gputop: started")
            code = dispatch(list(sys.argv[1:] if argv is None else argv))
            mark("gputop: done")
            return code
    except GputopError as error:
        _tell(str(error))
        return error.exit_code
    except Terminated as ended:
        return ended.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of stdout has what it wanted (`| head`).
        return 0
    except Exception as error:
        if os.environ.get("GPUTOP_TRACEBACK"):
            raise
        if thread_limits.is_met(error):
            _tell(thread_limits.sentence())
            return Unavailable.exit_code
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        _tell(f"internal error ({what}). Set GPUTOP_TRACEBACK=1 for the traceback; please report it.")
        return INTERNAL_FAULT
    finally:
        _settle_streams()


def _tell(text: str) -> None:
    from gputop.cli.terminal import print_message

    print_message(text)


def _open_streams() -> None:
    """Open closed standard streams on the null device; the next file opened would take their descriptor."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (open to the end)


def _settle_streams() -> None:
    """Drop what a stream could not take: tried again when Python exits, it would change the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
