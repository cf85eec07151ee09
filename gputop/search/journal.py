"""The journal of a search: JSON lines that are only ever added, each on the disk before the next window.

Whatever ends the process, every measurement that was made is there. A last line that was cut off is dropped.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, Self

import msgspec

from gputop.plan.types import KernelChoice
from gputop.results.records import Delta
from gputop.util.errors import UsageError
from gputop.util.input_file import read_input
from gputop.util.json_decode import BrokenJson, decode_json
from gputop.util.printable import printable_json

SCHEMA = "gputop.search-journal/1"
MOST_BYTES = 256 << 20

Stage = Literal["search", "finals", "closing", "reference", "ablation"]
"""Why a window was measured."""


class Entry(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """Base of all lines."""


class Begun(Entry, tag="begun", frozen=True, kw_only=True):
    """What is searched, on what and how. Another one after it: the search was resumed."""

    schema: str = SCHEMA
    version: str
    time_utc: str
    device: str
    driver: str | None
    workload: str
    plan: str
    menu: str
    """Digest of the menu."""
    seed: int
    budget: int
    efficiency: float
    least_gain: float
    together: int


class CellResult(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate of a window against the incumbent beside it."""

    site: str
    kernel: KernelChoice
    incumbent: KernelChoice
    delta: Delta
    """From the incumbent to the candidate."""
    forecast_s: float | None = None
    forecast_sd: float | None = None
    """Of its natural logarithm."""
    accepted: bool = False


class Measured(Entry, tag="measured", frozen=True, kw_only=True):
    """One window."""

    stage: Stage
    trial: int
    time_utc: str
    window: int
    device: str = ""
    gate: str = ""
    cells: tuple[CellResult, ...]
    incumbent_s: dict[str, float]
    """Site -> time of the incumbent table in this window."""
    whole: Delta | None = None


class Struck(Entry, tag="struck", frozen=True, kw_only=True):
    """A candidate that can't be timed."""

    trial: int
    site: str
    kernel: KernelChoice
    reason: str


class Returned(Entry, tag="returned", frozen=True, kw_only=True):
    """A cell that went back to the plan's own kernel after it was accepted."""

    site: str
    kernel: KernelChoice
    own: KernelChoice
    why: str


class Ended(Entry, tag="ended", frozen=True, kw_only=True):
    """Which rule stopped the search."""

    rule: str
    why: str


Line = Begun | Measured | Struck | Returned | Ended

_lines = msgspec.json.Decoder(Line)


class Journal:
    """An open journal. `add` returns when the line is on the disk."""

    def __init__(self, path: Path, kept: int) -> None:
        """`kept`: bytes of whole lines; what follows them is cut off."""
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab")
            self._file.truncate(kept)
        except OSError as error:
            raise _unwritable(path, error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, line: Line) -> None:
        """UsageError if the disk refuses."""
        try:
            self._file.write(encode(line))
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise _unwritable(self.path, error) from error


def encode(line: Line) -> bytes:
    """One line, newline included."""
    return printable_json(msgspec.json.encode(line).decode()).encode() + b"\n"


def read(path: Path) -> tuple[tuple[Line, ...], int]:
    """Return the whole lines of a journal, and their bytes. UsageError, with the line, if one is broken."""
    data = read_input(path, "journal", MOST_BYTES)
    whole = data[: data.rfind(b"\n") + 1]
    return tuple(_decoded(whole.splitlines(), str(path))), len(whole)


def _decoded(texts: Iterable[bytes], source: str) -> Iterator[Line]:
    for number, text in enumerate(texts, 1):
        try:
            line = decode_json(_lines, text)
        except BrokenJson as error:
            raise UsageError(f"{source}, line {number}: no line of a journal ({error}).") from error
        if (number == 1) != (isinstance(line, Begun)) and number == 1:
            raise UsageError(f"{source}, line 1: a journal begins with what is searched, and this does not.")
        if isinstance(line, Begun) and line.schema != SCHEMA:
            raise UsageError(f"{source}, line {number}: schema {line.schema!r}; this gputop reads {SCHEMA}.")
        yield line


def _unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"Can't write the journal {str(path)!r}: {error.strerror or error}.")
