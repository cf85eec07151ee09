"""A file that grows line by line and takes its name only when it is whole."""

from __future__ import annotations

import os
import sys
from typing import BinaryIO

from gputop.util.errors import UsageError
from gputop.util.output_file import open_target

PARTIAL = ".partial"


class LineFile:
    """Lines go to FILE.partial, each at once; `finish` gives it its name. `-` is stdout.

    Whoever is stopped before leaves FILE.partial with every line added so far, and FILE as it was.
    """

    def __init__(self, word: str) -> None:
        """UsageError where FILE can't be written. Nothing is written yet."""
        path = open_target(word).path
        # A device or a pipe is written to, never replaced.
        replaced = path is not None and (path.is_file() or not path.exists())
        self._word = word
        self._name = path if replaced else None
        self._path = path.with_name(path.name + PARTIAL) if path and replaced else path
        self._file: BinaryIO | None = None

    @property
    def left(self) -> str:
        """The file with the lines added so far, as long as it is not whole; empty where there is none."""
        return str(self._path) if self._name is not None and self._file is not None else ""

    def add(self, line: bytes) -> None:
        """UsageError where the disk refuses."""
        try:
            if self._file is None:
                self._file = self._path.open("wb") if self._path else sys.stdout.buffer
            self._file.write(line)
            self._file.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._refusal(error) from error

    def finish(self) -> None:
        """The lines are all there. UsageError where the disk refuses."""
        if self._file is None or self._path is None:
            return
        try:
            with self._file:
                if self._name is None:
                    return
                os.fsync(self._file.fileno())
            self._path.replace(self._name)
        except OSError as error:
            raise self._refusal(error) from error

    def _refusal(self, error: OSError) -> UsageError:
        return UsageError(f"Can't write {self._word!r}: {error.strerror or error}.")
