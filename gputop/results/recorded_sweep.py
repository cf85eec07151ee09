"""Times by site and kernel, gathered from recordings: what a simulated device answers from.

The files come with gputop and name the recordings that each figure is of.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from gputop.results.search_space import SiteSpace
from gputop.util.errors import UsageError
from gputop.util.input_file import read_input
from gputop.util.json_decode import BrokenJson, decode_json
from gputop.util.paths import PACKAGE

SCHEMA = "gputop.sweep/1"
FOLDER = PACKAGE / "_data" / "sweeps"
MOST_BYTES = 8 << 20


class SweepSource(msgspec.Struct, frozen=True, kw_only=True):
    """A recording that figures are of."""

    recording: str
    time_utc: str
    version: str
    """Of the gputop that recorded."""
    device: str


class RecordedCell(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel at one site, as it was recorded."""

    site: str
    kernel: str
    time_s: float
    """Of all instances in a pass: the median of its plans, windows' own factors taken out."""
    spread: float
    """Standard deviation of its logarithm between windows of one plan; of one window alone its samples'."""
    windows: int
    plans: tuple[str, ...]


class RecordedSweep(msgspec.Struct, frozen=True, kw_only=True):
    """All cells of one math at batch 1, and the menu that they make."""

    schema: str = SCHEMA
    name: str
    priced_by: str
    """Version of the gputop whose model priced the candidates."""
    workload: str
    math: str
    start: str
    """The rung whose kernels are the plan's own."""
    sources: tuple[SweepSource, ...]
    window_spread: float
    """Standard deviation of the logarithm of windows' factors."""
    cells: tuple[RecordedCell, ...]
    sites: tuple[SiteSpace, ...]


_decoder = msgspec.json.Decoder(RecordedSweep)


def shipped() -> dict[str, Path]:
    """Name -> file of the sweeps that come with gputop."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.json"))}


def read_sweep(name: str) -> RecordedSweep:
    """Return a shipped sweep. UsageError for another name, or a file that is none."""
    files = shipped()
    if name not in files:
        raise UsageError(f"There is no recorded sweep {name!r}. There are: {', '.join(files) or 'none'}.")
    try:
        sweep = decode_json(_decoder, read_input(files[name], "recorded sweep", MOST_BYTES))
    except BrokenJson as error:
        raise UsageError(f"{files[name]} is no recorded sweep: {error}.") from error
    if sweep.schema != SCHEMA:
        raise UsageError(f"{files[name]}: schema {sweep.schema!r}; this gputop reads {SCHEMA}.")
    return sweep


def encode(sweep: RecordedSweep) -> str:
    """Return the text of a sweep's file."""
    return msgspec.json.format(msgspec.json.encode(sweep), indent=1).decode() + "\n"
