"""What the interval of a paired ratio says against what copies of one plan differ by. Needs no NumPy."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gputop.plan.types import Verdict
from gputop.util.interval import Interval

CONFIDENCE = 0.99
MIN_FLOOR = 0.003
"""No A/A floor is below this |log ratio|, however quiet the copies were."""
WIDEST_SAME = 0.1
"""|log ratio|: where copies of one plan differ by more, two plans within that are not known to be alike."""
MIN_ROUNDS_TO_STOP = 12
"""A spread estimated from fewer rounds is too often small by chance to stop a window on, or to call two plans
the same."""
COPIES_KNOWN = 0.005
"""Half width of a log ratio: copies whose difference is known no better say nothing of how alike two plans
are. At least half the backend's own minimum."""
_WIDEST_PERCENT = 0.5
"""Half width up to which log ratios read as percentages: exp(0.5) is 1.6."""
LARGEST_EXPONENT = 700.0
"""exp and sinh of more do not fit a float: such a ratio is unknown."""


@dataclass(frozen=True, slots=True)
class Paired:
    """The effect log(time_a / time_b) of two lanes in one window; positive: b is faster."""

    effect: float | None
    """None where no time can be compared at all."""
    lo: float
    hi: float
    """Ends of the interval; infinite where it can't be known."""
    n: int
    """Rounds."""
    reason: str = ""
    """Why the interval is infinite, else empty."""

    @property
    def half_width(self) -> float:
        return (self.hi - self.lo) / 2

    @property
    def ratio(self) -> float | None:
        """time_a / time_b."""
        return None if self.effect is None else exp_or_none(self.effect)

    @property
    def ratio_interval(self) -> Interval:
        return Interval(self.ratio, self.ratio_lo, self.ratio_hi)

    @property
    def ratio_lo(self) -> float | None:
        return exp_or_none(self.lo)

    @property
    def ratio_hi(self) -> float | None:
        return exp_or_none(self.hi)


@dataclass(frozen=True, slots=True)
class Floor:
    """What independently prepared copies of one plan differ by, as |log ratio|."""

    apart: float
    """FASTER and SLOWER lie beyond it. Noise of the copies makes it larger: the careful side."""
    same: float | None
    """SAME lies within it. Only of copies that this window knows well, so that noise can't widen it; None if
    there are none."""
    unknown: str = ""
    """Why `same` is None, as a clause."""


def copies_known(minimum: float) -> float:
    """The half width to which copies must be known before anything is called the same."""
    return max(COPIES_KNOWN, minimum / 2)


def verdict(result: Paired, floor: Floor) -> tuple[Verdict, str]:
    """What an interval says against the A/A floor, and for UNRESOLVED why (else an empty sentence).

    FASTER: b is faster than a by more than copies differ by, wherever in the interval the truth lies; SLOWER
    likewise. SAME: the whole interval lies within what copies are known to differ by in this window, which
    is no wider than `WIDEST_SAME`, and has at least `MIN_ROUNDS_TO_STOP` rounds.
    """
    if result.reason:
        return "UNRESOLVED", result.reason
    if result.lo > floor.apart:
        return "FASTER", ""
    if result.hi < -floor.apart:
        return "SLOWER", ""
    if result.lo < -floor.apart and result.hi > floor.apart:
        return "UNRESOLVED", f"spread too wide: {_spread(result.half_width)}"
    if not _within(result, floor.apart):
        return "UNRESOLVED", f"interval crosses the {floor_words(floor.apart)}"
    if floor.same is None:
        return "UNRESOLVED", floor.unknown
    if result.n < MIN_ROUNDS_TO_STOP:
        return "UNRESOLVED", f"too few rounds to be the same: {result.n} of at least {MIN_ROUNDS_TO_STOP}"
    if not _within(result, floor.same):
        return "UNRESOLVED", f"interval crosses the {floor_words(floor.same)} of this window"
    if floor.apart > WIDEST_SAME:
        return "UNRESOLVED", f"too restless to tell: within the {floor_words(floor.apart)}"
    return "SAME", ""


def _within(result: Paired, floor: float) -> bool:
    return -floor <= result.lo and result.hi <= floor


def floor_words(floor: float) -> str:
    """`A/A floor of 6.2 %`."""
    return f"A/A floor of {percent(floor)}"


def narrow_enough(result: Paired, floor: float) -> bool:
    """Whether a window may stop: the interval is half as wide as the band that SAME needs.

    Looks at the width only, never at the effect: who stops on significance finds it by looking often.
    """
    return result.n >= MIN_ROUNDS_TO_STOP and result.half_width <= max(floor, MIN_FLOOR) / 2


def _spread(half_width: float) -> str:
    """A half width of log ratios; beyond `_WIDEST_PERCENT` a percentage of them is none of the ratio."""
    if half_width <= _WIDEST_PERCENT:
        return f"+-{percent(half_width)}"
    factor = exp_or_none(half_width)
    return "a factor without end" if factor is None else f"a factor of {factor:.2g} either way"


def percent(share: float) -> str:
    """`6.2 %`."""
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"


def exp_or_none(exponent: float) -> float | None:
    """exp; None if it does not fit a float."""
    return math.exp(exponent) if abs(exponent) < LARGEST_EXPONENT else None
