"""A change of a measured plan that nobody has made: what was asked, what the model answers, and its words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from gputop.perf.block_shape import BlockShape
from gputop.perf.roofline import batched_s
from gputop.plan.types import KernelChoice, PlanRequest
from gputop.util.errors import UsageError
from gputop.util.units import UNKNOWN, percent, ratio, seconds

FROM_MODEL = "≈"
"""Stands before every time that the model gives."""


@dataclass(frozen=True, slots=True)
class WhatIfAsked:
    """A recorded plan and what is changed about it."""

    plan: PlanRequest
    sets: tuple[tuple[str, str], ...] = ()
    """Toggles with their values, a batch and a math among them."""
    uses: tuple[tuple[str, KernelChoice], ...] = ()
    seq: int | None = None
    """Tokens of a sequence; None: as recorded."""
    device_model: str | None = None
    """Another card, by its data sheet; None: the recorded one."""

    @property
    def changes_pass(self) -> bool:
        """Whether anything is asked that the model prices; the shape of a launch alone is not."""
        return bool(self.sets or self.uses or self.seq or self.device_model)


@dataclass(frozen=True, slots=True)
class SiteChange:
    """One site before a change and after it, times of all its instances in a pass."""

    site: str
    kernels: tuple[str, str]
    """Before and after, as all pairs here."""
    measured_s: float | None
    floor_s: tuple[float | None, float | None]
    model_s: tuple[float | None, float | None]
    is_comparable: bool
    """Whether the model knows the same of both devices: a data sheet has no latency and no launch."""
    shape: tuple[BlockShape | None, BlockShape | None]

    @property
    def model_share(self) -> float | None:
        """What the model explains of the measured time: 1 would be all of it."""
        before_s = self.model_s[0]
        return before_s / self.measured_s if before_s is not None and self.measured_s else None

    @property
    def forecast_s(self) -> tuple[float, float] | None:
        """The least and the most that the changed site may take; None where the model does not know.

        What the model misses of the measured time either stays as it is or changes along with the rest.
        """
        before_s, after_s = self.model_s
        if not self.is_comparable or not self.measured_s or not before_s or after_s is None:
            return None
        stays_s = batched_s(self.measured_s, before_s, after_s)
        along_s = self.measured_s * after_s / before_s
        return min(stays_s, along_s), max(stays_s, along_s)


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A measured plan beside a changed one."""

    plan: tuple[str, str]
    device: tuple[str, str]
    source: str
    """Where the changed device's figures come from, if it is another one."""
    sites: tuple[SiteChange, ...]
    pass_model_s: tuple[float | None, float | None]
    measured_s: float | None
    """Of the whole pass on the device."""
    tokens: tuple[int, int]
    """Of one pass."""

    @property
    def is_shape_alone(self) -> bool:
        """Whether plan, sizes and device stay: then no term of the model changes."""
        return all(pair[0] == pair[1] for pair in (self.plan, self.device, self.tokens))

    def site(self, name: str) -> SiteChange:
        """Raise UsageError for a site that one of the two does not have."""
        found = next((site for site in self.sites if site.site == name), None)
        if found is None:
            there = ", ".join(site.site for site in self.sites)
            raise UsageError(f"Site {name!r} is not in both plans. In both are: {there}.")
        return found


def time_rows(found: WhatIf, site: SiteChange) -> Iterator[tuple[str, str, str]]:
    """Yield (title, now, what-if) for each time of a site in one pass."""
    yield "measured", seconds(site.measured_s), UNKNOWN
    yield "floor", seconds(site.floor_s[0]), seconds(site.floor_s[1])
    yield "model", _modelled(site.model_s[0]), _modelled(site.model_s[1])
    yield "model, whole pass", _modelled(found.pass_model_s[0]), _modelled(found.pass_model_s[1])
    if site.forecast_s is not None:
        low, high = map(seconds, site.forecast_s)
        yield "forecast", "", f"{FROM_MODEL} {low}" if low == high else f"{FROM_MODEL} {low} to {high}"


def time_notes(found: WhatIf, site: SiteChange) -> Iterator[str]:
    """Yield the sentences below the times: what they are worth, or why there is no forecast."""
    if not site.is_comparable:
        yield "no forecast: beside a data sheet's rates the model lacks latencies, launches and L2"
        return
    forecast = site.forecast_s
    if forecast is None or site.model_share is None:
        yield "no forecast: the model does not know one of the two"
        return
    explained = percent(site.model_share)
    yield f"the model explains {explained} of the measured time; the rest may stay, or change along"
    if site.kernels[0] != site.kernels[1]:
        yield f"{site.kernels[1]} computes it there: how far the model is off for that kernel is not known"
    more = found.tokens[1] / found.tokens[0]
    ends = (ratio(more * (site.measured_s or 0.0) / time_s) for time_s in reversed(forecast))
    yield f"gain a token {FROM_MODEL} {' to '.join(dict.fromkeys(ends))}: measure it before you believe it"


def _modelled(time_s: float | None) -> str:
    return f"{FROM_MODEL} {seconds(time_s)}"


def whatif_record(found: WhatIf, site: SiteChange) -> dict[str, object]:
    """Return one site of a change as raw SI values for JSON; None is unknown. Pairs are before and after."""
    return {
        "plan": found.plan,
        "device": found.device,
        "device_source": found.source or None,
        "site": site.site,
        "kernel": site.kernels,
        "measured_s": site.measured_s,
        "floor_s": site.floor_s,
        "model_s": site.model_s,
        "model_share": site.model_share,
        "forecast_s": site.forecast_s,
        "pass_measured_s": found.measured_s,
        "pass_model_s": found.pass_model_s,
        "shape": [asdict(shape) if shape else None for shape in site.shape],
    }
