"""Where a command's results go: the readable table on stdout, or CSV and JSON in its place or beside it."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from gputop.util.errors import UsageError
from gputop.util.output_file import Target, open_target


@dataclass(frozen=True, slots=True)
class Output:
    """Targets known to be writable before anything is measured."""

    csv: Target | None
    json: Target | None

    @classmethod
    def of(cls, options: argparse.Namespace) -> Output:
        """UsageError for two dashes, one file named twice, or a file that can't be written."""
        csv = None if options.csv is None else open_target(options.csv)
        json = None if options.json is None else open_target(options.json)
        if csv is not None and json is not None and csv.path == json.path:
            where = "stdout" if csv.is_stdout else f"the same file, {options.csv}"
            raise UsageError(f"--csv and --json can't both go to {where}: send one of them elsewhere.")
        return cls(csv, json)

    @property
    def exports(self) -> bool:
        return self.csv is not None or self.json is not None

    @property
    def shows_table(self) -> bool:
        """Return whether the readable table goes to stdout."""
        return not any(target is not None and target.is_stdout for target in (self.csv, self.json))

    def write(self, csv_text: str, json_text: str) -> None:
        """Both forms of one table, each to its target where it has one."""
        if self.csv is not None:
            self.csv.write(csv_text)
        if self.json is not None:
            self.json.write(json_text)
