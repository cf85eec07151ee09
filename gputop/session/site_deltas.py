"""A comparison told row by row: each site's own delta, or its phases' where only those can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gputop.results.records import Comparison, Delta
from gputop.session.cost_model import SiteModel


@dataclass(frozen=True, slots=True)
class SiteDelta:
    """The comparison as far as one site's row can tell it."""

    delta: Delta | None
    note: str = ""
    """Of which sites it is, where it is not of the row's own."""


def site_deltas(sites: Sequence[SiteModel], comparison: Comparison | None) -> dict[str, SiteDelta]:
    """Map each site to its own delta if both plans do its phases' work at the same sites.

    If one plan does part of it elsewhere (at another site, in a fused kernel), a site of one name does not
    do the same work in both. The first of the phases' sites then carries the delta of the phases.
    """
    found = {model.name: SiteDelta(None) for model in sites}
    if comparison is None:
        return found
    for phases in comparison.deltas:
        names = set(phases.phase.split("+"))
        here = [model.name for model in sites if names & set(model.phases)]
        own = {name: delta for name in here if (delta := comparison.at(name)) is not None}
        if len(own) == len(here) and _make_up(own.values(), phases):
            found |= {name: SiteDelta(delta) for name, delta in own.items()}
        elif here:
            found |= {name: SiteDelta(None, f"its delta is in the row of {here[0]}") for name in here[1:]}
            note = f"delta of {' and '.join(here)} here against all of {phases.phase} there"
            found[here[0]] = SiteDelta(phases, note)
    return found


def _make_up(own: Iterable[Delta], phases: Delta) -> bool:
    """Return whether the sites that both plans have are all that the pinned one has of these phases.

    The median of a sum is not the sum of the medians: they may differ by what copies of a plan do.
    """
    return sum(delta.a_s or 0.0 for delta in own) >= (phases.a_s or 0.0) * (1 - phases.aa_floor)
