"""How good predicted intervals were: an interval score, and that of a guess which is always the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from gputop.results.ladder import LadderEntry

MISSED_SHARE = 0.2
"""alpha: the share of truths that a predicted interval may miss. The predictions do not say their own; with
this one an interval is worth its width if it holds four times of five."""
CONSTANT_GUESS = (1.0, 2.0)
"""Any change helps, and at most doubles the speed: what can be said without looking."""


@dataclass(frozen=True, slots=True)
class PredictionScores:
    """Mean interval scores over the same rungs, in log ratios; less is better."""

    rungs: int
    first: float
    """Of what was first predicted of each."""
    constant: float
    """Of `CONSTANT_GUESS` for each."""


def interval_score(lo: float, hi: float, measured: float) -> float:
    """Return an interval's width plus 2 / alpha times what it missed the measured ratio by, in logarithms.

    Gneiting and Raftery 2007, Journal of the American Statistical Association 102, eq. 43. All are positive.
    """
    low, high, truth = math.log(lo), math.log(hi), math.log(measured)
    return high - low + 2 / MISSED_SHARE * (max(low - truth, 0.0) + max(truth - high, 0.0))


def prediction_scores(entries: Sequence[LadderEntry]) -> PredictionScores | None:
    """Score every rung with a prediction and a measured ratio; None if there is none."""
    first, constant = [], []
    for entry in entries:
        of = entry.foretold
        lo, hi = (of.lo, of.hi) if of else (entry.predicted_lo, entry.predicted_hi)
        if lo is not None and hi is not None and entry.ratio_before:
            first.append(interval_score(lo, hi, entry.ratio_before))
            constant.append(interval_score(*CONSTANT_GUESS, entry.ratio_before))
    return PredictionScores(len(first), fmean(first), fmean(constant)) if first else None


def score_words(entries: Sequence[LadderEntry]) -> str:
    """Return both scores in a sentence; nothing without a prediction."""
    found = prediction_scores(entries)
    if found is None:
        return ""
    lo, hi = CONSTANT_GUESS
    return (
        f"interval score of {found.rungs} first predictions (width and misses, less is better): "
        f"{found.first:.2f}, against {found.constant:.2f} for [{lo:.2f}, {hi:.2f}] always"
    )
