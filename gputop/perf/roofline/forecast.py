"""What a change would gain, from the terms before and after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from math import fsum

from gputop.perf.roofline.launch_terms import LaunchTerms
from gputop.perf.roofline.site_terms import SiteTerms


@dataclass(frozen=True, slots=True)
class Forecast:
    """The gain a change should bring; a loss has a negative saving."""

    saved_s: float
    after_s: float
    gain: float | None
    """Time before over time after; None where nothing would be left."""


def forecast(before: SiteTerms, after: Sequence[SiteTerms], time_s: float | None) -> Forecast | None:
    """The model's fall when `before` becomes `after`, sites one after the other, taken off the measured
    time.

    `time_s` holds the gaps, as the terms do. Where the model is above it, the fall is scaled down with it.
    What is unknown of the first launch on one side is taken as unchanged. None where no term or no time is
    known.
    """
    if not after or any(site.modelled_s is None for site in after):
        return None
    was = _filled(before, after[0])
    model_before_s = was.modelled_s
    model_after_s = fsum(_filled(site, before).modelled_s or 0.0 for site in after)
    if time_s is None or not model_before_s:
        return None
    saved_s = (model_before_s - model_after_s) * min(1.0, time_s / model_before_s)
    after_s = time_s - saved_s
    return Forecast(saved_s, after_s, time_s / after_s if after_s > 0 else None)


def batched_s(time_s: float, model_s: float, batched_model_s: float) -> float:
    """A pass of a larger batch, from one that was measured and the model of both: all of seconds of a pass.

    What the model does not account for is taken to be paid once a pass, whatever its batch. Where the model
    is above the time, it is scaled down to it.
    """
    scale = min(1.0, time_s / model_s) if model_s else 1.0
    return batched_model_s * scale + max(0.0, time_s - model_s)


def _filled(site: SiteTerms, other: SiteTerms) -> SiteTerms:
    """`site` with what its first launch does not know filled in from the other's."""
    if not site.launches or not other.launches:
        return site
    mine, theirs = site.launches[0], other.launches[0]
    unknown = [field.name for field in fields(LaunchTerms) if getattr(mine, field.name) is None]
    known = replace(mine, **{name: getattr(theirs, name) for name in unknown})
    return replace(site, launches=(known, *site.launches[1:]))
