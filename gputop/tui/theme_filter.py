"""Turn the colours that widgets draw in into those of the theme, and of a terminal with 256 colours."""

from __future__ import annotations

from functools import lru_cache

from rich.color import Color as RichColor
from rich.color import ColorType
from rich.color_triplet import ColorTriplet
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

from gputop.tui.palette import SHADES
from gputop.tui.themes import ThemeName

CUBE = (0, 95, 135, 175, 215, 255)
"""Levels of a channel in the cube of colours 16 to 231."""


def xterm_triplet(number: int) -> ColorTriplet:
    """Return a colour of the cube or of the greys, 16 to 255, as xterm defines it."""
    if number >= 232:
        return ColorTriplet(*(3 * (8 + 10 * (number - 232),)))
    red, green, blue = (number - 16) // 36, (number - 16) // 6 % 6, (number - 16) % 6
    return ColorTriplet(CUBE[red], CUBE[green], CUBE[blue])


XTERM = {number: xterm_triplet(number) for number in range(16, 256)}


@lru_cache(maxsize=1024)
def nearest_number(triplet: ColorTriplet) -> int:
    """Return the nearest of the 256 colours, the first 16 left out: a user may have changed those."""

    def distance(number: int) -> int:
        return sum((one - two) ** 2 for one, two in zip(triplet, XTERM[number], strict=True))

    return min(XTERM, key=distance)


def _triplet(color: str) -> ColorTriplet:
    return RichColor.parse(color).get_truecolor()


class TintFilter(LineFilter):
    """Replaces the dark theme's shades by those of another theme."""

    def __init__(self, theme: ThemeName) -> None:
        super().__init__(enabled=theme != "dark")
        self._shades = {_triplet(shade.dark): RichColor.parse(getattr(shade, theme)) for shade in SHADES}
        self._tinted = lru_cache(maxsize=4096)(self._tint)

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            Segment(text, self._tinted(style) if style else style, control)
            for text, style, control in segments
        ]

    def _tint(self, style: Style) -> Style:
        color, ground = (self._shade(color) for color in (style.color, style.bgcolor))
        return style + Style(color=color, bgcolor=ground) if color or ground else style

    def _shade(self, color: RichColor | None) -> RichColor | None:
        return self._shades.get(color.triplet) if color and color.triplet else None


class FewColorsFilter(LineFilter):
    """Replaces colours by numbers of the 256, chosen by hand for the shades and by distance for the rest.

    Left to itself the terminal library takes each for the nearest grey or cube colour: borders and grounds
    become one black.
    """

    def __init__(self, theme: ThemeName) -> None:
        super().__init__()
        chosen = {_triplet(getattr(shade, theme)): getattr(shade, f"{theme}_256") for shade in SHADES}
        self._chosen: dict[ColorTriplet, int] = chosen
        self._reduced = lru_cache(maxsize=4096)(self._reduce)

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            Segment(text, self._reduced(style) if style else style, control)
            for text, style, control in segments
        ]

    def _reduce(self, style: Style) -> Style:
        color, ground = (self._number(color) for color in (style.color, style.bgcolor))
        return style + Style(color=color, bgcolor=ground) if color or ground else style

    def _number(self, color: RichColor | None) -> RichColor | None:
        if color is None or color.type is not ColorType.TRUECOLOR or color.triplet is None:
            return None
        number = self._chosen.get(color.triplet)
        return RichColor.from_ansi(nearest_number(color.triplet) if number is None else number)
