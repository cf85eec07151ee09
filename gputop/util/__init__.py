"""Plumbing that knows nothing of gputop: errors, paths, signals, heartbeat, units, output files."""
