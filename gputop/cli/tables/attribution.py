"""What each change between two rungs saved beside what was predicted, the sums, and a peer's margin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from gputop.cli.tables.text_table import Heading, table
from gputop.cli.tables.window_lines import joined
from gputop.cli.terminal import Terminal
from gputop.results.ladder import Ladder, LadderEntry
from gputop.util import units
from gputop.util.interval import Interval

HEADINGS = (
    Heading("change"),
    Heading("saved", right=True),
    Heading("[99 %]", priority=2),
    Heading("predicted", right=True, priority=1),
    Heading("[from, to]", priority=3),
    Heading("", priority=4),
    Heading("ratio", right=True, priority=5),
    Heading("idea", priority=6),
)


def attribution_lines(ladder: Ladder, terminal: Terminal) -> list[str]:
    """Compare each rung with the one that it changes, add the steps, and compare the last with the first
    directly.

    All times are of one window and of one sequence. If a rung has no time (its gate failed), its step and
    the sums are unknown.
    """
    steps = [entry for entry in ladder.entries if entry.kind == "ladder"]
    first, last = steps[0], steps[-1]
    pairs = list(pairwise(steps))
    all_saved = _total([saved_time(before, entry) for before, entry in pairs])
    all_predicted = _total([predicted(before, entry) for before, entry in pairs])
    all_first = _total([original_prediction(before, entry) for before, entry in pairs])
    revised = ", ".join(entry.rung for _, entry in pairs if entry.foretold is not None)
    direct = last.saved_first_interval_s
    if last.ratio_first_interval.is_uninformative:
        direct = Interval(direct.value)
    ratio = units.ratio_within(last.ratio_first_interval)
    rows = [
        *(
            _row(f"{before.rung} -> {entry.rung}", saved_time(before, entry), predicted(before, entry), entry)
            for before, entry in pairs
        ),
        _row("sum of the changes", all_saved, all_predicted, None),
        (f"{first.rung} -> {last.rung}", units.signed_seconds(direct.value), _ends(direct), "", "", "",
         ratio, _how(last)),
    ]  # fmt: skip
    lines = table(HEADINGS, rows, terminal.width)
    return [
        terminal.paint(lines[0], "strong"),
        *lines[1:],
        *_off(all_saved, direct, last),
        *_share(all_saved, all_predicted, "predicted in all"),
        *(_share(all_saved, all_first, f"first predicted ({revised} revised)") if revised else ()),
        *_peers(ladder.entries, first, last),
    ]


def _row(name: str, saved: Interval, expected: Interval, entry: LadderEntry | None) -> tuple[str, ...]:
    """Make a row.

    It has no ratio if `saved` is unknown, since the entry's own may be against another rung.
    """
    ratio = ""
    if entry is not None and saved.value is not None:
        ratio = units.ratio_within(entry.ratio_before_interval)
    return (
        name,
        units.signed_seconds(saved.value),
        _ends(saved),
        units.signed_seconds(expected.value),
        _ends(expected),
        (entry.source or "") if entry else "",
        ratio,
        entry.idea if entry else "",
    )


def saved_time(before: LadderEntry, entry: LadderEntry) -> Interval:
    """Return what the rung saved over the one before; unknown if it was compared with another."""
    if entry.before != before.rung:
        return Interval(None)
    if entry.ratio_before_interval.is_uninformative:
        return Interval(entry.saved_s)
    return entry.saved_interval_s


def predicted(before: LadderEntry, entry: LadderEntry) -> Interval:
    """The predicted gain as seconds, at the time that the rung before was measured at."""
    return _expected(before, entry.predicted_interval)


def original_prediction(before: LadderEntry, entry: LadderEntry) -> Interval:
    """The same by what was written down first, where the prediction was revised."""
    first = entry.foretold
    return predicted(before, entry) if first is None else _expected(before, first.interval)


def _expected(before: LadderEntry, gain: Interval) -> Interval:
    """A gain, and its ends, as seconds of the rung before."""
    if before.device_s is None:
        return Interval(None)
    sequence_s = before.device_s / (before.batch or 1)
    ends = (gain.value, gain.lo, gain.hi)
    return Interval(*(sequence_s * (1 - 1 / end) if end else None for end in ends))


def _total(parts: Sequence[Interval]) -> Interval:
    """The parts added, and their intervals end to end: right whatever they have in common."""
    return Interval(*(_added(getattr(part, name) for part in parts) for name in ("value", "lo", "hi")))


def _ends(saved: Interval) -> str:
    if saved.lo is None or saved.hi is None:
        return ""
    return f"[{units.signed_seconds(saved.lo)}, {units.signed_seconds(saved.hi)}]"


def _how(last: LadderEntry) -> str:
    """Return how the last rung was compared with the first."""
    if last.through:
        return f"derived from both against {last.through}, in the same window: the interval is wider"
    return "measured directly, in the same window"


def _off(saved: Interval, direct: Interval, last: LadderEntry) -> Iterator[str]:
    if saved.value is None or direct.value is None:
        return
    off = units.signed_seconds(saved.value - direct.value)
    whole = "what is derived of the whole" if last.through else "the direct measurement"
    yield f"the changes add up to {off} beside {whole}"


def _share(saved: Interval, expected: Interval, what: str) -> Iterator[str]:
    if saved.value is not None and expected.value:
        yield f"saved {units.percent(saved.value / expected.value)} of what was {what}"


def _peers(entries: Sequence[LadderEntry], first: LadderEntry, last: LadderEntry) -> Iterator[str]:
    """Compare each peer's time with that of both ends."""
    for peer in entries:
        if peer.kind != "peer":
            continue
        if peer.device_s is None:
            yield joined(f"{peer.rung}: no time", peer.gate.where or peer.status)
            continue
        margins = (
            f"{units.ratio(_ratio(peer, end))} the time of {end.rung}"
            for end in (first, last)
            if end.device_s
        )
        yield joined(f"{peer.rung}: {units.seconds(peer.device_s)}", *margins)


def _ratio(peer: LadderEntry, end: LadderEntry) -> float | None:
    if peer.device_s is None or not end.device_s:
        return None
    return (peer.device_s / (peer.batch or 1)) / (end.device_s / (end.batch or 1))


def _added(values: Iterable[float | None]) -> float | None:
    """Add the parts; None if one of them is None."""
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total
