"""README shows commands that gputop has, spelled as it takes them. `make readme` runs them."""

from __future__ import annotations

import pytest

from gputop.cli.command_table import COMMANDS
from tests.readme_commands import APPENDED, README, SERVES_UNTIL_STOPPED, commands, words_of

SHOWN = tuple(dict.fromkeys(commands(README.read_text(encoding="utf-8"))))


def test_the_page_shows_most_commands() -> None:
    shown = {words_of(command)[1] for command in SHOWN}
    assert len(shown) > len(COMMANDS) / 2


@pytest.mark.parametrize("command", SHOWN)
def test_a_shown_command_is_taken(command: str) -> None:
    _, name, *arguments = words_of(command)
    known = {known.name: known for known in COMMANDS}
    known[name].parser().parse(arguments)
    assert name in APPENDED or name in SERVES_UNTIL_STOPPED
