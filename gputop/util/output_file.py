"""Every file that gputop writes: an export, a recording, a cache. Each is replaced whole or not at all.

A file grows under a name of its own beside the one that it will take, so that nobody reads half of it and
two writers never share one. Devices and pipes are written to as they are.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from gputop.util.errors import UsageError
from gputop.util.printable import printable_table

STDOUT = "-"
LONGEST_STEM_BYTES = 200
"""Of a file's name, what the name of its partial begins with: file systems allow 255 bytes in all."""


@dataclass(frozen=True, slots=True)
class Target:
    """A place that passed its check; `write` puts a whole table there."""

    word: str
    """As the user named it."""
    path: Path | None
    """Symbolic links to files followed; None is stdout."""

    @property
    def is_stdout(self) -> bool:
        return self.path is None

    def write(self, text: str) -> None:
        """Write UTF-8, the same bytes to a file, a pipe and stdout.

        Only a terminal gets another form, `printable_table`: it would obey what the text holds. Raise
        UsageError when the disk or the folder refuses after all; BrokenPipeError when stdout's reader left.
        """
        try:
            if self.path is None:
                sys.stdout.flush()
                sys.stdout.buffer.write(_encoded(text, sys.stdout.isatty()))
                sys.stdout.buffer.flush()
            elif _is_special(self.path):
                with self.path.open("wb") as file:
                    file.write(_encoded(text, file.isatty()))
            else:
                _write_whole(self.path, _encoded(text, False))
        except OSError as error:
            if self.is_stdout and isinstance(error, BrokenPipeError):
                raise
            raise UsageError(_refusal(self.word, error)) from error


class LineFile:
    """A file that grows line by line and takes its name only when it is whole. `-` is stdout.

    Lines go to FILE.partial, each at once; if there is one already, to FILE.2.partial and so on. A writer
    that is stopped leaves its partial with every line added so far, and FILE as it was.
    """

    def __init__(self, word: str) -> None:
        """Raise UsageError if FILE can't be written. Nothing is written yet."""
        self._word = word
        self._path = open_target(word).path
        self._part: _Part | None = None
        self._stream: BinaryIO | None = None

    @property
    def left(self) -> str:
        """Name of the partial, as long as the file is not whole; empty if there is none."""
        return str(self._part.path) if self._part is not None else ""

    def add(self, line: bytes) -> None:
        """Raise UsageError if the disk refuses."""
        try:
            if self._stream is None:
                self._stream = self._open()
            self._stream.write(line)
            self._stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise UsageError(_refusal(self._word, error)) from error

    def finish(self) -> None:
        """Give the file its name: all lines are there. Raise UsageError if the disk refuses."""
        part, self._part = self._part, None
        try:
            if part is not None:
                part.take_place()
            elif self._stream is not None and self._path is not None:
                self._stream.close()
        except OSError as error:
            self._part = part
            raise UsageError(_refusal(self._word, error)) from error

    def discard(self) -> None:
        """Remove the partial: nothing in it is worth keeping."""
        part, self._part = self._part, None
        if part is not None:
            part.discard()

    def _open(self) -> BinaryIO:
        if self._path is None:
            return sys.stdout.buffer
        if _is_special(self._path):
            return self._path.open("wb")
        self._part = _Part.open(self._path, _partial_names(self._path.name))
        return self._part.file


def open_target(word: str) -> Target:
    """The target that `word` names: `-` for stdout, else a file. Nothing is written yet.

    A file or pipe that is stdout under another name (`/dev/stdout`) is stdout. UsageError when the file could
    not be written: no such folder, a folder itself, no permission.
    """
    if word == STDOUT:
        return Target(word, None)
    if not word:
        raise UsageError("An empty file name can't be written. Name a file, or - for stdout.")
    try:
        if _is_stdout(word):
            return Target(word, None)
        path = Path(word)
        if not _is_special(path):
            # Of a pipe (`/dev/fd/63`) the link leads to no name.
            path = Path(os.path.realpath(word))
        if not path.parent.is_dir():
            raise UsageError(f"Can't write {word!r}: there is no folder {str(Path(word).parent)!r}.")
        if path.is_dir():
            raise UsageError(f"Can't write {word!r}: it is a folder. Name a file in it.")
        if path.exists() and not os.access(path, os.W_OK):
            raise UsageError(f"Can't write {word!r}: it is read-only.")
        if not _is_special(path):
            _probe(path)
    except (OSError, ValueError) as error:
        raise UsageError(_refusal(word, error)) from error
    return Target(word, path)


def keep(file: Path, content: bytes) -> None:
    """Write a cache file. Does nothing if that fails: the content is then computed again next time."""
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        _write_whole(file, content)


@dataclass(frozen=True, slots=True)
class _Part:
    """A file of this process alone, beside the one whose place it takes when it is whole."""

    file: BinaryIO
    path: Path
    whole: Path
    """The name that it will take."""

    @classmethod
    def open(cls, whole: Path, names: Iterable[str]) -> _Part:
        """Take the first of `names` that no file has."""
        for name in names:
            path = whole.with_name(name)
            with contextlib.suppress(FileExistsError):
                return cls(path.open("xb"), path, whole)
        raise FileExistsError(f"no name is left beside {whole.name}")

    def take_place(self) -> None:
        """Replace the file of that name, its permissions kept; what was written is on the disk before."""
        with self.file:
            self.file.flush()
            os.fsync(self.file.fileno())
        if self.whole.exists():
            self.path.chmod(stat.S_IMODE(self.whole.stat().st_mode))
        self.path.replace(self.whole)

    def discard(self) -> None:
        with contextlib.suppress(OSError):
            self.file.close()
        with contextlib.suppress(OSError):
            self.path.unlink()


def _write_whole(path: Path, data: bytes) -> None:
    part = _Part.open(path, _hidden_names(path.name))
    try:
        part.file.write(data)
        part.take_place()
    except BaseException:
        part.discard()
        raise


def _hidden_names(name: str) -> Iterator[str]:
    """Yield hidden names made of the characters of `name`, as the file system may not allow others."""
    while True:
        yield f".gputop-{secrets.token_hex(8)}-{_stem(name)}.part"


def _partial_names(name: str) -> Iterator[str]:
    yield f"{_stem(name)}.partial"
    for number in itertools.count(2):
        yield f"{_stem(name)}.{number}.partial"


def _stem(name: str) -> str:
    return os.fsdecode(os.fsencode(name)[:LONGEST_STEM_BYTES])


def _encoded(text: str, for_terminal: bool) -> bytes:
    return (printable_table(text) if for_terminal else text).encode("utf-8", "backslashreplace")


def _is_stdout(word: str) -> bool:
    """Return whether writing to `word` would mix with what goes to stdout. A terminal can take both."""
    try:
        theirs, ours = os.stat(word), os.fstat(sys.stdout.fileno())
    except (OSError, ValueError):
        return False
    return os.path.samestat(theirs, ours) and not stat.S_ISCHR(theirs.st_mode)


def _is_special(path: Path) -> bool:
    """A device or a pipe: written to, never replaced."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _probe(path: Path) -> None:
    """Make a file beside `path` and take it away; OSError if that is refused.

    Never under the name itself, which another writer may be giving to its own file just now.
    """
    _Part.open(path, _hidden_names(path.name)).discard()


def _refusal(word: str, error: OSError | ValueError) -> str:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"Can't write {word!r}: {reason[:1].lower()}{reason[1:]}."
