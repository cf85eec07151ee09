"""Read files that a user names: regular files up to a size limit. Anything else is a UsageError.

Reading a pipe could block for ever, and reading a device such as /dev/zero could fill the memory.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from io import BufferedReader
from pathlib import Path

from gputop.util.errors import UsageError
from gputop.util.units import size_bytes

CHUNK_BYTES = 1 << 20
KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def read_input(path: str | Path, what: str, most_bytes: int) -> bytes:
    """Return the content of a file that the user named. `what` says what it should be: `recording`.

    Raise UsageError, naming the file and the reason, if it can't be read, is not a regular file, or is larger
    than `most_bytes`.
    """
    try:
        return read_regular(path, most_bytes)
    except (OSError, ValueError) as error:
        raise unreadable(path, what, error) from error


def read_first(path: str | Path, what: str, count: int) -> bytes:
    """Return the first bytes of a file, otherwise as `read_input`. Fewer if the file is shorter."""
    try:
        with _opened_regular(path) as file:
            return file.read(count)
    except (OSError, ValueError) as error:
        raise unreadable(path, what, error) from error


def sha256_of(path: str | Path, what: str, most_bytes: int) -> str:
    """Return the digest of a file in hexadecimal, otherwise as `read_input`; it need not fit into memory."""
    try:
        with _opened_regular(path) as file:
            _require_size(os.fstat(file.fileno()).st_size, most_bytes)
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        raise unreadable(path, what, error) from error


def read_input_text(path: str | Path, what: str, most_bytes: int) -> str:
    """Return the text of a UTF-8 file, otherwise as `read_input`. A byte order mark is left out."""
    data = read_input(path, what, most_bytes)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"Can't read {what} {str(path)!r}: line {line} is not UTF-8 text.") from error


def read_regular(path: str | Path, most_bytes: int) -> bytes:
    """Return the content of a regular file. Raise OSError for others, ValueError for impossible names."""
    with _opened_regular(path) as file:
        data = file.read(min(os.fstat(file.fileno()).st_size, most_bytes) + 1)
        # A file may grow after its status was read, and files below /proc have size 0.
        while len(data) <= most_bytes and (more := file.read(CHUNK_BYTES)):
            data += more
    _require_size(len(data), most_bytes)
    return data


def _opened_regular(path: str | Path) -> BufferedReader:
    """Open a regular file. Raise OSError for others, ValueError for impossible names."""
    # Check before opening, because opening some devices has effects, and after, because the file may have
    # been replaced in between.
    _require_regular(os.stat(path))
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    try:
        _require_regular(os.fstat(file.fileno()))
    except OSError:
        file.close()
        raise
    return file


def _require_size(size: int, most_bytes: int) -> None:
    if size > most_bytes:
        raise OSError(errno.EFBIG, f"it has more than {size_bytes(most_bytes)}, the most that is read")


def files_below(folder: str | Path, what: str, most: int) -> list[Path]:
    """Return every regular file below a folder, and every link to one, as paths relative to the folder.

    Raise UsageError, naming the folder and the reason, if it or a folder in it can't be read, or if there are
    more than `most` entries: a folder such as `/` would be walked for minutes. Hidden folders are skipped: an
    environment or a repository in a checkout holds thousands of files that nobody means.
    """
    found: list[Path] = []
    seen = 0
    try:
        if not stat.S_ISDIR(os.stat(folder).st_mode):
            raise OSError(errno.ENOTDIR, "it is no folder")
        for parent, folders, names in os.walk(folder, onerror=_raise):
            folders[:] = [name for name in folders if not name.startswith(".")]
            seen += len(folders) + len(names)
            if seen > most:
                raise OSError(errno.EFBIG, f"it holds more than {most} files and folders")
            paths = (Path(parent, name) for name in names)
            found += [path.relative_to(folder) for path in paths if path.is_file()]
    except (OSError, ValueError) as error:
        # If a folder further down failed, the error names it.
        raise unreadable(getattr(error, "filename", None) or folder, what, error) from error
    return found


def unreadable(path: str | Path, what: str, error: OSError | ValueError) -> UsageError:
    """Return the UsageError for a file or folder that can't be read."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return UsageError(f"Can't read {what} {str(path)!r}: {reason[:1].lower()}{reason[1:]}.")


def _require_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for is_kind, name in KINDS if is_kind(status.st_mode)), "no file")
        raise OSError(errno.EINVAL, f"it is {kind}, and a regular file is needed")


def _raise(error: OSError) -> None:
    raise error
