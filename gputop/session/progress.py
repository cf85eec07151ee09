"""What a window says while it samples: the round, the ratio so far, and how long it may still take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, isfinite

from gputop.perf.verdicts import Paired
from gputop.util.units import ratio, ratio_within, seconds

SoFar = Callable[[], str]
"""What is known of a comparison under way; empty if nothing is."""


@dataclass(frozen=True, slots=True)
class RoundBudget:
    """When sampling ends at the latest: after the budget, but not before the least rounds."""

    budget_s: float
    least_rounds: int

    def rounds(self, done: int, spent_s: float) -> int | None:
        """Return how many rounds there will be at most, at the pace of those done; None before the first."""
        if not done or spent_s <= 0:
            return None
        return max(self.least_rounds, done + 1, int(self.budget_s * done / spent_s))

    def left_s(self, done: int, spent_s: float) -> float | None:
        """Return the most seconds to go; None before the first round."""
        rounds = self.rounds(done, spent_s)
        return None if rounds is None else (rounds - done) * spent_s / done


def round_words(budget: RoundBudget, done: int, spent_s: float, plan: str, so_far: str) -> str:
    """Return `round 5 of 16: graph, 1.05× [0.98, 1.12] so far, at most 18 s to go`, as far as it is known.

    `done` are the rounds before this one, in `spent_s`; `plan` is the one that is sampled now.
    """
    rounds, left_s = budget.rounds(done, spent_s), budget.left_s(done, spent_s)
    number = f"round {done + 1}" if rounds is None else f"round {done + 1} of {rounds}"
    parts = [f"{number}: {plan}"]
    if so_far:
        parts.append(f"{so_far} so far")
    if left_s is not None and left_s >= 1:
        parts.append(f"at most {seconds(ceil(left_s))} to go")
    return ", ".join(parts)


def ratio_so_far(found: Paired) -> str:
    """Return the ratio with its interval, as soon as there are rounds enough for one."""
    if found.ratio is None:
        return ""
    ends = (found.ratio_lo, found.ratio_hi)
    if any(end is None or not isfinite(end) for end in ends):
        return ratio(found.ratio)
    return ratio_within(found.ratio_interval)
