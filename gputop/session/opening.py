"""Which kind of session serves a backend's name."""

from __future__ import annotations

from gputop.backends.base import Say
from gputop.session.replaying import Replay
from gputop.session.session import Session
from gputop.spec import Workload

REPLAY = "replay"
"""Stands among the backends and is none: what it serves was measured elsewhere."""


def open_session(
    backend: str, workload: Workload, *, device: str | None, kernels_dir: str | None, say: Say
) -> Session | Replay:
    """A session that measures, or for `replay` the recording that `device` names, with its own workload.

    NotHere when the device or a library is missing; BadInput for a recording that can't be read.
    """
    if backend == REPLAY:
        return Replay.open(device)
    return Session.open(backend, workload, device=device, kernels_dir=kernels_dir, say=say)
