"""The table of commands, and which one an argument list asks for."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from gputop import __version__
from gputop.cli.command import Command, Parser
from gputop.cli.commands import (
    calibrate,
    compare,
    doctor,
    emit,
    fleet,
    inspect,
    ladder,
    list_names,
    record,
    replay,
    run,
    screen,
    search,
    serve,
    whatif,
    worker,
)
from gputop.cli.options import DEFAULT_WINDOWS
from gputop.cli.terminal import print_data, print_message, why_no_screen
from gputop.util.errors import unknown_name

COMMANDS: tuple[Command, ...] = (
    run.COMMAND,
    ladder.COMMAND,
    compare.COMMAND,
    inspect.COMMAND,
    search.COMMAND,
    whatif.COMMAND,
    emit.COMMAND,
    fleet.COMMAND,
    list_names.COMMAND,
    calibrate.COMMAND,
    doctor.COMMAND,
    record.COMMAND,
    replay.COMMAND,
    serve.COMMAND,
    worker.COMMAND,
)


def dispatch(argv: Sequence[str]) -> int:
    """Parse and run; the first word is the command, and without one it is the screen."""
    if argv and not argv[0].startswith("-"):
        by_name = {command.name: command for command in COMMANDS}
        if argv[0] not in by_name:
            raise unknown_name("command", argv[0], by_name)
        command = by_name[argv[0]]
        return command.run(command.parser().parse(argv[1:]))
    options = _bare_parser().parse(argv)
    why_not = why_no_screen()
    if not why_not:
        return screen.COMMAND.run(options)
    if options.windows is None:
        options.windows = DEFAULT_WINDOWS
    print_message(f"{why_not}, so this is what `gputop run` prints.")
    return run.COMMAND.run(options)


def _bare_parser() -> Parser:
    parser = screen.COMMAND.parser()
    width = max(len(command.name) for command in COMMANDS)
    lines = (f"  {command.name:<{width}}  {command.summary}" for command in COMMANDS)
    parser.epilog = "\n".join(("commands:", *lines, "", parser.epilog or ""))
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and leave")
    return parser


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print_data(f"gputop {__version__}")
        parser.exit()
