"""`gputop serve`: the live screen in a browser, on this machine only unless told otherwise."""

from __future__ import annotations

import argparse
import shlex
import sys

from gputop.cli.command import Command
from gputop.util.errors import Unavailable, UsageError

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8017


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port",
        type=int,
        default=DEFAULT_PORT,
        metavar="N",
        help=f"the port to listen on (default {DEFAULT_PORT})",
    )
    parser.add_argument(
        "--host",
        default=LOOPBACK,
        metavar="ADDRESS",
        help=f"the address to listen on (default {LOOPBACK}: this machine only)",
    )
    parser.add_argument(
        "arguments", nargs="*", metavar="ARGUMENT", help="what gputop is started with, after --"
    )


def _run(options: argparse.Namespace) -> int:
    if not 0 < options.port < 65536:
        raise UsageError(f"--port {options.port} is no port; allowed: 1 to 65535.")
    try:
        from textual_serve.server import Server
    except ImportError as error:
        from gputop.util import install_hints

        raise Unavailable(f"serve needs textual-serve; {install_hints.extra('serve')}.") from error
    from gputop.cli.terminal import print_message

    command = shlex.join([sys.executable, "-m", "gputop", *options.arguments])

    print_message(
        f"The screen is at http://{options.host}:{options.port} until ^C. Open it once: each tab starts a "
        "measuring process of its own."
    )
    if options.host != LOOPBACK:
        print_message("Whoever reaches this address can use the screen: it asks for no password.")
    Server(command, host=options.host, port=options.port, title="gputop").serve()
    return 0


COMMAND = Command(
    name="serve",
    summary="the live screen in a browser on this machine",
    examples=("gputop serve", "gputop serve --port 9000 -- replay h200"),
    add_arguments=_add_arguments,
    run=_run,
)
