"""A toggle's value: the word that users and files write, and the field of a plan that it means."""

from __future__ import annotations

from typing import Any

from gputop.plan.rungs import Toggle
from gputop.util.errors import UsageError

MOST_BATCH = 4096


def toggle_value(toggle: Toggle, text: str) -> Any:
    """Return the plan field's value that a toggle's word means. Raise UsageError for any other word."""
    if toggle.values:
        if text not in toggle.values:
            raise UsageError(f"{toggle.name}={text!r}: {toggle.name} is one of {', '.join(toggle.values)}.")
        return text == "on" if "on" in toggle.values else text
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MOST_BATCH:
        raise UsageError(f"{toggle.name}={text!r}: {toggle.name} is a whole number from 1 to {MOST_BATCH}.")
    return int(text)


def toggle_text(value: Any) -> str:
    """Return the word for a plan field's value."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
