"""Where an export goes: a file or stdout, known to be writable before anything is measured."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from gputop.util.errors import UsageError

STDOUT = "-"


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
        """UTF-8, the same bytes to a file and to stdout. A file is replaced whole or not at all.

        UsageError when the disk or the folder refuses after all; BrokenPipeError when stdout's reader left.
        """
        data = text.encode("utf-8", "backslashreplace")
        try:
            if self.path is None:
                sys.stdout.flush()
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
                return
            if _is_special(self.path):
                self.path.write_bytes(data)
            else:
                _replace(self.path, data)
        except OSError as error:
            if self.is_stdout and isinstance(error, BrokenPipeError):
                raise
            raise UsageError(_refusal(self.word, error)) from error


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


def _is_stdout(word: str) -> bool:
    """Whether writing to `word` would run into what is written to stdout. Terminals can take both."""
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


def _beside(path: Path) -> Path:
    """A name of our own in the same folder, so that renaming it stays on one file system."""
    return path.parent / f".gputop-{secrets.token_hex(8)}.part"


def _probe(path: Path) -> None:
    """Make a file beside `path` and take it away; OSError where that is refused."""
    if not path.exists():
        # Its own name may be what is refused: too long, or characters that the file system lacks.
        path.touch()
        path.unlink()
    part = _beside(path)
    part.touch(exist_ok=False)
    part.unlink()


def _replace(path: Path, data: bytes) -> None:
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    part = _beside(path)
    try:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            part.chmod(mode)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _refusal(word: str, error: OSError | ValueError) -> str:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"Can't write {word!r}: {reason[:1].lower()}{reason[1:]}."
