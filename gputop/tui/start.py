"""From options to a running screen, the worker at work before Textual is loaded."""

from __future__ import annotations

from gputop.client import Client
from gputop.protocol import Open
from gputop.tui.options import Options


def run_tui(options: Options) -> int:
    """Run until the user leaves; returns the exit code. A device that can't be had is said on stderr."""
    client = Client(remote=options.remote)
    try:
        client.launch(
            Open(
                backend=options.backend,
                workload=options.workload,
                device=options.device,
                kernels_dir=options.kernels_dir,
            )
        )
        # Loading takes as long as the worker needs to open its backend: the two go on side by side.
        from gputop.tui.app import GputopApp

        app = GputopApp(options, client)
        app.run()
    except BaseException:
        client.kill()
        raise
    return app.return_code or 0
