"""Which kind of session serves a backend's name."""

from __future__ import annotations

from gputop.backends.base import Say
from gputop.plan.types import Workload
from gputop.session.replay import Replay
from gputop.session.session import Session

REPLAY = "replay"
"""Stands among the backends and is none: what it serves was measured elsewhere."""


def open_session(
    backend: str, workload: Workload, *, device: str | None, kernels_dir: str | None, say: Say
) -> Session | Replay:
    """A session that measures, or for `replay` the recording that `device` names, with its own workload.

    Unavailable when the device or a library is missing; UsageError for a recording that can't be read.
    """
    if backend == REPLAY:
        return Replay.open(device, kernels_dir)
    return Session.open(backend, workload, device=device, kernels_dir=kernels_dir, say=say)
