"""Port 2: how a result is scored, and when the search may stop.

The score is an efficiency: the least that a site's launches can take (their reach, or the floor where that
is not known) over what they take. It can be compared between sites and devices, and it ends at 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gputop.search.menu import Menu
from gputop.util import units

Rule = Literal["efficiency", "no expected gain", "budget", "menu"]
"""What stopped a search. `menu`: everything on it is measured or struck."""


@dataclass(frozen=True, slots=True)
class StopRules:
    """When to stop. Whichever holds first, in this order."""

    efficiency: float = 0.95
    """Of the pass: its bound over its time."""
    least_gain: float = 0.002
    """Of the pass: what the best experiment is expected to gain."""
    budget: int = 40
    """Paired measurements."""


@dataclass(frozen=True, slots=True)
class Score:
    """How near the incumbent table is to what its sites can reach; None is unknown."""

    sites: Mapping[str, float | None]
    whole: float | None
    bound_s: float | None
    time_s: float | None


@dataclass(frozen=True, slots=True)
class Stopped:
    """Which rule stopped a search, in a sentence."""

    rule: Rule
    why: str


def score(menu: Menu, times_s: Mapping[str, float]) -> Score:
    """Return the efficiencies of a table whose sites take `times_s`; a site that was never timed has none."""
    bounds = {site.site: site.bound_s for site in menu.sites}
    sites = {name: _over(bounds[name], times_s.get(name)) for name in bounds}
    timed = [(bounds[name], times_s[name]) for name in bounds if name in times_s]
    known = [bound for bound, _ in timed if bound is not None]
    bound_s = sum(known) if timed and len(known) == len(timed) else None
    time_s = sum(time for _, time in timed) if timed else None
    return Score(sites, _over(bound_s, time_s), bound_s, time_s)


def stopped(
    rules: StopRules, found: Score, *, measured: int, left: int, gain_s: float | None
) -> Stopped | None:
    """Return the rule that holds, or None if the search goes on.

    `left`: candidates neither measured nor struck. `gain_s`: what the best experiment is expected to save of
    the pass, minus infinity if all that is left is pruned; None if nothing was timed yet.
    """
    if left == 0:
        return Stopped("menu", "every candidate is measured or struck")
    if found.whole is not None and found.whole >= rules.efficiency:
        have, want = units.percent(found.whole), units.percent(rules.efficiency)
        return Stopped(
            "efficiency", f"the sites take {have} of what they can reach, and {want} was asked for"
        )
    if gain_s is not None and gain_s == -math.inf:
        return Stopped("no expected gain", "every candidate left is slower even at its best forecast")
    if gain_s is not None and found.time_s and gain_s < rules.least_gain * found.time_s:
        most, least = units.percent(gain_s / found.time_s), units.percent(rules.least_gain)
        return Stopped(
            "no expected gain",
            f"the best experiment left is expected to gain {most} of the pass, below {least}",
        )
    if measured >= rules.budget:
        return Stopped("budget", f"{measured} paired measurements were to be made, and are")
    return None


def _over(bound_s: float | None, time_s: float | None) -> float | None:
    return None if bound_s is None or not time_s else bound_s / time_s
