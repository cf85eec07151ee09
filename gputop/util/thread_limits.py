"""Limits to the number of threads and processes: whether so many can be started, and what is in the way.

A limit that is met shows as an error of whatever starts the next thread, and a BLAS that lacks one hangs: it
is looked for beforehand, and named.
"""

from __future__ import annotations

import errno
import os
import resource
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gputop.util import cgroups
from gputop.util.cgroups import PROC
from gputop.util.errors import Unavailable
from gputop.util.units import size_bytes

NO_THREAD = "can't start new thread"
"""Python's own words; the exception is a plain RuntimeError."""


@dataclass(frozen=True, slots=True)
class Limit:
    """One bound on the number of threads."""

    bound: str
    """`this user may have 3 threads (ulimit -u)`."""
    left: int | None
    """How many more it allows; None if that is not known."""


def is_met(error: BaseException) -> bool:
    """Return whether an error says that no thread or process could be started."""
    if isinstance(error, RuntimeError):
        return str(error) == NO_THREAD
    return isinstance(error, OSError) and error.errno == errno.EAGAIN


def sentence(proc: Path = PROC) -> str:
    """Return what to say when no thread or process could be started: the tightest limit, and what to do."""
    found = sorted(_limits(proc), key=lambda limit: (limit.left is None, limit.left))
    if not found:
        return "No further thread or process can be started here, and no limit to them can be read."
    return f"No further thread or process can be started here: {found[0].bound}. Raise that limit."


def require(count: int) -> None:
    """Raise Unavailable, with the limit, unless `count` threads can be started at once."""
    ready, threads = threading.Event(), []
    try:
        for _ in range(count):
            thread = threading.Thread(target=ready.wait, daemon=True)
            thread.start()
            threads.append(thread)
    except RuntimeError as error:
        raise Unavailable(sentence()) from error
    finally:
        ready.set()
        for thread in threads:
            thread.join()


def _limits(proc: Path) -> Iterator[Limit]:
    limit, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if limit != resource.RLIM_INFINITY:
        yield _limit("this user", "ulimit -u", limit, _threads_of_user(proc))
    group = cgroups.pids_limit(proc)
    if group is not None:
        yield _limit(f"the control group {group.group}", "pids.max", group.limit, group.used)
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        yield Limit(
            f"the address space is limited to {size_bytes(limit)} (ulimit -v), and each takes some", None
        )


def _limit(who: str, name: str, limit: int, used: int | None) -> Limit:
    has = f", and has {used}" if used is not None and used >= limit else ""
    bound = f"{who} may have {limit} thread{'' if limit == 1 else 's'} ({name}){has}"
    return Limit(bound, None if used is None else limit - used)


def _threads_of_user(proc: Path) -> int | None:
    """Threads of every process of this user; None if processes can't be listed."""
    count = 0
    try:
        for status in proc.glob("[0-9]*/status"):
            fields = dict(line.partition(":\t")[::2] for line in _lines(status))
            if fields.get("Uid", "").split("\t")[0] == str(os.getuid()):
                count += int(fields.get("Threads", "0"))
    except (OSError, ValueError):
        return None
    return count or None


def _lines(status: Path) -> list[str]:
    try:
        return status.read_text(errors="replace").splitlines()
    except OSError:
        # It ended meanwhile.
        return []
