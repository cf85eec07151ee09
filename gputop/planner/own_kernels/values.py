"""Checked values of a record's fields: each function returns what a field says, or raises half a sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar, get_args

from gputop.plan.types import Layout, Math
from gputop.util.errors import UsageError, unknown_name

T = TypeVar("T")

MOST_THREADS = 1024
MOST_CLUSTER = 16
LARGEST = 2**31 - 1
LONGEST_TEXT = 200
LIMITS = ("multiple", "least", "most")
"""What `takes` may say of a size."""
IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)
PLACEHOLDER = re.compile(r"\{(rows|columns|depth|stages)\}")
"""What an entry may hold in place of a number, if a record offers several tiles or stages."""


def text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UsageError("it is a text")
    if len(value) > LONGEST_TEXT:
        raise UsageError(f"it has {len(value)} characters, and the most is {LONGEST_TEXT}")
    return value


def identifier(value: object) -> str:
    if not IDENTIFIER.fullmatch(text(value)):
        raise UsageError(f"{value!r} is no name of a C function")
    return str(value)


def entry(value: object) -> str:
    """A function's name, with or without `{rows}`, `{columns}`, `{depth}` and `{stages}` in it."""
    if not IDENTIFIER.fullmatch(PLACEHOLDER.sub("0", text(value))):
        raise UsageError(
            f"{value!r} is no name of a C function, in which {{rows}}, {{columns}}, {{depth}} and {{stages}} "
            "may stand for numbers"
        )
    return str(value)


def flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise UsageError("it is true or false")
    return value


def whole(least: int = 1, most: int = LARGEST) -> Callable[[object], int]:
    def read(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise UsageError(f"{_short(value)} is no whole number from {least} to {most}")
        return value

    return read


def several(item: Callable[[object], T], most: int = 64) -> Callable[[object], tuple[T, ...]]:
    """One value, or a list of at most `most` that all differ."""

    def read(value: object) -> tuple[T, ...]:
        found = tuple(map(item, value)) if isinstance(value, list) else (item(value),)
        if not 1 <= len(found) <= most:
            raise UsageError(f"it has {len(found)} values, and 1 to {most} are allowed")
        if len(set(found)) < len(found):
            raise UsageError("a value stands twice in it")
        return found

    return read


def names(kind: str, allowed: Collection[str]) -> Callable[[object], tuple[str, ...]]:
    def one(value: object) -> str:
        if text(value) not in allowed:
            raise UsageError(str(unknown_name(kind, str(value), allowed)).rstrip("."))
        return str(value)

    return several(one)


def layout(value: object) -> Layout:
    if value == "row" or value == "transposed":
        return value
    raise UsageError(
        f"{_short(value)} is no layout: row is w as [columns, inner], transposed is [inner, columns]"
    )


def maths(value: object) -> tuple[Math, ...]:
    found: tuple[Any, ...] = names("math", get_args(Math))(value)
    return found


def block(value: object) -> tuple[int, int, int]:
    """One to three numbers of threads."""
    x, y, z = _three(value, whole(1, MOST_THREADS))
    if x * y * z > MOST_THREADS:
        raise UsageError(f"{x} x {y} x {z} is {x * y * z} threads, and a block has at most {MOST_THREADS}")
    return x, y, z


def tiles(value: object) -> tuple[tuple[int, int, int], ...]:
    """One [rows, columns, depth], or a list of them."""
    if isinstance(value, list) and value and all(isinstance(item, list) for item in value):
        return several(_tile)(value)
    return (_tile(value),)


def grid(value: object) -> tuple[str, str, str]:
    """One to three rules, still as written: what names they may use depends on the phases."""

    def rule(item: object) -> str:
        if isinstance(item, bool) or not isinstance(item, int | str):
            raise UsageError(f"{_short(item)} is no arithmetic, such as 'columns / 64'")
        return str(item)

    return _three(value, rule, "1")


def takes(value: object) -> Mapping[str, Mapping[str, int]]:
    """Size -> {multiple, least, most}."""
    if not isinstance(value, dict):
        raise UsageError("it is a table, such as takes = { inner = { multiple = 16 } }")
    return {size: _limits(size, bounds) for size, bounds in value.items()}


def _limits(size: str, bounds: object) -> Mapping[str, int]:
    if not isinstance(bounds, dict) or not bounds:
        raise UsageError(f"{size} is a table of {', '.join(LIMITS)}, such as {{ multiple = 16 }}")
    for bound, number in bounds.items():
        if bound not in LIMITS:
            raise UsageError(str(unknown_name(f"limit of {size}", bound, LIMITS)).rstrip("."))
        whole()(number)
    return bounds


def _tile(value: object) -> tuple[int, int, int]:
    if not isinstance(value, list) or len(value) != 3:
        raise UsageError("it is [rows, columns, depth]: the output that a block computes, and its inner step")
    rows, columns, depth = map(whole(), value)
    return rows, columns, depth


def _three(value: object, item: Callable[[object], Any], missing: Any = 1) -> tuple[Any, Any, Any]:
    given = value if isinstance(value, list) else [value]
    if not 1 <= len(given) <= 3:
        raise UsageError(f"it has {len(given)} values, along x, y and z at most three")
    x, y, z = (*map(item, given), *[missing] * (3 - len(given)))
    return x, y, z


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 40 else f"{shown[:37]}..."
