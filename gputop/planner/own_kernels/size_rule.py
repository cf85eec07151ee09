"""A size that a record writes as arithmetic of others: `columns / 64`. It is read, and never runs as code."""

from __future__ import annotations

import ast
import difflib
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from gputop.util.errors import UsageError

LONGEST = 200
"""Characters of a rule: enough for a sum of a few products, too few to nest deeply."""
LARGEST = 2**31 - 1
"""Of a number in a rule, and of what it gives: CUDA's sizes and ours are of 32 bits."""

OPERATIONS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda x, y: -(-x // y),
}
"""`/` rounds up, since a grid has to cover what is left over."""


@dataclass(frozen=True, slots=True)
class SizeRule:
    """A checked rule."""

    text: str
    tree: ast.expr

    def value(self, sizes: Mapping[str, int]) -> int:
        """Return what the rule gives for these sizes. Raise UsageError if that is below 1, or too large."""
        try:
            found = _value(self.tree, sizes)
        except ZeroDivisionError:
            raise UsageError(f"{self.text!r} divides by zero") from None
        if not 1 <= found <= LARGEST:
            raise UsageError(f"{self.text!r} gives {found}, and a size is from 1 to {LARGEST}")
        return found


def parse_rule(text: str | int, names: Collection[str]) -> SizeRule:
    """Return the rule that a text or a number is. Raise UsageError, half a sentence, if it is none.

    `names`: the sizes that it may use.
    """
    text = str(text)
    if len(text) > LONGEST:
        raise UsageError(f"it has {len(text)} characters, and a rule has at most {LONGEST}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UsageError(f"{text!r} is no arithmetic, such as 'columns / 64'") from None
    _check(tree, text, names)
    return SizeRule(text, tree)


def _check(tree: ast.expr, text: str, names: Collection[str]) -> None:
    """Raise UsageError for anything but names, whole numbers and the four operations."""
    match tree:
        case ast.BinOp(left, operation, right) if type(operation) in OPERATIONS:
            _check(left, text, names)
            _check(right, text, names)
        case ast.Constant(value) if type(value) is int and value <= LARGEST:
            return
        case ast.Name(name) if name in names:
            return
        case ast.Name(name):
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"{text!r} uses {name!r}.{hint} A rule may use {', '.join(names)}")
        case _:
            raise UsageError(f"{text!r} has something else than names, whole numbers and + - * / ( )")


def _value(tree: ast.expr, sizes: Mapping[str, int]) -> int:
    match tree:
        case ast.BinOp(left, operation, right):
            return OPERATIONS[type(operation)](_value(left, sizes), _value(right, sizes))
        case ast.Name(name):
            return sizes[name]
        case ast.Constant(value) if isinstance(value, int):
            return value
    raise AssertionError("checked when it was parsed")
