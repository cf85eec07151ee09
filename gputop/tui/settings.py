"""What the screen remembers of a user between two runs, in one small file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from gputop.tui.state import View
from gputop.tui.themes import ThemeName
from gputop.util import paths
from gputop.util.errors import UsageError
from gputop.util.input_file import read_input
from gputop.util.output_file import open_target

FILE_NAME = "screen.json"
MOST_BYTES = 65536


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Unknown fields are ignored, so that a newer gputop's file is read too."""

    theme: ThemeName = "dark"
    sort: str = "bar"
    """The column that sorts the phases."""
    sorted_backwards: bool = False
    view: View = "phases"


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """Settings on disk; without a path they are forgotten at the end."""

    path: Path | None

    @classmethod
    def of_user(cls) -> SettingsFile:
        """Return the file in this user's configuration folder."""
        folder = paths.config_dir()
        return cls(folder / FILE_NAME if folder else None)

    def read(self) -> tuple[Settings, str]:
        """Return what is kept and nothing, or the defaults and why the file could not be read."""
        if self.path is None or not self.path.exists():
            return Settings(), ""
        try:
            return msgspec.json.decode(read_input(self.path, "settings", MOST_BYTES), type=Settings), ""
        except UsageError as error:
            return Settings(), f"{error} The defaults hold."
        except (msgspec.DecodeError, RecursionError) as error:
            return Settings(), f"The settings in {self.path} make no sense ({error}): the defaults hold."

    def write(self, settings: Settings) -> str:
        """Keep these. Return nothing, or why they could not be written."""
        if self.path is None:
            return ""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            open_target(str(self.path)).write(msgspec.json.encode(settings).decode() + "\n")
        except (OSError, UsageError) as error:
            return f"The settings are not kept: {error}"
        return ""
