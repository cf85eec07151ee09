"""The canonical weights, drawn before they are asked for while a front end still gets ready to ask."""

from __future__ import annotations

from threading import Lock, Thread

from gputop.backends.cpu import machine
from gputop.backends.cpu.memory import Floats
from gputop.model import weights
from gputop.model.workloads import check_sizes
from gputop.plan.types import Workload
from gputop.util.errors import UsageError

EARLY_BYTES = 1 << 30
"""No more than this is drawn unasked: a second's work."""

_lock = Lock()
_drawing: dict[Workload, Thread] = {}
"""The last workload whose weights were begun: `weights.master` keeps those of one."""


def begin(workload: Workload) -> bool:
    """Draw a workload's weights in a thread, unless that is under way; False if too large, or of a file."""
    try:
        check_sizes(workload.dims, workload.name)
    except UsageError:
        # Said by the opening, which this only runs ahead of.
        return False
    if workload.weights is not None:
        # What is wrong with a file is for the one who asks to hear.
        return False
    if not weights.weight_bytes(workload.dims) <= EARLY_BYTES < machine.free_bytes() // 2:
        return False
    with _lock:
        if workload not in _drawing:
            _drawing.clear()
            thread = Thread(target=weights.master, args=(workload,), name="weights", daemon=True)
            _drawing[workload] = thread
            thread.start()
    return True


def master(workload: Workload) -> dict[str, Floats]:
    """The weights, once they are drawn; see `weights.master`."""
    with _lock:
        thread = _drawing.get(workload)
    if thread is not None:
        thread.join()
    return weights.master(workload)
