"""A recording: the windows of a real run as versioned JSON lines, written once and read back whole.

The first line is the header. Then follow, in the order they were measured, each plan as it resolved,
its gates, its windows, what could not be recorded and why, one ladder, one rung at several batches where
that was asked for, and a line that says the end.
A field that holds its default is left out. Nothing here knows how a recording is made or shown.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_args

import msgspec

from gputop import __version__
from gputop.phases import rungs
from gputop.plan.choices import RungView
from gputop.plan.plan_string import FORMER
from gputop.plan.types import Plan, Workload
from gputop.results import recording_checks
from gputop.results.ladder import Ladder, LadderEntry, PredictedGain
from gputop.results.older_verdicts import rejudged_ladder, rejudged_window
from gputop.results.recorded_plan import RecordedPlan, plan_of, refused_values, respelled_plan
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

    view: RecordedPlan


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
    plans: tuple[Plan, ...]
    refused: Mapping[str, Mapping[tuple[str, str], str]]
    """By the plan's word: toggle and value -> why it could not hold on that plan."""
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


class _FirstLook(msgspec.Struct):
    """What must be known of a line before the rest of it is believed."""

    kind: str = ""
    schema: str = ""
    version: str = ""


KINDS = frozenset(str(kind.__struct_config__.tag) for kind in get_args(Line))

_FORMER = re.compile(FORMER.pattern.encode())
_OF_PLAN = b'{"kind":"plan",'
_lines = msgspec.json.Decoder(Line)
_first_looks = msgspec.json.Decoder(_FirstLook)


def encode(line: Line) -> bytes:
    """One line, newline included."""
    record = {name: _lean(getattr(line, name)) for name in line.__struct_fields__}
    text = msgspec.json.encode({"kind": line.__struct_config__.tag, **record}).decode()
    return printable_json(text).encode() + b"\n"


def parse(data: bytes, source: str) -> Recording:
    """The recording in these bytes. UsageError, naming `source`, line and reason, for anything else."""
    first, *others = data.removesuffix(b"\n").split(b"\n")
    read = _Reading(_header(first, source))
    for number, text in enumerate(others, 2):
        line = decode(text, source, number, read.version)
        if isinstance(line, Header):
            raise UsageError(f"{source}, line {number}: the header is line 1, and only that.")
        if read.whole:
            raise UsageError(f"{source}, line {number}: the recording ended in the line before.")
        _refuse(read.faults(line), source, number)
        read.add(line)
    return read.recording()


def read(path: Path) -> Recording:
    """The recording in a file. UsageError for a file that can't be read or is none."""
    return parse(read_input(path, "recording", MOST_BYTES), str(path))


def read_header(path: Path) -> Header:
    """Only the first line of a file, for a list of many."""
    text, _, _ = read_input(path, "recording", MOST_BYTES).partition(b"\n")
    return _header(text, str(path))


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


def decode(text: bytes, source: str, number: int, version: str = __version__) -> Line:
    """One line, without its newline. UsageError, naming `source`, line and reason, for anything else.

    `version`: of the gputop that wrote it. What only a newer one knows is told apart from damage.
    """
    try:
        return _with_todays_names(text)
    except BrokenJson as error:
        where, kind = f"{source}, line {number}", _first_look(text).kind
        if kind and kind not in KINDS:
            raise UsageError(f"{where}: of kind {kind!r}, {_by_a_newer(version)}") from error
        if _is_newer(version):
            raise UsageError(f"{where}: not understood ({error}), {_by_a_newer(version)}") from error
        raise UsageError(f"{where}: broken ({error}).") from error


def _with_todays_names(text: bytes) -> Line:
    """A line with kernels as they are named today.

    Older lines of plans list hundreds of kernels that nothing asks for: only what is kept is respelled.
    """
    if not text.startswith(_OF_PLAN):
        return decode_json(_lines, _FORMER.sub(rb"\1/\2", text))
    line = decode_json(_lines, text)
    return PlanLine(view=respelled_plan(line.view)) if isinstance(line, PlanLine) else line


def _header(text: bytes, source: str) -> Header:
    """The first line. UsageError unless it is that of a recording that this version can read."""
    schema = _first_look(text).schema
    number = re.fullmatch(r"gputop\.recording/(\d{1,9})", schema)
    if number and int(number[1]) > int(SCHEMA.rpartition("/")[2]):
        raise UsageError(
            f"{source}, line 1: schema {schema} is newer than {SCHEMA}, the newest that this gputop reads. "
            f"{_upgrade()}"
        )
    if schema != SCHEMA:
        what = f"its schema is {schema!r}" if schema else "it names no schema"
        raise UsageError(
            f"{source}, line 1: this is no recording, {what} where {SCHEMA} is expected. "
            f"`gputop record FILE` makes one."
        )
    header = decode(text, source, 1, _first_look(text).version)
    if not isinstance(header, Header):
        raise UsageError(f"{source}, line 1: the header is line 1, and only that.")
    _refuse(recording_checks.header_faults(header), source, 1)
    return header


def _refuse(faults: Iterable[str], source: str, number: int) -> None:
    """UsageError for the first fault, if there is one."""
    fault = next(iter(faults), None)
    if fault is not None:
        raise UsageError(f"{source}, line {number}: it contradicts itself: {fault}.")


def _first_look(text: bytes) -> _FirstLook:
    try:
        return decode_json(_first_looks, text)
    except BrokenJson:
        return _FirstLook()


def _by_a_newer(version: str) -> str:
    wrote = f"gputop {version}" if _is_newer(version) else "a newer gputop"
    return f"which {wrote} wrote and this one, {__version__}, does not know. {_upgrade()}"


def _upgrade() -> str:
    return f"Install a newer one: {install_hints.upgrade(install_hints.DISTRIBUTION)}."


def _is_newer(version: str) -> bool:
    """Return whether a version comes after this one, as far as both are numbers."""
    theirs, ours = (re.findall(r"\d{1,9}", text.split("+")[0])[:3] for text in (version, __version__))
    return [int(number) for number in theirs] > [int(number) for number in ours]


class _Reading:
    """The lines read so far."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._views: dict[str, RecordedPlan] = {}
        self._gates: dict[str, Gate] = {}
        self._windows: list[Window] = []
        self._refusals: dict[str, str] = {}
        self._ladder: Ladder | None = None
        self._batches: Ladder | None = None
        self.whole = False

    @property
    def version(self) -> str:
        return self._header.version

    def faults(self, line: Line) -> Iterator[str]:
        """Yield what the line contradicts, in itself or of those before it, half a sentence each."""
        match line:
            case PlanLine():
                yield from recording_checks.view_faults(line.view, self._header)
                if line.view.word in self._views:
                    yield f"a line before it tells of plan {line.view.word!r}"
            case GateLine():
                yield from recording_checks.gate_faults(line.gate)
                if line.plan not in self._views:
                    yield f"no line before it tells of plan {line.plan!r}"
            case WindowLine():
                yield from recording_checks.window_faults(line.window, self._header, self._views)
            case LadderLine() | BatchesLine():
                yield from recording_checks.ladder_faults(line.ladder, self._header)
                if (self._ladder if isinstance(line, LadderLine) else self._batches) is not None:
                    yield "a line before it holds the same"
            case Header() | RefusalLine() | EndLine():
                pass

    def add(self, line: Line) -> None:
        match line:
            case PlanLine():
                self._views[line.view.word] = line.view
            case GateLine():
                self._gates[line.plan] = line.gate
            case WindowLine():
                self._windows.append(rejudged_window(_reconciled(line.window)))
            case LadderLine():
                self._ladder = rejudged_ladder(_as_predicted(line.ladder))
            case BatchesLine():
                self._batches = rejudged_ladder(line.ladder)
            case RefusalLine():
                self._refusals[line.what] = line.reason
            case EndLine():
                self.whole = True
            case Header():
                pass

    def recording(self) -> Recording:
        backend = self._header.device.backend
        return Recording(
            header=self._header,
            plans=tuple(plan_of(view, backend) for view in self._views.values()),
            refused={word: refused_values(view) for word, view in self._views.items()},
            gates=self._gates,
            windows=tuple(self._windows),
            ladder=self._ladder,
            refusals=self._refusals,
            whole=self.whole,
            batches=self._batches,
        )


def _reconciled(window: Window) -> Window:
    """What is taken from other figures of the window is taken anew, so that old recordings gain by mends."""
    lanes = (replace(lane, rows=reconciled(lane.rows)) for lane in window.lanes)
    return replace(window, lanes=tuple(lanes))


def _as_predicted(ladder: Ladder) -> Ladder:
    """Fill in a rung's first prediction if the recording was made before it was kept."""
    revised = {rung.id: rung.prediction for rung in rungs() if rung.prediction and rung.prediction.first}

    def with_first(entry: LadderEntry) -> LadderEntry:
        known = revised.get(entry.rung)
        if known is None or entry.foretold is not None or entry.predicted_interval != known.interval:
            return entry
        return replace(entry, foretold=PredictedGain.of(known, entry.ratio_before_interval))

    return replace(ladder, entries=tuple(map(with_first, ladder.entries)))


def _lean(value: Any) -> Any:
    """A record as plain data, without the fields that hold their default."""
    if is_dataclass(value):
        pairs = ((field, getattr(value, field.name)) for field in fields(value))
        return {f.name: _lean(v) for f, v in pairs if f.default is MISSING or v != f.default}
    if isinstance(value, tuple):
        return [_lean(item) for item in value]
    return value
