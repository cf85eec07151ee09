"""What was counted, as it is kept."""

from __future__ import annotations

from pathlib import Path

import msgspec

from gputop.results.counters import Counted
from gputop.util.output_file import open_target


class CountedFile(msgspec.Struct, frozen=True):
    """Counters of kernels on one device."""

    device: str
    driver: str | None
    versions: str
    gputop: str
    workload: str
    time_utc: str
    seconds: float
    """What ncu took."""
    counted: tuple[Counted, ...]
    origin: str = ""
    """How the file came to be, if the command did not write it."""


_decoder = msgspec.json.Decoder(CountedFile)


def read_counted_file(file: Path) -> CountedFile | None:
    """Return None if there is none. Raise ValueError for another file."""
    return _decoder.decode(file.read_bytes()) if file.exists() else None


def keep_counted_file(file: Path, kept: CountedFile) -> None:
    """Write it whole."""
    open_target(str(file)).write(msgspec.json.format(msgspec.json.encode(kept)).decode() + "\n")
