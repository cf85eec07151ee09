"""What a change of plan should save, group by group of sites that do the same phases before and after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gputop.perf import roofline
from gputop.results.records import Row
from gputop.session.cost_model import SiteModel


@dataclass(frozen=True, slots=True)
class Saving:
    """The forecast for some sites of the plan before the change."""

    sites: tuple[str, ...]
    saved_s: float
    """Of a pass, all their instances, with the gaps before them. Negative if the change costs time."""


def savings(
    rows: Iterable[Row], before: Iterable[SiteModel], after: Iterable[SiteModel]
) -> tuple[Saving, ...]:
    """Return what the model saves of the rows' measured times, less the groups that it does not know.

    Sites are taken together as far as they share phases: a pruned layer moves work from `w1` to `w1@1`, and a
    fused kernel from `ln2` and `w1` to `ln2+w1`.
    """
    timed_s = {row.phase: row.time_s + (row.gap_s or 0.0) for row in rows if row.time_s}
    found = []
    for old, new in _groups(tuple(before), tuple(after)):
        time_s = sum(timed_s.get(model.name, 0.0) for model in old)
        saved_s = roofline.saved_s([model.terms for model in old], [model.terms for model in new], time_s)
        if time_s and saved_s is not None:
            found.append(Saving(tuple(model.name for model in old), saved_s))
    return tuple(found)


def pass_s(rows: Iterable[Row]) -> float | None:
    """Return the measured time of the pass on the device; None if it was not timed."""
    return next((row.time_s for row in rows if row.phase == "device"), None)


Group = tuple[tuple[SiteModel, ...], tuple[SiteModel, ...]]


def _groups(before: tuple[SiteModel, ...], after: tuple[SiteModel, ...]) -> Iterator[Group]:
    """Yield (sites before, sites after) that do the same phases, as small as can be."""
    phases: list[set[str]] = []
    for model in (*before, *after):
        touched = [group for group in phases if group & set(model.phases)]
        phases = [group for group in phases if group not in touched]
        phases.append(set(model.phases).union(*touched))
    for group in phases:
        yield (
            tuple(model for model in before if group & set(model.phases)),
            tuple(model for model in after if group & set(model.phases)),
        )
