"""The launches of a site added up, and how a measured time reads against them: what binds, and what is
left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import fsum

from gputop.perf.roofline.launch_terms import RESOURCES, TERMS, LaunchTerms
from gputop.perf.roofline.peaks import total

EXPLAINS = 0.5
"""Share of a time that all terms together must reach before one is said to bind."""
SM_RESOURCES = frozenset({"l2", "l1", "issue", "compute"})
"""Resources of one SM, which padding and idle SMs make dearer."""


@dataclass(frozen=True, slots=True)
class SiteTerms:
    """All launches of one instance of a site, one after the other, and how many instances a pass has."""

    launches: tuple[LaunchTerms, ...] = ()
    count: int = 1
    shape_factor: float | None = None
    """Padding x idling of the launch that does the work: see `fit`."""
    padding: float | None = None

    def seconds(self, name: str) -> float | None:
        """What a term (`TERMS`) takes in one pass if nothing overlaps it; None if one launch's is unknown."""
        field = f"{name.replace(' ', '_')}_s"
        values: list[float | None] = [getattr(launch, field) for launch in self.launches]
        if name == "issue":
            # A warp that is alone may take longer for its instructions than they take to issue.
            values = [_longer(launch.issue_s, launch.alone_s) for launch in self.launches]
        one = total(values) if values else None
        return None if one is None else self.count * one

    def shares(self) -> dict[str, float]:
        """Seconds of one pass by term, as they add up to `modelled_s`."""
        found = dict.fromkeys(TERMS, 0.0)
        for launch in self.launches:
            for name, seconds in launch.shares().items():
                found[name] += self.count * seconds
        return {name: seconds for name, seconds in found.items() if seconds}

    @property
    def modelled_s(self) -> float | None:
        """The model's time of one pass; None where nothing is known of the site."""
        return fsum(self.shares().values()) if any(self.shares()) else None

    def measured_beside(self, gap_s: float | None, overlap_s: float | None) -> SiteTerms:
        """As `LaunchTerms.measured_beside`; gap and overlap are of a pass, shared out evenly."""
        launches = self.count * len(self.launches)
        if not launches:
            return self
        gap, overlap = (None if seconds is None else seconds / launches for seconds in (gap_s, overlap_s))
        return replace(self, launches=tuple(launch.measured_beside(gap, overlap) for launch in self.launches))


@dataclass(frozen=True, slots=True)
class Binding:
    """The term with the largest share of a time, and the one that comes next."""

    binds: str
    """One of `TERMS`, or `unknown` where all terms together do not reach half of the time."""
    share: float | None
    """Of the time; of the model's time where nothing was measured."""
    runner_up: str | None
    """The next; for `unknown` the largest."""


@dataclass(frozen=True, slots=True)
class Part:
    """A share of the measured time."""

    name: str
    """`floor`, `shape`, one of `TERMS`, or `unexplained`."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Left:
    """The measured time from the floor upward; the parts add up to it."""

    parts: tuple[Part, ...]
    note: str = ""
    """Says so when the model is above the time."""

    def get(self, name: str) -> float | None:
        """Seconds of a part, None where there is none."""
        return next((part.seconds for part in self.parts if part.name == name), None)


def binding(shares: Mapping[str, float], time_s: float | None) -> Binding:
    """The largest share binds; `unknown` only if more than half of the time is unexplained.

    `shares`: seconds by term as they add up, `measured_beside` the time's gaps.
    """
    ranked = sorted(shares, key=lambda name: -shares[name])
    modelled_s = fsum(shares.values())
    whole_s = modelled_s if time_s is None else time_s
    if not ranked or whole_s <= 0:
        return Binding("unknown", None, None)
    if modelled_s < EXPLAINS * whole_s:
        return Binding("unknown", 1.0 - modelled_s / whole_s, ranked[0])
    return Binding(ranked[0], shares[ranked[0]] / whole_s, ranked[1] if len(ranked) > 1 else None)


def what_is_left(floor_s: float | None, terms: SiteTerms, time_s: float | None) -> Left:
    """The time split from the floor upward: what the resource that decides takes beyond the floor, of it the
    part that padding and idle SMs make (`shape`), then every other term, and what no term explains.

    `unexplained` is negative where the model is above the time. Without a time there are no parts.
    """
    if time_s is None or terms.modelled_s is None:
        return Left(())
    shares = terms.shares()
    busy = {name: shares.get(name, 0.0) for name in RESOURCES}
    busy_s = fsum(busy.values())
    floor = min(floor_s or 0.0, time_s)
    beyond_s = max(0.0, busy_s - floor)
    factor = terms.shape_factor or 1.0
    on_sms_s = fsum(seconds for name, seconds in busy.items() if name in SM_RESOURCES)
    shape_s = min(beyond_s, on_sms_s * (1.0 - 1.0 / factor))
    parts = [Part("floor", floor), Part("shape", shape_s)]
    for name in TERMS:
        seconds = shares.get(name, 0.0)
        if name in RESOURCES:
            seconds = (beyond_s - shape_s) * seconds / busy_s if busy_s else 0.0
        parts.append(Part(name, seconds))
    unexplained_s = time_s - fsum(part.seconds for part in parts)
    parts.append(Part("unexplained", unexplained_s))
    over_s = terms.modelled_s - time_s
    note = f"modelled at {terms.modelled_s / time_s:.2f} times what was measured" if time_s > 0 else ""
    return Left(tuple(parts), note if over_s > OVER_NOTED * time_s else "")


OVER_NOTED = 0.05
"""A model that is above the time by more than this share is noted."""


def _longer(first: float | None, second: float | None) -> float | None:
    known = [seconds for seconds in (first, second) if seconds is not None]
    return max(known, default=None)
