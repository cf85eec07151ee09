"""Let nothing reach the terminal that it would obey: the last step of drawing, for every widget."""

from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter


class PrintableFilter(LineFilter):
    """Replaces each character that does not print by as many question marks as it has cells.

    Control characters have none and vanish, so that a line keeps the width that it was laid out with.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        if all(segment.text.isprintable() for segment in segments):
            return segments
        return [Segment("".join(map(_shown, text)), style, control) for text, style, control in segments]


def _shown(char: str) -> str:
    if char.isprintable():
        return char
    return (" " if char.isspace() else "?") * cell_len(char)


PRINTABLE = PrintableFilter()
