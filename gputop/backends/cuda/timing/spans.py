"""When kernels of a recorded pass began and ended, and what that says of its steps.

Kernels of ours are matched to launches by order alone: a pass is one stream, and what each step launches is
counted beforehand. A name says nothing there, since a library call may be several kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

NS = 1e-9


@dataclass(frozen=True, slots=True)
class Span:
    """One kernel's begin and end, ns of one clock, and its name as the driver gives it."""

    start: int
    end: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Seconds of one step's kernels: alone, before them with nothing running, and beside the one before."""

    time_s: float
    gap_s: float
    overlap_s: float


def split(spans: Sequence[Span], counts: Sequence[int]) -> list[StepTimes]:
    """Times of each step, whose kernels are the next `counts[i]` of `spans` in order of begin.

    A kernel's time is end - max(start, end before it); the gap is what passes between the two where
    they do not touch, the overlap what they share where they do. The first has neither.
    """
    ordered = sorted(spans, key=lambda span: span.start)
    found: list[StepTimes] = []
    before = ordered[0].start if ordered else 0
    at = 0
    for count in counts:
        time = gap = overlap = 0
        for span in ordered[at : at + count]:
            gap += max(0, span.start - before)
            overlap += max(0, min(before, span.end) - span.start)
            time += max(0, span.end - max(span.start, before))
            before = max(before, span.end)
        at += count
        found.append(StepTimes(time * NS, gap * NS, overlap * NS))
    return found


def step_and_spread_s(spans: Sequence[Span]) -> float:
    """Return the step of the clock that timed one kernel many times, and the spread of the lengths in
    seconds.

    All readings are whole numbers of steps apart. The spread is the distance from the median within which
    19 of 20 lengths lie."""
    import numpy as np

    stamps = np.array([(span.start, span.end) for span in spans])
    lengths = stamps[:, 1] - stamps[:, 0]
    step = np.gcd.reduce(np.diff(stamps.ravel()))
    return float(step + np.quantile(abs(lengths - np.median(lengths)), 0.95)) * NS
