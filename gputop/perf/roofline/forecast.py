"""What a change would save, from the terms before and after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from math import fsum

from gputop.perf.roofline.launch_terms import LaunchTerms
from gputop.perf.roofline.site_terms import SiteTerms


def saved_s(before: Sequence[SiteTerms], after: Sequence[SiteTerms], time_s: float | None) -> float | None:
    """Return the seconds that a pass should save if the sites `after` do what the sites `before` did.

    That is the model's fall, sites one after the other. `time_s` is the measured time of those before with
    their gaps, which the terms hold too. If the model is above it, the fall is scaled down with it. What is
    unknown of the first launch on one side is taken as unchanged. None if no term or no time is known.
    """
    if not before or any(site.modelled_s is None for site in (*before, *after)):
        return None
    was_s = fsum(_filled(site, after[0] if after else site).modelled_s or 0.0 for site in before)
    will_be_s = fsum(_filled(site, before[0]).modelled_s or 0.0 for site in after)
    if time_s is None or not was_s:
        return None
    return (was_s - will_be_s) * min(1.0, time_s / was_s)


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
