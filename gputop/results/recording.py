"""A recording: the windows of a real run as versioned JSON lines, written once and read back whole.

The first line is the header. Then follow, in the order they were measured, each plan as it resolved,
its gates, its windows, what could not be recorded and why, one ladder, one rung at several batches where
that was asked for, and a line that says the end.
A field that holds its default is left out. Nothing here knows how a recording is made or shown.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from gputop.phases import rungs
from gputop.plan.choices import PlanView, RungView
from gputop.plan.types import Workload
from gputop.results.ladder import Ladder, LadderEntry, PredictedGain
from gputop.results.records import Ceilings, DeviceFacts, Gate, Window
from gputop.results.residual import reconciled
from gputop.util import install_hints
from gputop.util.errors import UsageError
from gputop.util.input_file import read_input, unreadable
from gputop.util.json_decode import BrokenJson, decode_json
from gputop.util.paths import PACKAGE
from gputop.util.printable import printable_json

SCHEMA = "gputop.recording/1"
SHIPPED = PACKAGE / "_data" / "recordings"
SUFFIX = ".jsonl"
MOST_BYTES = 256 << 20
"""The largest recording that is read: fifty times that of a whole ladder at many batches."""
THE_LADDER = "ladder"
"""What a refusal calls the window over all rungs."""
THE_BATCHES = "batches"
"""What it calls the window of one rung at several batches."""


class _Line(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """Base of all lines."""


class Header(_Line, tag="header", frozen=True, kw_only=True):
    """What was measured on, with what, and which rungs there were."""

    schema: str = SCHEMA
    version: str
    """Of the gputop that recorded."""
    time_utc: str
    """When it began, ISO 8601."""
    device: DeviceFacts
    ceilings: Ceilings
    workload: Workload
    rungs: tuple[RungView, ...]
    default_rung: str


class PlanLine(_Line, tag="plan", frozen=True, kw_only=True):
    """A plan as it resolved, before its first window."""

    view: PlanView


class GateLine(_Line, tag="gate", frozen=True, kw_only=True):
    """Outcome of both gates of a plan."""

    plan: str
    gate: Gate


class WindowLine(_Line, tag="window", frozen=True, kw_only=True):
    """One window of one plan, or of two."""

    window: Window


class LadderLine(_Line, tag="ladder", frozen=True, kw_only=True):
    """All rungs in one window."""

    ladder: Ladder


class BatchesLine(_Line, tag="batches", frozen=True, kw_only=True):
    """One rung at several batches in one window, batch by batch."""

    ladder: Ladder


class RefusalLine(_Line, tag="refusal", frozen=True, kw_only=True):
    """What could not be recorded there."""

    what: str
    """A rung's id, `THE_LADDER` or `THE_BATCHES`."""
    reason: str


class EndLine(_Line, tag="end", frozen=True, kw_only=True):
    """The recording is whole."""


Line = Header | PlanLine | GateLine | WindowLine | LadderLine | BatchesLine | RefusalLine | EndLine


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording as read."""

    header: Header
    views: tuple[PlanView, ...]
    gates: Mapping[str, Gate]
    """By the plan's word."""
    windows: tuple[Window, ...]
    ladder: Ladder | None
    refusals: Mapping[str, str]
    """A rung's id, `THE_LADDER` or `THE_BATCHES` -> the reason."""
    whole: bool
    """False: whoever recorded was stopped before the end."""
    batches: Ladder | None = None
    """One rung at several batches, batch by batch; None where that was not recorded."""


class _Schema(msgspec.Struct):
    """What must be known of a first line before the rest of it is believed."""

    kind: str = ""
    schema: str = ""


_lines = msgspec.json.Decoder(Line)
_schemas = msgspec.json.Decoder(_Schema)


def encode(line: Line) -> bytes:
    """One line, newline included."""
    record = {name: _lean(getattr(line, name)) for name in line.__struct_fields__}
    text = msgspec.json.encode({"kind": line.__struct_config__.tag, **record}).decode()
    return printable_json(text).encode() + b"\n"


def parse(data: bytes, source: str) -> Recording:
    """The recording in these bytes. UsageError, naming `source`, line and reason, for anything else."""
    texts = data.removesuffix(b"\n").split(b"\n")
    _check_schema(texts[0], source)
    return _collect([_decode(text, source, number) for number, text in enumerate(texts, 1)], source)


def read(path: Path) -> Recording:
    """The recording in a file. UsageError for a file that can't be read or is none."""
    return parse(read_input(path, "recording", MOST_BYTES), str(path))


def read_header(path: Path) -> Header:
    """Only the first line of a file, for a list of many."""
    text, _, _ = read_input(path, "recording", MOST_BYTES).partition(b"\n")
    _check_schema(text, str(path))
    header = _decode(text, str(path), 1)
    assert isinstance(header, Header)
    return header


def shipped() -> dict[str, Path]:
    """Name -> file of the recordings that come with gputop."""
    files = sorted(SHIPPED.glob(f"*{SUFFIX}"), key=lambda path: path.stem)
    return {path.stem: path for path in files}


def locate(word: str) -> Path:
    """The file that a word means: a shipped recording's name, else a path. UsageError for neither."""
    names = shipped()
    if word in names:
        return names[word]
    try:
        if word and Path(word).stat():
            return Path(word)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:
        raise unreadable(word, "recording", error) from error
    known = ", ".join(names) or "none"
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise UsageError(
        f"There is no recording {word!r}: no file of that name, and shipped with gputop: {known}.{hint} "
        f"`gputop record FILE` makes one."
    )


def label(header: Header) -> str:
    """`recording of 2026-01-02 on NVIDIA H200`: what stands beside whatever is replayed."""
    return f"recording of {header.time_utc[:10]} on {header.device.name}"


def _check_schema(text: bytes, source: str) -> None:
    """UsageError unless this is the first line of a recording that this version can read."""
    try:
        found = decode_json(_schemas, text)
    except BrokenJson:
        found = _Schema()
    if found.schema == SCHEMA:
        return
    version = re.fullmatch(r"gputop\.recording/(\d{1,9})", found.schema)
    if version and int(version[1]) > int(SCHEMA.rpartition("/")[2]):
        raise UsageError(
            f"{source}, line 1: schema {found.schema} is newer than {SCHEMA}, the newest that this gputop "
            f"reads. Install a newer one: {install_hints.pip('install --upgrade gputop-roofline')}."
        )
    what = f"its schema is {found.schema!r}" if found.schema else "it names no schema"
    raise UsageError(
        f"{source}, line 1: this is no recording, {what} where {SCHEMA} is expected. "
        f"`gputop record FILE` makes one."
    )


def _decode(text: bytes, source: str, number: int) -> Line:
    try:
        return decode_json(_lines, text)
    except BrokenJson as error:
        raise UsageError(f"{source}, line {number}: broken ({error}).") from error


def _collect(lines: Sequence[Line], source: str) -> Recording:
    """UsageError where they are not one header, then the rest, and nothing behind the end."""
    header = lines[0]
    for number, line in enumerate(lines, 1):
        if isinstance(line, Header) != (number == 1):
            raise UsageError(f"{source}, line {number}: the header is line 1, and only that.")
        if isinstance(line, EndLine) and number < len(lines):
            raise UsageError(f"{source}, line {number + 1}: the recording ended in the line before.")
    assert isinstance(header, Header)
    ladders = [line.ladder for line in lines if isinstance(line, LadderLine)]
    batches = [line.ladder for line in lines if isinstance(line, BatchesLine)]
    return Recording(
        header=header,
        views=tuple(line.view for line in lines if isinstance(line, PlanLine)),
        gates={line.plan: line.gate for line in lines if isinstance(line, GateLine)},
        windows=tuple(_reconciled(line.window) for line in lines if isinstance(line, WindowLine)),
        ladder=_as_predicted(ladders[-1]) if ladders else None,
        refusals={line.what: line.reason for line in lines if isinstance(line, RefusalLine)},
        whole=isinstance(lines[-1], EndLine),
        batches=batches[-1] if batches else None,
    )


def _reconciled(window: Window) -> Window:
    """What is taken from other figures of the window is taken anew, so that old recordings gain by mends."""
    lanes = (replace(lane, rows=reconciled(lane.rows)) for lane in window.lanes)
    return replace(window, lanes=tuple(lanes))


def _as_predicted(ladder: Ladder) -> Ladder:
    """What was first predicted of a rung, where that recording was made before it was kept."""
    revised = {rung.id: rung.prediction for rung in rungs() if rung.prediction and rung.prediction.first}

    def with_first(entry: LadderEntry) -> LadderEntry:
        known = revised.get(entry.rung)
        recorded = (entry.predicted, entry.predicted_lo, entry.predicted_hi)
        if known is None or entry.foretold is not None or recorded != (known.gain, known.lo, known.hi):
            return entry
        gain = (entry.ratio_before, entry.ratio_before_lo, entry.ratio_before_hi)
        return replace(entry, foretold=PredictedGain.of(known, *gain))

    return replace(ladder, entries=tuple(map(with_first, ladder.entries)))


def _lean(value: Any) -> Any:
    """A record as plain data, without the fields that hold their default."""
    if is_dataclass(value):
        pairs = ((field, getattr(value, field.name)) for field in fields(value))
        return {f.name: _lean(v) for f, v in pairs if f.default is MISSING or v != f.default}
    if isinstance(value, tuple):
        return [_lean(item) for item in value]
    return value
