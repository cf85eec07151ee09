"""From options to a running screen, a worker at work before Textual is loaded if one is needed."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING

from gputop.ipc.connection import Connection
from gputop.ipc.protocol import Open
from gputop.tui.options import Options
from gputop.util import thread_limits

if TYPE_CHECKING:
    from gputop.tui.app import GputopApp

STDIN = 0
THREADS = 6
"""Of a screen: two that read the worker, one that asks it, Textual's two, and one to spare."""


def run_tui(options: Options, client: Connection | None = None) -> int:
    """Run until the user leaves; returns the exit code. A device that can't be had is said on stderr.

    `client`: a conversation to go on with; by default a new one.
    """
    thread_limits.require(THREADS)
    client = client or Connection(remote=options.remote)
    try:
        client.launch(
            Open(
                backend=options.backend,
                workload=options.workload,
                device=options.device,
                kernels_dir=options.kernels_dir,
            )
        )
        app = _load(options, client)
        try:
            app.run()
        except OSError:
            # What Textual prints at the end finds no terminal where that was closed.
            if os.isatty(STDIN):
                raise
    finally:
        # Harmless where the screen said goodbye to it.
        client.kill()
    return app.return_code or 0


def _load(options: Options, client: Connection) -> GputopApp:
    """Load the app, which takes about as long as a worker needs to open its backend, meanwhile."""
    # Nothing of what is loaded is garbage: looking for some would take a tenth of the time.
    gc.disable()
    try:
        from gputop.tui.app import GputopApp
        from gputop.tui.settings import SettingsFile

        return GputopApp(options, client, settings=SettingsFile.of_user(), few_colors=_has_few_colors())
    finally:
        gc.freeze()
        gc.enable()


def _has_few_colors() -> bool:
    """Whether the terminal says that it has 256 colours or fewer."""
    from rich.console import Console

    return Console(stderr=True, force_terminal=True).color_system not in ("truecolor", None)
