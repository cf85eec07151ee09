"""The few colours of the screen and what each means. Every colour has a mark or a word beside it.

Widgets draw in the colours of the dark theme, by the names below. `theme_filter` turns them into those of the
theme that is on, and into numbers if the terminal has 256 colours only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["text", "line", "ground"]


@dataclass(frozen=True, slots=True)
class Shade:
    """One colour as each theme and each kind of terminal has it."""

    name: str
    role: Role
    """What it is for: text at least 4.5:1 on every ground, lines and bars at least 3:1, or a ground."""
    dark: str
    light: str
    dark_256: int
    light_256: int
    """Numbers of the 256 colours that xterm defines."""


SHADES = (
    Shade("background", "ground", "#0e1116", "#ffffff", 233, 231),
    Shade("surface", "ground", "#151a21", "#f4f6f8", 234, 255),
    Shade("panel", "ground", "#1d242e", "#e9edf1", 235, 254),
    Shade("cursor", "ground", "#203044", "#dfebf9", 236, 195),
    Shade("rest", "ground", "#171d25", "#eef2f6", 235, 255),
    Shade("text", "text", "#d0d7de", "#1f2328", 253, 235),
    Shade("muted", "text", "#a3adb8", "#4b545e", 248, 239),
    Shade("faint", "text", "#8f99a5", "#59626c", 247, 240),
    Shade("current", "text", "#7cb7ff", "#0a58a8", 111, 25),
    Shade("pinned", "text", "#e3b341", "#7d4e00", 179, 94),
    Shade("good", "text", "#6cc58f", "#126b36", 114, 22),
    Shade("bad", "text", "#f58e85", "#b3261e", 210, 124),
    Shade("floor", "text", "#5fb89c", "#17694f", 115, 23),
    Shade("excess_most", "text", "#f0b35c", "#8a4b00", 215, 88),
    Shade("compute", "text", "#7fb3e3", "#1d5a99", 110, 24),
    Shade("dram", "text", "#bda5e6", "#6a3fb5", 183, 55),
    Shade("l2", "text", "#9dafef", "#3f4cb8", 147, 19),
    Shade("l1", "text", "#74c2c4", "#0d6569", 116, 23),
    Shade("issue", "text", "#d9b36c", "#775100", 180, 58),
    Shade("latency", "text", "#e6a57c", "#94421a", 216, 94),
    Shade("launch", "text", "#df97b2", "#a0325f", 211, 125),
    Shade("first_load", "text", "#cf9fd6", "#85338f", 182, 90),
    Shade("code", "text", "#c6a48f", "#7a4a2b", 180, 94),
    Shade("end", "text", "#a9bf62", "#506410", 149, 58),
    Shade("excess", "line", "#9a7748", "#a87b42", 137, 94),
    Shade("line", "line", "#647080", "#7a8592", 244, 243),
    Shade("pinned_line", "line", "#8a7435", "#a37a20", 136, 94),
    Shade("path_line", "line", "#4f7fae", "#4f86bd", 67, 67),
    Shade("excess_ground", "ground", "#3b2f20", "#f3e3cb", 58, 223),
    Shade("grid", "ground", "#2a313c", "#d5dbe2", 238, 252),
)
BY_NAME = {shade.name: shade for shade in SHADES}


def _dark(name: str) -> str:
    return BY_NAME[name].dark


CURRENT = _dark("current")
PINNED = _dark("pinned")
GOOD = _dark("good")
BAD = _dark("bad")
MUTED = _dark("muted")
FAINT = _dark("faint")
TEXT = _dark("text")
FLOOR = _dark("floor")
LINE = _dark("line")
GRID = _dark("grid")
PINNED_LINE = _dark("pinned_line")
PATH_LINE = _dark("path_line")
EXCESS = _dark("excess")
EXCESS_GROUND = _dark("excess_ground")
"""Behind a cell that is partly floor, partly excess."""
EXCESS_MOST = _dark("excess_most")
"""Of the phase with the largest excess: what the eye should find first."""


@dataclass(frozen=True, slots=True)
class TermMark:
    """How a term of the model is drawn: a letter that stands without colour, and its colour."""

    term: str
    letter: str
    color: str
    meaning: str


TERMS = (
    TermMark("launch", "L", _dark("launch"), "starting kernels, and gaps"),
    TermMark("first load", "F", _dark("first_load"), "until the first operand has come"),
    TermMark("code", "M", _dark("code"), "machine code that an SM fetches"),
    TermMark("latency", "T", _dark("latency"), "waits for memory, one after the other"),
    TermMark("l2", "2", _dark("l2"), "the feed: bytes that the busiest SM takes from L2"),
    TermMark("l1", "1", _dark("l1"), "shared memory and L1 of the busiest SM"),
    TermMark("issue", "I", _dark("issue"), "instructions of the busiest SM"),
    TermMark("compute", "C", _dark("compute"), "the arithmetic pipe of the busiest SM"),
    TermMark("dram", "D", _dark("dram"), "bytes from memory"),
    TermMark("end", "E", _dark("end"), "parts added, clusters' exchange, the last store"),
    TermMark("unknown", "?", MUTED, "all terms together explain less than half of the time"),
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
