"""A measured ladder as text: each rung's prediction beside its gain, and how often predictions held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from gputop.cli.tables.breakdown_lines import peer_lines
from gputop.cli.tables.text_table import Heading, table
from gputop.cli.tables.window_lines import footnotes, joined
from gputop.cli.terminal import Terminal
from gputop.results.ladder import Ladder, LadderEntry, PredictedGain
from gputop.results.row_figures import binds_words
from gputop.util import units

HEADINGS = (
    Heading("#", right=True, priority=9),
    Heading("rung"),
    Heading("device", right=True, priority=1),
    Heading("wall", right=True, priority=7),
    Heading("vs first", right=True, priority=3),
    Heading("vs before", right=True),
    Heading("predicted", priority=2),
    Heading("", priority=2),
    Heading("binds", priority=5),
    Heading("gate", priority=4),
    Heading("error", right=True, priority=8),
    Heading("new kernels", priority=10),
)
FILES_SHOWN = 3
MARK = "* "
"""Before a ratio against another rung than the one above."""
HIT = {True: "hit", False: "miss", None: "undecided"}
"""Undecided: the interval of the gain straddles a bound of the predicted one."""
BY_GAIN = "by the gain alone where it has no interval"


def ladder_lines(ladder: Ladder, terminal: Terminal) -> list[str]:
    """Rungs of one window, measured against predicted, then what must be known to read them."""
    lines = table(HEADINGS, list(_rows(ladder.entries)), terminal.width)
    notes = ((entry.rung, entry.gate.where or entry.status) for entry in ladder.entries)
    return [
        joined(ladder.device.name, ladder.workload, ladder.device.versions, ladder.time_utc),
        "",
        terminal.paint(lines[0], "strong"),
        *lines[1:],
        *(terminal.paint(line, "quiet") for line in _marked_lines(ladder.entries)),
        *footnotes(notes, terminal),
        *(terminal.paint(note, "quiet") for note in ladder.notes),
        *(terminal.paint(f"  {line}", "quiet") for line in revision_lines(ladder.entries)),
        *score_lines(ladder.entries),
        *_spaced(peer_lines(ladder.entries, terminal)),
    ]


def other_sites(entries: Sequence[LadderEntry]) -> tuple[str, ...]:
    """Return for each rung the one that it is compared with, if that is not the one above it; else empty."""
    above = ("", *(entry.rung for entry in entries[:-1]))
    held = ((entry.before or other, other) for entry, other in zip(entries, above, strict=True))
    return tuple("" if before == other else before for before, other in held)


def _marked_lines(entries: Sequence[LadderEntry]) -> list[str]:
    """One line: what the marked ratios are against."""
    against: dict[str, list[str]] = {}
    for entry, before in zip(entries, other_sites(entries), strict=True):
        if before:
            against.setdefault(before, []).append(entry.rung)
    parts = [f"{', '.join(rungs)} against {before}" for before, rungs in against.items()]
    return [f"  {MARK}vs before, not the row above: {'; '.join(parts)}"] if parts else []


def _spaced(lines: Sequence[str]) -> list[str]:
    return ["", *lines] if lines else []


def revision_lines(entries: Sequence[LadderEntry]) -> list[str]:
    """One line a rung whose prediction was revised: what it was first, and whether that held."""
    return [
        f"{entry.rung}: revised {entry.foretold.revised}; first {prediction_words(entry.foretold)}"
        for entry in entries
        if entry.foretold is not None
    ]


def prediction_words(first: PredictedGain) -> str:
    """`1.05× [0.950, 1.20] floor, miss`."""
    return f"{units.ratio_within(first.interval)} {first.source}, {HIT[first.hit]}"


def score_lines(entries: Sequence[LadderEntry]) -> list[str]:
    """One line: hits of all predictions, by what they rest on; nothing where none was measured.

    Where some were revised, the hits of what was first predicted too.
    """
    tried, hits = Counter[str](), Counter[str]()
    for entry in entries:
        if entry.hit is not None and entry.source is not None:
            tried[entry.source] += 1
            hits[entry.source] += entry.hit
    if not tried:
        return []
    parts = (f"{source} {hits[source]} of {tried[source]}" for source in sorted(tried))
    alone = any(entry.hit is not None and entry.ratio_before_lo is None for entry in entries)
    held = f"predictions held: {hits.total()} of {tried.total()}"
    return [joined(held + _first_score(entries), *parts, *([BY_GAIN] if alone else []))]


def _first_score(entries: Sequence[LadderEntry]) -> str:
    """`; 13 of 20 by what was first predicted (revised: a, b)`; empty where none was revised."""
    revised = [entry.rung for entry in entries if entry.foretold is not None]
    outcomes = [entry.hit if entry.foretold is None else entry.foretold.hit for entry in entries]
    known = [hit for hit in outcomes if hit is not None]
    if not revised:
        return ""
    return f"; {sum(known)} of {len(known)} by what was first predicted (revised: {', '.join(revised)})"


def _rows(entries: Sequence[LadderEntry]) -> Iterator[tuple[str, ...]]:
    for index, (entry, before) in enumerate(zip(entries, other_sites(entries), strict=True)):
        ratio = units.ratio_within(entry.ratio_before_interval)
        yield (
            units.whole(entry.number),
            entry.rung,
            units.seconds(entry.device_s),
            units.seconds(entry.wall_s),
            units.ratio(entry.ratio_first),
            f"{MARK}{ratio}" if before else ratio,
            _predicted(entry),
            hit_word(entry),
            binds_words(entry),
            entry.gate.status,
            units.scientific(entry.gate.pass_error),
            _new_kernels(entry, entries[:index]),
        )


def hit_word(entry: LadderEntry) -> str:
    """Empty where nothing was predicted or measured."""
    return "" if entry.predicted is None or entry.ratio_before is None else HIT[entry.hit]


def _predicted(entry: LadderEntry) -> str:
    if entry.predicted is None:
        return ""
    interval = units.ratio_within(entry.predicted_interval)
    return f"{interval} {entry.source or ''}".rstrip()


def _new_kernels(entry: LadderEntry, above: Sequence[LadderEntry]) -> str:
    """Files, or names where there is none, of the kernels that the rung it is held against lacks."""
    before = next((other for other in above if other.rung == entry.before), None)
    known = set(before.kernels) if before else set()
    files = entry.files or ("",) * len(entry.kernels)
    new = dict.fromkeys(
        file or kernel for kernel, file in zip(entry.kernels, files, strict=True) if kernel not in known
    )
    shown = list(new)[:FILES_SHOWN]
    return " ".join(shown) + (f" and {len(new) - FILES_SHOWN} more" if len(new) > FILES_SHOWN else "")
