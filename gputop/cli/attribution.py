"""What each change between two rungs banked, and the sum."""

from __future__ import annotations

from gputop import units
from gputop.cli.tables import Heading, table
from gputop.cli.terminal import Terminal
from gputop.results import Ladder

HEADINGS = (
    Heading("change"),
    Heading("banked", right=True),
    Heading("so far", right=True, priority=1),
    Heading("share", right=True, priority=2),
    Heading("idea", priority=3),
)


def attribution_lines(ladder: Ladder, terminal: Terminal) -> list[str]:
    """Device time saved by each rung over the one measured before it; the parts add up to the whole.

    All times are of one window. A rung without a time (its gate failed) leaves its step and the sum unknown.
    """
    times = [entry.device_s for entry in ladder.entries]
    whole = _saved(times[0], times[-1])
    rows = []
    for before, entry, earlier in zip(ladder.entries, ladder.entries[1:], times, strict=False):
        banked = _saved(earlier, entry.device_s)
        share = banked / whole if banked is not None and whole else None
        rows.append(
            (
                f"{before.rung} -> {entry.rung}",
                units.signed_seconds(banked),
                units.signed_seconds(_saved(times[0], entry.device_s)),
                units.percent(share),
                entry.idea,
            )
        )
    rows.append(("sum", units.signed_seconds(whole), "", "", ""))
    lines = table(HEADINGS, rows, terminal.width)
    return [terminal.paint(lines[0], "strong"), *lines[1:]]


def _saved(before_s: float | None, after_s: float | None) -> float | None:
    return None if before_s is None or after_s is None else before_s - after_s
