"""`gputop worker`: the measuring process, for a client at the other end of its pipes."""

from __future__ import annotations

import argparse

from gputop.cli.command import Command


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    """It is told everything through its pipe."""


def _run(options: argparse.Namespace) -> int:
    from gputop.ipc.worker import main
    from gputop.util.signals import restore_default

    restore_default()
    return main()


COMMAND = Command(
    name="worker",
    summary="the measuring process: requests as JSON lines on stdin, events on stdout",
    examples=("ssh HOST gputop worker    (what --remote HOST does)",),
    add_arguments=_add_arguments,
    run=_run,
)
