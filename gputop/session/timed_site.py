"""A site's model held against its time: the columns that follow from both, and what binds a pass."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from gputop.perf import roofline
from gputop.perf.roofline import Binding, Left, SiteTerms
from gputop.perf.roofline.peaks import total
from gputop.plan.types import Math
from gputop.results.records import Row
from gputop.session.cost_model import SiteModel


@dataclass(frozen=True, slots=True)
class TimedSite:
    """All instances of a site in one pass, in seconds. None is unknown."""

    model: SiteModel
    time_s: float | None
    """Without the gaps before its launches, if the timer sees them."""
    gap_s: float | None
    overlap_s: float | None
    """Beside the launch before, no part of `time_s`."""

    @property
    def terms(self) -> SiteTerms:
        """As the time is held against them."""
        return self.model.terms.measured_beside(self.gap_s, self.overlap_s)

    @property
    def left(self) -> Left:
        """The time from the floor upward."""
        return roofline.what_is_left(self.model.floor.value_s, self.terms, self.time_s)


def model_columns(timed: TimedSite, math: Math, *, has_ceilings: bool) -> dict[str, Any]:
    """Columns of a row by name. Without any ceilings nothing is asked of what binds yet."""
    model, terms = timed.model, timed.terms
    once = roofline.touched_bytes(model.work, math)
    shown = binding_columns(roofline.binding(terms.shares(), timed.time_s), has_ceilings=has_ceilings)
    return {
        **{f"{name.replace(' ', '_')}_s": terms.seconds(name) for name in roofline.TERMS},
        **shown,
        "shape_factor": terms.shape_factor,
        "unexplained_s": timed.left.get("unexplained"),
        "modelled_s": terms.modelled_s,
        "reach_s": model.reach_s,
        "reach_efficiency": reach_efficiency(model.reach_s, timed.time_s, timed.gap_s),
        "l2_bytes": model.l2_bytes,
        "moved_over_compulsory": None if model.l2_bytes is None or not once else model.l2_bytes / once,
    }


def binding_columns(binding: Binding, *, has_ceilings: bool) -> dict[str, Any]:
    """What binds, for a row; nothing of it without ceilings."""
    if not has_ceilings:
        return {"binds": None, "binds_share": None, "runner_up": None}
    return {"binds": binding.binds, "binds_share": binding.share, "runner_up": binding.runner_up}


def reach_efficiency(reach_s: float | None, time_s: float | None, gap_s: float | None) -> float | None:
    """Reach over the time with its gaps, which reach holds too."""
    return reach_s / (time_s + (gap_s or 0.0)) if reach_s is not None and time_s else None


def modelled_pass_s(sites: Iterable[Row]) -> float | None:
    """What the sites are modelled at with the gaps before their launches; None where one is unknown."""
    rows = list(sites)
    modelled_s = total(row.modelled_s for row in rows) if rows else None
    return None if modelled_s is None else modelled_s + sum(row.gap_s or 0.0 for row in rows)


def pass_binding(sites: Iterable[TimedSite], device_s: float | None) -> Binding:
    """What binds the pass: each term's seconds at all sites that were timed, the gaps counted as launches."""
    shares: dict[str, float] = defaultdict(float)
    for timed in sites:
        if timed.time_s is None:
            continue
        shares["launch"] += timed.gap_s or 0.0
        for name, seconds in timed.terms.shares().items():
            shares[name] += seconds
    return roofline.binding(shares, device_s)


def residual(sites: Iterable[TimedSite]) -> float | None:
    """Mean of |sum of terms - time| / time over the sites, weighted by time, gaps included.

    Explaining too much counts as much as too little. None if no site was timed.
    """
    whole_s = off_s = 0.0
    for timed in sites:
        if timed.time_s is not None:
            # The model of a launch holds the gap before it, so that the gap is no part of what is off.
            whole_s += timed.time_s + (timed.gap_s or 0.0)
            off_s += abs((timed.terms.modelled_s or 0.0) - timed.time_s)
    return off_s / whole_s if whole_s else None


def shape_tax(sites: Iterable[TimedSite]) -> float | None:
    """Time of the sites / the same without what `what_is_left` calls shape, where that is known of any."""
    whole_s, shape_s = 0.0, []
    for timed in sites:
        if timed.time_s is None:
            continue
        whole_s += timed.time_s
        part_s = timed.left.get("shape")
        # The model may be above the time: more than all of it can't be shape.
        shape_s += [] if part_s is None else [min(part_s, timed.time_s)]
    rest_s = whole_s - sum(shape_s)
    return whole_s / rest_s if shape_s and rest_s > 0 else None
