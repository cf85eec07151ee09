"""Quantiles of Student's t distribution."""

from __future__ import annotations

import math
from functools import lru_cache


@lru_cache(maxsize=256)
def student(confidence: float, degrees: int) -> float:
    """The t that Student's |t| stays below with this probability: bisection of the finite series.

    `degrees`: a whole number of degrees of freedom, at least 1.
    """
    low, high = 0.0, 1.0
    while _student_within(high, degrees) < confidence:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        if _student_within(middle, degrees) < confidence:
            low = middle
        else:
            high = middle
    return high


def _student_within(t: float, degrees: int) -> float:
    """P(|T| < t) for a whole number of degrees of freedom (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    angle = math.atan2(t, math.sqrt(degrees))
    cos2 = math.cos(angle) ** 2
    odd = degrees % 2
    term = math.cos(angle) if odd else 1.0
    total = term if degrees > 1 else 0.0
    for k in range(2 + odd, degrees - 1, 2):
        term *= cos2 * (k - 1) / k
        total += term
    return 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
