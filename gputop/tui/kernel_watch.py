"""The thread that watches the folder of the user's own kernels, and tells the screen what was saved."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

from textual.message import Message

from gputop.tui.messages import KernelsNotWatched, KernelsSaved

SUFFIXES = (".cu", ".cuh", ".c", ".h", ".toml")
QUIET_MS = 50
"""How long nothing must change: editors write a file in several steps."""
LONGEST_MS = 400
"""How long changes in a row are put together at most."""


def is_source(path: str) -> bool:
    """Whether a file is part of a kernel, and none that an editor keeps beside it while it is open."""
    return path.endswith(SUFFIXES) and not os.path.basename(path).startswith((".", "#"))


class KernelWatch(threading.Thread):
    """Posts the files that were saved together, until it is told to end."""

    def __init__(self, folder: str, post: Callable[[Message], object]) -> None:
        """`post` must be safe to call from another thread."""
        super().__init__(name="kernel watch", daemon=True)
        self._folder = Path(os.path.realpath(folder))
        self._post = post
        self._end = threading.Event()

    def finish(self) -> None:
        """End the thread; it notices within a moment, and nobody waits for it."""
        self._end.set()

    def run(self) -> None:
        # Loaded here: what it needs takes a while, and the screen does not need it.
        from watchfiles import watch

        try:
            for changes in watch(
                self._folder,
                watch_filter=lambda _, path: is_source(path),
                debounce=LONGEST_MS,
                step=QUIET_MS,
                stop_event=self._end,
                raise_interrupt=False,
            ):
                names = {Path(path).relative_to(self._folder).as_posix() for _, path in changes}
                self._post(KernelsSaved(tuple(sorted(names))))
        except (OSError, RuntimeError, ValueError) as error:
            self._post(KernelsNotWatched(f"{self._folder} can't be watched any more: {error}."))
