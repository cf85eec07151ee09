"""Plumbing that knows nothing of gputop: errors, paths, signals, heartbeat, units, output files."""

from gputop import UNSUPPORTED

if UNSUPPORTED:
    # Every part of gputop imports from here, and the command line asks first.
    raise ImportError(UNSUPPORTED)
