"""The two themes, made from one table of shades: what the style sheet's variables are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from textual.theme import Theme

from gputop.tui.palette import SHADES, Shade

ThemeName = Literal["dark", "light"]
THEME_NAMES: tuple[ThemeName, ...] = ("dark", "light")


def theme_id(name: ThemeName) -> str:
    """Return the name under which Textual knows a theme: not that of one of its own."""
    return f"gputop-{name}"


def _theme(name: ThemeName) -> Theme:
    pick: Callable[[Shade], str] = (
        (lambda shade: shade.light) if name == "light" else (lambda shade: shade.dark)
    )
    color = {shade.name: pick(shade) for shade in SHADES}
    return Theme(
        name=theme_id(name),
        primary=color["current"],
        secondary=color["l2"],
        accent=color["pinned"],
        warning=color["pinned"],
        error=color["bad"],
        success=color["good"],
        foreground=color["text"],
        background=color["background"],
        surface=color["surface"],
        panel=color["panel"],
        dark=name == "dark",
        variables={
            "muted": color["muted"],
            "line": color["line"],
            "cursor-ground": color["cursor"],
            "cursor-rest": color["rest"],
            "footer-background": color["surface"],
            "footer-key-foreground": color["current"],
            "footer-description-foreground": color["muted"],
            "block-cursor-text-style": "none",
        },
    )


THEMES = {name: _theme(name) for name in THEME_NAMES}
OWN_THEMES = {theme.name: theme for theme in THEMES.values()}
"""By the name that Textual knows them by."""
