"""What an accepted cell is worth by itself: the found table beside the same without it, over windows.

A search finds directions; along many windows its claims add up what each pair happened to say. The size of
an effect is that of pairs made for it, and the claim is kept beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gputop.plan.types import KernelChoice
from gputop.results.meta_analysis import pool
from gputop.results.records import Comparison, Delta
from gputop.search.closing import claimed
from gputop.search.loop import Search


@dataclass(frozen=True, slots=True)
class Ablation:
    """One cell of the found table that is not the plan's own."""

    site: str
    kernel: KernelChoice
    own: KernelChoice
    claimed: float | None
    """The plan's own time / this one's, as the search says."""
    effect: Delta | None
    """At the site, over all windows; from the plan's own kernel to this one."""
    whole: Delta | None
    """Of the pass."""
    windows: int


def ablate(search: Search, windows: int) -> list[Ablation]:
    """Return the effect of each changed cell, from so many windows each."""
    return [_one(search, site, windows) for site in search.progress.changed]


def _one(search: Search, site: str, windows: int) -> Ablation:
    progress, kernel = search.progress, search.progress.table[site]
    lines = [line for _ in range(windows) for line in search.without(site)]
    effects = [cell.delta for line in lines for cell in line.cells]
    return Ablation(
        site=site,
        kernel=kernel,
        own=search.menu.start[site],
        claimed=claimed(progress, (site, kernel)),
        effect=_pooled(effects),
        whole=_pooled([line.whole for line in lines if line.whole is not None]),
        windows=len(lines),
    )


def _pooled(deltas: Sequence[Delta]) -> Delta | None:
    """One delta of several windows; None of none."""
    if not deltas:
        return None
    return pool([Comparison("without", "with", 1, (delta,)) for delta in deltas]).deltas[0]
