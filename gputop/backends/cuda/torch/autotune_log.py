"""Reads what Inductor writes about the kernels that it timed before it chose: one block a product.

A block is a headline `AUTOTUNE operation(sizes)`, perhaps lines on strides and types, and a line a choice:
name, time, and the best time over this one's in per cent. Versions differ in the unit (early ones name
seconds and mean milliseconds), in what follows the percentage, and in the lines between; only the
percentages are read, so no absolute time leaves the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gputop.results.records import Tuned

HEADLINE = re.compile(r"(?:^|\s)AUTOTUNE (?P<operation>[\w.:]+)\((?P<sizes>[^()]*)\)")
CHOICE = re.compile(
    r"(?:^|\s{2}|\| )(?P<name>\S+) (?P<time>\d+(?:\.\d+)?)\s?m?s (?P<percent>\d+(?:\.\d+)?)%(?:\s|\\n|$)"
)
END = re.compile(r"(?:SingleProcess|SubProcess) AUTOTUNE\b")
LIBRARY = re.compile(r"_?(?:bias_|contiguous_|int_|scaled_)*(?:mm|addmm|bmm|baddbmm|mm_plus_mm)(?:\.\w+)?")
"""What Inductor calls the products that it leaves to the vendor's library."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One kernel in a block."""

    name: str
    ratio: float
    """Its time / the best time, at least 1."""


def parse(text: str) -> tuple[Tuned, ...]:
    """Return each product of a log once, by operation and sizes, in order. Skips all other lines."""
    found: dict[tuple[str, str], Tuned] = {}
    for operation, sizes, choices in _blocks(text.splitlines()):
        if choices and (operation, sizes) not in found:
            found[operation, sizes] = _tuned(operation, sizes, choices)
    return tuple(found.values())


def _blocks(lines: Iterable[str]) -> Iterator[tuple[str, str, list[Choice]]]:
    """(operation, sizes, choices) of each block, its end marked or not."""
    block: tuple[str, str, list[Choice]] | None = None
    for line in lines:
        headline = HEADLINE.search(line)
        if headline or END.search(line):
            if block:
                yield block
            block = (headline["operation"], headline["sizes"], []) if headline else None
        elif block and (choice := _choice(line)):
            block[2].append(choice)
    if block:
        yield block


def _choice(line: str) -> Choice | None:
    """Parse one choice; None for any other line, and for a choice that could not run (0 % of the best)."""
    match = CHOICE.search(line)
    if match is None or float(match["percent"]) == 0:
        return None
    return Choice(match["name"], 100 / float(match["percent"]))


def _tuned(operation: str, sizes: str, choices: list[Choice]) -> Tuned:
    best, *others = sorted(choices, key=lambda choice: choice.ratio)
    library = next((choice for choice in (best, *others) if LIBRARY.fullmatch(choice.name)), None)
    return Tuned(
        operation=operation,
        sizes=sizes,
        choices=len(choices),
        best=best.name,
        second=others[0].name if others else None,
        second_ratio=others[0].ratio / best.ratio if others else None,
        library=library.name if library else None,
        library_ratio=library.ratio / best.ratio if library else None,
    )
