"""The few colours of the screen and what each means. Every colour has a mark or a word beside it."""

from __future__ import annotations

from dataclasses import dataclass

from textual.theme import Theme

CURRENT = "#7cb7ff"
PINNED = "#e3b341"
GOOD = "#6cc58f"
BAD = "#f0786e"
MUTED = "#8b949e"
FAINT = "#5b6472"
TEXT = "#d0d7de"
FLOOR = "#4fa58b"
EXCESS = "#9a7748"
EXCESS_GROUND = "#3b2f20"
"""Behind a cell that is partly floor, partly excess."""
EXCESS_MOST = "#f0b35c"
"""Of the phase with the largest excess: what the eye should find first."""

THEME = Theme(
    name="gputop",
    primary=CURRENT,
    secondary="#9aa7d6",
    accent=PINNED,
    warning=PINNED,
    error=BAD,
    success=GOOD,
    foreground=TEXT,
    background="#0e1116",
    surface="#151a21",
    panel="#1d242e",
    dark=True,
    variables={
        "footer-background": "#151a21",
        "footer-key-foreground": CURRENT,
        "footer-description-foreground": MUTED,
        "block-cursor-text-style": "none",
    },
)


@dataclass(frozen=True, slots=True)
class TermMark:
    """How a term of the model is drawn: a letter that stands without colour, and its colour."""

    term: str
    letter: str
    color: str
    meaning: str


TERMS = (
    TermMark("compute", "C", "#6fa8dc", "the arithmetic pipe"),
    TermMark("dram", "D", "#b69ae0", "bytes from memory"),
    TermMark("l2", "2", "#8fa3e8", "sectors asked of the L2 cache"),
    TermMark("l1", "1", "#74c2c4", "shared memory and L1"),
    TermMark("issue", "I", "#d9b36c", "instructions to issue"),
    TermMark("latency", "T", "#e39a6d", "waiting on memory or a chain of instructions"),
    TermMark("launch", "L", "#d98aa8", "starting kernels, and gaps"),
    TermMark("shape", "S", "#a9bf62", "padding and idle multiprocessors"),
    TermMark("unknown", "?", MUTED, "no term explains half of the time"),
)
_BY_TERM = {mark.term: mark for mark in TERMS}


def term_mark(term: str) -> TermMark:
    """The mark of a term; one that is not in the table is drawn as unknown."""
    return _BY_TERM.get(term, _BY_TERM["unknown"])


@dataclass(frozen=True, slots=True)
class VerdictMark:
    symbol: str
    color: str


VERDICTS = {
    "FASTER": VerdictMark("▲", GOOD),
    "SLOWER": VerdictMark("▼", BAD),
    "SAME": VerdictMark("=", MUTED),
    "UNRESOLVED": VerdictMark("?", PINNED),
}
"""▲ is speed going up."""
