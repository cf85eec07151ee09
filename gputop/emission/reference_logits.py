"""The logits that an emitted program is held against."""

from __future__ import annotations

from collections.abc import Iterator

from gputop.plan.types import Workload
from gputop.validation.reference import references

MOST_LOGITS = 256
"""A file carries at most this many of a row: the relative error over them says the same as over all."""
PER_LINE = 8


def expected_logits(workload: Workload) -> tuple[float, ...]:
    """The first logits, in float64, of the last token of the gate's first token set."""
    (logits,) = references(workload, ((0, 1),))
    return tuple(float(value) for value in logits[0, :MOST_LOGITS])


def how_many(workload: Workload) -> str:
    """Return how many logits of the row the program carries: `all 256 of them`."""
    count, vocab = len(expected_logits(workload)), workload.dims.vocab
    return f"all {count} of them" if count == vocab else f"the first {count} of {vocab}"


def declaration(workload: Workload, qualifiers: str) -> Iterator[str]:
    """The logits as a constant array. `qualifiers`: `constexpr` in C++, `static const` in C."""
    values = [f"{value:.9g}" for value in expected_logits(workload)]
    yield "// Logits of the last token, by a pass in float64."
    yield f"enum {{ REFERENCE_LOGITS = {len(values)} }};"
    yield f"{qualifiers} double REFERENCE[REFERENCE_LOGITS] = {{"
    for first in range(0, len(values), PER_LINE):
        yield f"    {', '.join(values[first : first + PER_LINE])},"
    yield "};"
