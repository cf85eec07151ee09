"""What a command is, and the parser that answers a mistake with a sentence."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from gputop.cli.terminal import print_data
from gputop.util.errors import UsageError


@dataclass(frozen=True, slots=True)
class Command:
    """One word after `gputop`."""

    name: str
    summary: str
    """Half a sentence for the list of commands."""
    examples: tuple[str, ...]
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    """Returns the exit code; heavy imports happen in here."""

    def parser(self) -> Parser:
        parser = Parser(
            prog=f"gputop {self.name}".rstrip(),
            description=f"{self.summary[0].upper()}{self.summary[1:]}.",
            epilog="\n".join(
                ("examples:" if len(self.examples) > 1 else "example:", *_indented(self.examples))
            ),
        )
        self.add_arguments(parser)
        return parser


class Parser(argparse.ArgumentParser):
    """Raises UsageError instead of printing a usage block; names the nearest option for an unknown one."""

    def __init__(self, prog: str, description: str, epilog: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """UsageError for anything it does not know."""
        options, unknown = self.parse_known_args(argv)
        if unknown:
            self.error(self._unknown(unknown[0]))
        return options

    def print_help(self, file: object = None) -> None:
        """Print help on stdout. Raises UsageError if the disk refuses it, which argparse would ignore."""
        print_data(*self.format_help().splitlines())

    def error(self, message: str) -> NoReturn:
        """UsageError with argparse's message as a sentence."""
        sentence = message[0].upper() + message[1:].rstrip(".")
        raise UsageError(f"{sentence}. See {self.prog} --help.")

    def _unknown(self, word: str) -> str:
        if not word.startswith("-"):
            return f"unexpected argument {word!r}"
        option = word.split("=", 1)[0]
        allowed = sorted({"--help", *re.findall(r"--[a-z][a-z-]*", self.format_usage())})
        # Without the dashes, which every option has in common.
        near = difflib.get_close_matches(option.lstrip("-"), [name[2:] for name in allowed], n=1, cutoff=0.5)
        hint = f" Did you mean --{near[0]}?" if near else ""
        return f"unknown option {option}.{hint} Allowed: {', '.join(allowed)}"


def _indented(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"  {line}" for line in lines)
