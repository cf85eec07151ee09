"""What stdout and stderr can show: their width, colour and characters; and what goes on, told on stderr."""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import shutil
import sys
from dataclasses import dataclass
from typing import TextIO

from gputop.util.errors import UsageError
from gputop.util.printable import printable, printable_lines

NO_LIMIT = 10_000
"""The width where nothing need be dropped: a file or a pipe."""

ENCODING_VARIABLES = ("PYTHONIOENCODING", "LC_ALL", "LC_CTYPE", "LANG")
"""What sets a stream's encoding; the first that is set counts."""

_ASCII = str.maketrans(
    {
        "–": "-",
        "×": "x",
        "µ": "u",
        "±": "+-",
        "·": "|",
        "°": "deg ",
        "─": "-",
        "…": "...",
        "Δ": "d",
        "≥": ">=",
    }
)
_PIECES = re.compile(r"\s+|\S+")
_PAINT = re.compile(r"\x1b\[\d+m")
_COLOURS = {"good": "32", "bad": "31", "strong": "1", "quiet": "2"}


WEB_DRIVER = "textual.drivers.web_driver:WebDriver"
"""What textual-serve has Textual draw with."""


class Painted(str):
    """Text with colour sequences of gputop's own, around text that is printable; `Terminal.paint` makes it.

    Every other string is made printable when it is written, colour sequences included: a string that loses
    this type shows its sequences instead of obeying them.
    """

    def __add__(self, other: str) -> Painted:
        return Painted(str.__add__(self, _harmless(other)))

    def __radd__(self, other: str) -> Painted:
        return Painted(_harmless(other) + str(self))


@dataclass(frozen=True, slots=True)
class Terminal:
    """One output stream as text is laid out for it."""

    width: int = NO_LIMIT
    colour: bool = False
    encoding: str = "utf-8"

    @classmethod
    def of(cls, stream: TextIO) -> Terminal:
        is_tty = stream.isatty()
        plain = bool(os.environ.get("NO_COLOR")) or not obeys()
        return cls(
            width=shutil.get_terminal_size().columns if is_tty else NO_LIMIT,
            colour=is_tty and not plain,
            encoding=stream.encoding or "ascii",
        )

    def paint(self, text: str, tone: str) -> str:
        """`text` in a tone (`good`, `bad`, `strong`, `quiet`), which says nothing that the text does not."""
        if not (self.colour and text):
            return text
        return Painted(f"\x1b[{_COLOURS[tone]}m{_harmless(text)}\x1b[0m")

    def encodable(self, text: str) -> str:
        """`text` with what the encoding lacks spelled in ASCII."""
        try:
            text.encode(self.encoding)
        except UnicodeEncodeError:
            plain = text.translate(_ASCII)
            return plain.encode(self.encoding, "replace").decode(self.encoding)
        return text


def obeys() -> bool:
    """Return whether the terminal understands control sequences: colours, the cursor's place."""
    return os.environ.get("TERM", "") not in ("", "dumb")


def is_served() -> bool:
    """Return whether `gputop serve` runs this process: a browser at the end of its pipes draws the screen."""
    return os.environ.get("TEXTUAL_DRIVER", "") == WEB_DRIVER


def why_no_screen() -> str:
    """Return why a screen can't be drawn here; nothing if it can, on a terminal or in a browser."""
    if is_served():
        return ""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return "no terminal here"
    # Textual draws on stderr.
    if not (sys.__stderr__ and sys.__stderr__.isatty()):
        return "stderr goes to a file, and the screen is drawn there"
    if not obeys():
        return "this terminal can't be drawn on (TERM is dumb or unset)"
    return _why_not_its_encoding()


def _why_not_its_encoding() -> str:
    """Frames and bars exist in UTF-8 only: elsewhere they would be written out and shift every column."""
    # Textual draws on stderr.
    for stream in (sys.stdout, sys.__stderr__):
        encoding = (stream and stream.encoding) or "ascii"
        if codecs.lookup(encoding).name != "utf-8":
            named = next((name for name in ENCODING_VARIABLES if os.environ.get(name)), "")
            source = f" ({named}={os.environ[named]})" if named else ""
            return f"this terminal's encoding is {encoding}{source}, and the screen needs UTF-8"
    return ""


def wrapped(line: str, width: int) -> list[str]:
    """A line in parts of at most `width` cells, broken between words, where a terminal would break within."""
    parts, start, cells, gap = [], 0, 0, 0
    for piece in _PIECES.finditer(line):
        cells += len(_PAINT.sub("", piece[0]))
        if piece[0].isspace():
            gap = piece.start()
        elif cells > width and gap > start:
            parts.append(line[start:gap])
            start, cells = piece.start(), len(_PAINT.sub("", piece[0]))
    return [*parts, line[start:]]


def print_message(text: str) -> None:
    """Write a message of gputop's own to stderr. If stderr can't be written, the exit code still tells."""
    with contextlib.suppress(OSError):
        print(f"gputop: {printable_lines(text)}", file=sys.stderr)


def _harmless(text: str) -> str:
    """`text` as a terminal may be given it."""
    return text if isinstance(text, Painted) else printable(text)


def print_data(*lines: str) -> None:
    """Lines of a readable table, on stdout. UsageError where the disk refuses them."""
    terminal = Terminal.of(sys.stdout)
    try:
        for line in lines:
            for part in wrapped(_harmless(line).rstrip(), terminal.width):
                sys.stdout.write(terminal.encodable(part) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(f"Can't write to stdout: {error.strerror or error}.") from error


class Narrator:
    """Narration on stderr: lines that stay, and on a terminal one line of progress that does not."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._terminal = Terminal.of(self._stream)
        self._progress_shown = False

    def note(self, text: str) -> None:
        """A line that stays."""
        self.clear()
        self._write(f"gputop: {printable_lines(text)}\n")

    def progress(self, text: str) -> None:
        """Show what goes on just now. Writes nothing to a log or a terminal that can't erase."""
        if self._stream.isatty() and obeys():
            line = printable(text.strip().partition("\n")[0])
            self._write(f"\r\x1b[K{line[: self._terminal.width - 1]}")
            self._progress_shown = True

    def clear(self) -> None:
        """Take the line of progress away, before something else is written to the terminal."""
        if self._progress_shown:
            self._write("\r\x1b[K")
            self._progress_shown = False

    def _write(self, text: str) -> None:
        # A measurement is worth more than its narration.
        with contextlib.suppress(OSError):
            self._stream.write(self._terminal.encodable(text))
            self._stream.flush()
