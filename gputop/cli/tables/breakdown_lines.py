"""Passes of different make side by side, by what their kernels do, and where their difference lies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gputop.cli.tables.text_table import Heading, table
from gputop.cli.terminal import Terminal
from gputop.plan.types import KINDS
from gputop.results.breakdown import (
    CLASSES,
    Class,
    difference_s,
    explain_difference,
    from_rows,
    known,
    total_s,
)
from gputop.results.ladder import LadderEntry
from gputop.results.records import Breakdown, Comparison, PlanResult, Tuned, Window
from gputop.util import units

APART = frozenset({"device", "wall", *KINDS})
"""What two passes of different make may both have: the whole, and `attention`, a phase of ours and a kind."""
PAIR = (
    Heading("pass by kind"),
    Heading("a", right=True),
    Heading("b", right=True),
    Heading("b - a", right=True),
)
TUNED = (
    Heading("tuned product"),
    Heading("best"),
    Heading("second"),
    Heading("second / best", right=True),
    Heading("library / best", right=True),
    Heading("choices", right=True, priority=1),
)


def compared_lines(window: Window, comparison: Comparison, terminal: Terminal) -> list[str]:
    """Compare two plans that share no phase by kind of kernel; empty if they share phases, which say more."""
    a, b = window.lane("pinned"), window.lane("current")
    if a is None or b is None or {delta.phase for delta in comparison.deltas} - APART:
        return []
    tuned = [line for lane in (a, b) for line in tuned_lines(lane.plan, lane.tuned, terminal)]
    return ["", *_pair_lines(a, b, terminal), *tuned]


def peer_lines(entries: Sequence[LadderEntry], terminal: Terminal) -> list[str]:
    """The peers of a ladder beside its fastest rung: by kind, against their forecasts, with their trials."""
    peers = [entry for entry in entries if entry.kind == "peer" and entry.device_s is not None]
    if not peers:
        return []
    fastest = min(peers, key=lambda peer: peer.device_s or 0.0)
    own = _fastest_own(entries, fastest.batch)
    lines = [*_kinds_lines(([own] if own else []) + peers, terminal)]
    if own and own.breakdown and fastest.breakdown and known(own.breakdown) and known(fastest.breakdown):
        lines.append(explain_difference(own.rung, own.breakdown, fastest.rung, fastest.breakdown))
    for peer in peers:
        lines += _forecast_lines(peer, terminal)
        if peer.host_bound:
            lines.append(f"{peer.rung} is host-bound: {units.seconds(peer.wall_s)} as used")
    return [*lines, *(line for peer in peers for line in tuned_lines(peer.rung, peer.tuned, terminal))]


def tuned_lines(plan: str, tuned: Sequence[Tuned], terminal: Terminal) -> list[str]:
    """Return a compiler's own trials of each product, as ratios within that log; empty without one."""
    if not tuned:
        return []
    rows = [
        (
            f"{item.operation}({item.sizes})",
            item.best,
            item.second or units.UNKNOWN,
            units.ratio(item.second_ratio),
            units.ratio(item.library_ratio),
            str(item.choices),
        )
        for item in tuned
    ]
    heading, *lines = table(TUNED, rows, terminal.width)
    return [
        "",
        f"{plan} by its own trials; ratios of times within its log",
        terminal.paint(heading, "strong"),
        *lines,
    ]


def _pair_lines(a: PlanResult, b: PlanResult, terminal: Terminal) -> Iterator[str]:
    of_a, of_b = from_rows(a.rows), from_rows(b.rows)
    heading, *lines = table(PAIR, list(_pair_rows(of_a, of_b)), terminal.width)
    yield terminal.paint(heading, "strong")
    yield from lines
    for name, parts in ((a.plan, of_a), (b.plan, of_b)):
        if parts.status:
            yield terminal.paint(f"  {name}: {parts.status}", "quiet")
        if parts.others:
            yield terminal.paint(f"  {name}, other: {'; '.join(parts.others)}", "quiet")
    if known(of_a) and known(of_b):
        yield explain_difference(a.plan, of_a, b.plan, of_b)


def _pair_rows(a: Breakdown, b: Breakdown) -> Iterator[tuple[str, ...]]:
    more = None if a.launches is None or b.launches is None else b.launches - a.launches
    yield "launches", units.whole(a.launches), units.whole(b.launches), _signed(more)
    for part in _shown(a, b):
        times = (units.seconds(getattr(of, part.field)) for of in (a, b))
        yield part.name, *times, units.signed_seconds(difference_s(a, b, part))
    all_a, all_b = total_s(a), total_s(b)
    apart = None if all_a is None or all_b is None else all_b - all_a
    yield "together", units.seconds(all_a), units.seconds(all_b), units.signed_seconds(apart)


def _kinds_lines(entries: Sequence[LadderEntry], terminal: Terminal) -> list[str]:
    divided = [(entry, entry.breakdown) for entry in entries if entry.breakdown is not None]
    shown = _shown(*(parts for _, parts in divided))
    headings = (
        Heading("pass by kind"),
        Heading("launches", right=True),
        *(Heading(part.name, right=True) for part in shown),
    )
    rows = [
        (
            entry.rung,
            units.whole(parts.launches),
            *(units.seconds(getattr(parts, part.field)) for part in shown),
        )
        for entry, parts in divided
    ]
    if not rows:
        return []
    heading, *lines = table(headings, rows, terminal.width)
    why = dict.fromkeys(parts.status for _, parts in divided if parts.status)
    others = [f"{entry.rung}, other: {'; '.join(parts.others)}" for entry, parts in divided if parts.others]
    return [
        terminal.paint(heading, "strong"),
        *lines,
        *(terminal.paint(f"  {text}", "quiet") for text in (*why, *others)),
    ]


def _forecast_lines(peer: LadderEntry, terminal: Terminal) -> list[str]:
    if peer.forecast_s is None or peer.device_s is None:
        return [f"{peer.rung}: not forecast; measured {units.seconds(peer.device_s)}"]
    off = units.ratio(peer.device_s / peer.forecast_s)
    launches = peer.breakdown.launches if peer.breakdown else None
    measured = f"measured {launches} launches; forecast " if launches is not None else ""
    return [
        f"{peer.rung}: forecast {units.seconds(peer.forecast_s)}, measured {units.seconds(peer.device_s)},"
        f" {off} the forecast",
        terminal.paint(f"  {measured}from {peer.forecast_from}", "quiet"),
    ]


def _fastest_own(entries: Sequence[LadderEntry], batch: int | None) -> LadderEntry | None:
    """The fastest rung of ours of that batch."""
    timed = [entry for entry in entries if entry.kind == "ladder" and entry.device_s and entry.batch == batch]
    return min(timed, key=lambda entry: entry.device_s or 0.0, default=None)


def _shown(*breakdowns: Breakdown) -> list[Class]:
    """`other` only where there is some."""
    return [part for part in CLASSES if part.field != "other_s" or any(of.other_s for of in breakdowns)]


def _signed(count: int | None) -> str:
    return units.UNKNOWN if count is None else f"{count:+d}"
