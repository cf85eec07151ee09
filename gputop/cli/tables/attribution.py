"""What each change between two rungs saved beside what was predicted, the sums, and a peer's margin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from gputop.cli.tables.text_table import Heading, table
from gputop.cli.tables.window_lines import joined
from gputop.cli.terminal import Terminal
from gputop.results.ladder import Ladder, LadderEntry
from gputop.util import units

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


@dataclass(frozen=True, slots=True)
class Saving:
    """Seconds of one sequence's time; None is unknown, as is an interval so wide that it says nothing."""

    value_s: float | None
    lo_s: float | None = None
    hi_s: float | None = None

    @classmethod
    def total(cls, parts: Sequence[Saving]) -> Saving:
        """The parts added, and their intervals end to end: right whatever they have in common."""
        return cls(*(_added(getattr(part, name) for part in parts) for name in ("value_s", "lo_s", "hi_s")))

    @property
    def interval(self) -> str:
        if self.lo_s is None or self.hi_s is None:
            return ""
        return f"[{units.signed_seconds(self.lo_s)}, {units.signed_seconds(self.hi_s)}]"


def attribution_lines(ladder: Ladder, terminal: Terminal) -> list[str]:
    """Compare each rung with the one that it changes, add the steps, and compare the last with the first
    directly.

    All times are of one window and of one sequence. If a rung has no time (its gate failed), its step and
    the sums are unknown.
    """
    steps = [entry for entry in ladder.entries if entry.kind == "ladder"]
    first, last = steps[0], steps[-1]
    pairs = list(pairwise(steps))
    all_saved = Saving.total([saved_time(before, entry) for before, entry in pairs])
    all_predicted = Saving.total([predicted(before, entry) for before, entry in pairs])
    all_first = Saving.total([original_prediction(before, entry) for before, entry in pairs])
    revised = ", ".join(entry.rung for _, entry in pairs if entry.foretold is not None)
    direct = Saving(last.saved_first_s)
    if not units.is_uninformative(last.ratio_first, last.ratio_first_lo, last.ratio_first_hi):
        direct = replace(direct, lo_s=last.saved_first_lo_s, hi_s=last.saved_first_hi_s)
    ratio = units.ratio_within(last.ratio_first, last.ratio_first_lo, last.ratio_first_hi)
    rows = [
        *(
            _row(f"{before.rung} -> {entry.rung}", saved_time(before, entry), predicted(before, entry), entry)
            for before, entry in pairs
        ),
        _row("sum of the changes", all_saved, all_predicted, None),
        (f"{first.rung} -> {last.rung}", units.signed_seconds(direct.value_s), direct.interval, "", "", "",
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


def _row(name: str, saved: Saving, expected: Saving, entry: LadderEntry | None) -> tuple[str, ...]:
    """Make a row.

    It has no ratio if `saved` is unknown, since the entry's own may be against another rung.
    """
    ratio = ""
    if entry is not None and saved.value_s is not None:
        ratio = units.ratio_within(entry.ratio_before, entry.ratio_before_lo, entry.ratio_before_hi)
    return (
        name,
        units.signed_seconds(saved.value_s),
        saved.interval,
        units.signed_seconds(expected.value_s),
        expected.interval,
        (entry.source or "") if entry else "",
        ratio,
        entry.idea if entry else "",
    )


def saved_time(before: LadderEntry, entry: LadderEntry) -> Saving:
    """Return what the rung saved over the one before; unknown if it was compared with another."""
    if entry.before != before.rung:
        return Saving(None)
    if units.is_uninformative(entry.ratio_before, entry.ratio_before_lo, entry.ratio_before_hi):
        return Saving(entry.saved_s)
    return Saving(entry.saved_s, entry.saved_lo_s, entry.saved_hi_s)


def predicted(before: LadderEntry, entry: LadderEntry) -> Saving:
    """The predicted gain as seconds, at the time that the rung before was measured at."""
    return _expected(before, entry.predicted, entry.predicted_lo, entry.predicted_hi)


def original_prediction(before: LadderEntry, entry: LadderEntry) -> Saving:
    """The same by what was written down first, where the prediction was revised."""
    first = entry.foretold
    return predicted(before, entry) if first is None else _expected(before, first.gain, first.lo, first.hi)


def _expected(before: LadderEntry, *gains: float | None) -> Saving:
    """A gain, and its ends, as seconds of the rung before."""
    if before.device_s is None:
        return Saving(None)
    sequence_s = before.device_s / (before.batch or 1)
    return Saving(*(sequence_s * (1 - 1 / gain) if gain else None for gain in gains))


def _how(last: LadderEntry) -> str:
    """Return how the last rung was compared with the first."""
    if last.through:
        return f"derived from both against {last.through}, in the same window: the interval is wider"
    return "measured directly, in the same window"


def _off(saved: Saving, direct: Saving, last: LadderEntry) -> Iterator[str]:
    if saved.value_s is None or direct.value_s is None:
        return
    off = units.signed_seconds(saved.value_s - direct.value_s)
    whole = "what is derived of the whole" if last.through else "the direct measurement"
    yield f"the changes add up to {off} beside {whole}"


def _share(saved: Saving, expected: Saving, what: str) -> Iterator[str]:
    if saved.value_s is not None and expected.value_s:
        yield f"saved {units.percent(saved.value_s / expected.value_s)} of what was {what}"


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
