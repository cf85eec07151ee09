"""Every pair of colours that the screen draws can be told apart, in both themes and with 256 colours."""

from __future__ import annotations

from itertools import product

import pytest
from rich.color import Color as RichColor
from rich.color_triplet import ColorTriplet
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from gputop.tui.palette import BY_NAME, SHADES, Shade
from gputop.tui.theme_filter import FewColorsFilter, TintFilter, nearest_number, xterm_triplet
from gputop.tui.themes import THEME_NAMES, THEMES, ThemeName, theme_id

LEAST_TEXT, LEAST_LINE = 4.5, 3.0
"""WCAG 2.1, success criteria 1.4.3 and 1.4.11."""
GROUNDS = ("background", "surface", "panel", "cursor", "rest")
"""What text is drawn on."""
PLAIN_GROUNDS = ("background", "surface")
"""What lines are drawn on."""
BLACK = Color(0, 0, 0)


def luminance(color: ColorTriplet) -> float:
    """Relative luminance as WCAG 2.1 defines it."""

    def linear(channel: int) -> float:
        share = channel / 255
        return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4

    red, green, blue = map(linear, color)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: ColorTriplet, other: ColorTriplet) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def drawn(shade: Shade, theme: ThemeName, few: bool) -> ColorTriplet:
    if few:
        return xterm_triplet(getattr(shade, f"{theme}_256"))
    return RichColor.parse(getattr(shade, theme)).get_truecolor()


@pytest.mark.parametrize(("theme", "few"), list(product(THEME_NAMES, (False, True))))
def test_text_and_lines_stand_out_from_every_ground(theme: ThemeName, few: bool) -> None:
    faint = []
    for shade, name in product(SHADES, GROUNDS):
        least = {"text": LEAST_TEXT, "line": LEAST_LINE, "ground": 0.0}[shade.role]
        if shade.role == "line" and name not in PLAIN_GROUNDS:
            continue
        found = contrast(drawn(shade, theme, few), drawn(BY_NAME[name], theme, few))
        if found < least:
            faint.append(f"{shade.name} on {name}: {found:.2f}")
    assert faint == []


def test_contrast_is_as_in_the_standard() -> None:
    black, white, grey = ColorTriplet(0, 0, 0), ColorTriplet(255, 255, 255), ColorTriplet(0x77, 0x77, 0x77)
    assert contrast(black, white) == pytest.approx(21.0)
    assert contrast(grey, white) == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", THEME_NAMES)
def test_grounds_differ_and_so_do_the_verdicts(theme: ThemeName) -> None:
    for few in (False, True):
        assert len({drawn(BY_NAME[name], theme, few) for name in ("background", "surface", "panel")}) == 3
        assert len({drawn(BY_NAME[name], theme, few) for name in ("good", "bad", "pinned", "current")}) == 4


def test_the_style_sheet_has_the_same_shades() -> None:
    for name in THEME_NAMES:
        theme = THEMES[name]
        assert theme.name == theme_id(name)
        assert theme.background == getattr(BY_NAME["background"], name)
        assert theme.variables["line"] == getattr(BY_NAME["line"], name)


def segment(foreground: str, ground: str | None = None) -> list[Segment]:
    return [Segment("x", Style(color=foreground, bgcolor=ground))]


def test_what_is_drawn_in_dark_shades_becomes_light() -> None:
    muted = BY_NAME["muted"]
    (tinted,) = TintFilter("light").apply(segment(muted.dark, "#123456"), BLACK)
    assert tinted.style == Style(color=muted.light, bgcolor="#123456")
    (left,) = TintFilter("light").apply(segment("#010203"), BLACK)
    assert left.style == Style(color="#010203")


@pytest.mark.parametrize("theme", THEME_NAMES)
def test_few_colours_are_numbers_chosen_by_hand(theme: ThemeName) -> None:
    shade = BY_NAME["line"]
    (reduced,) = FewColorsFilter(theme).apply(segment(getattr(shade, theme), "#ff0000"), BLACK)
    assert reduced.style is not None
    assert reduced.style.color == RichColor.from_ansi(getattr(shade, f"{theme}_256"))
    assert reduced.style.bgcolor == RichColor.from_ansi(196)


@pytest.mark.parametrize(("color", "number"), [((0, 0, 0), 16), ((255, 255, 255), 231), ((18, 18, 18), 233)])
def test_other_colours_get_the_nearest_number(color: tuple[int, int, int], number: int) -> None:
    assert nearest_number(ColorTriplet(*color)) == number
