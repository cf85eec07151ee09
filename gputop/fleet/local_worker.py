"""One Dask worker of a fleet on this machine: `python -m gputop.fleet.local_worker ADDRESS NAME [CORE...]`.

Runs on the cores that are named. Ends when its scheduler does, or the process that holds its stdin.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading

from gputop.fleet import on_worker
from gputop.fleet.dask_library import distributed


def main(arguments: list[str]) -> int:
    """Serve until the scheduler or the parent is gone."""
    address, name, *cores = arguments
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if cores:
        # Before any other thread starts: each inherits it, and so does what they start.
        os.sched_setaffinity(0, [int(core) for core in cores])
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    asyncio.run(_serve(address, name))
    _end()
    return 0


async def _serve(address: str, name: str) -> None:
    library = distributed()
    # The measuring process guards its own memory, and this one has next to none.
    async with library.Worker(address, name=name, nthreads=1, memory_limit=0, dashboard=False) as worker:
        await worker.finished()


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    _end()


def _end() -> None:
    """Without waiting for a task that waits for its gputop worker."""
    on_worker.kill()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
