"""The end of a search: finalists paired again, then the closing check, which may convict what it found.

Selection goes along many windows. The closing check pairs the found table with the plan's own in one window:
what it does not confirm as faster goes back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gputop.plan.types import KernelChoice
from gputop.results.records import Delta
from gputop.search.journal import Measured, Returned
from gputop.search.loop import Search
from gputop.search.menu import Cell
from gputop.search.progress import Progress
from gputop.util import units

TIE = 0.02
"""|log ratio| up to which two measured kernels of one site are finalists: windows differ by less."""
MOST_ROUNDS = 3
"""Of finals, and of closing checks: each check but the last may send cells back."""

Standing = Literal["confirmed", "not confirmed", "tie", "slower", "gone"]


@dataclass(frozen=True, slots=True)
class Claim:
    """What the search says of a cell that it changed, beside what the closing check says."""

    site: str
    kernel: KernelChoice
    own: KernelChoice
    claimed: float | None
    """The plan's own time / this one's, along the pairs of the search."""
    delta: Delta | None
    """From the plan's own to this one, in the closing window."""
    standing: Standing

    @property
    def convicted(self) -> bool:
        return self.standing in ("tie", "slower", "gone")


@dataclass(frozen=True, slots=True)
class Closing:
    """One closing check."""

    claims: tuple[Claim, ...]
    whole: Delta | None
    """Of the pass, from the plan's own table to the found one."""
    claimed_saved_s: float | None
    """The savings of all cells added up, as the search claims them."""
    window: int | None

    @property
    def convicted(self) -> tuple[Claim, ...]:
        return tuple(claim for claim in self.claims if claim.convicted)


def finalists(progress: Progress) -> dict[str, KernelChoice]:
    """Return, of each site that has one, the best measured kernel that may be as fast as the incumbent."""
    found: dict[str, tuple[float, KernelChoice]] = {}
    for (site, choice), effect in progress.log_ratio.items():
        incumbent = progress.table[site]
        if choice == incumbent or (site, choice) in progress.struck:
            continue
        if effect <= progress.log_ratio[site, incumbent] + TIE:
            found[site] = min(found.get(site, (math.inf, choice)), (effect, choice), key=lambda pair: pair[0])
    return {site: choice for site, (_, choice) in found.items()}


def pair_finalists(search: Search) -> list[Measured]:
    """Pair every site's finalist with its incumbent again, all in one window; in another one those that this
    does not decide. A tie is the incumbent's, and so is what no window decides."""
    windows: list[Measured] = []
    chosen = finalists(search.progress)
    for _ in range(MOST_ROUNDS):
        if not chosen:
            break
        found = search.pair("finals", chosen)
        windows += found
        undecided = {
            cell.site: cell.kernel
            for window in found
            for cell in window.cells
            if cell.delta.verdict == "UNRESOLVED"
        }
        now = finalists(search.progress)
        chosen = {site: choice for site, choice in undecided.items() if now.get(site) == choice}
    return windows


def closing_check(search: Search) -> list[Closing]:
    """Pair the found table with the plan's own until no cell is convicted; convicted cells go back.

    Return the checks in order, none if nothing was changed.
    """
    checks: list[Closing] = []
    while search.progress.changed and len(checks) < MOST_ROUNDS:
        check = _check(search)
        checks.append(check)
        for claim in check.convicted:
            why = _why(claim)
            search.add(Returned(site=claim.site, kernel=claim.kernel, own=claim.own, why=why))
        if not check.convicted:
            break
    return checks


def claimed(progress: Progress, cell: Cell) -> float | None:
    """Return the ratio that the search claims of a cell, to the plan's own kernel there."""
    effect = progress.log_ratio.get(cell)
    return None if effect is None else math.exp(-effect)


def _check(search: Search) -> Closing:
    progress = search.progress
    changed, own = dict(progress.changed), search.menu.start
    windows = search.against_start(changed)
    deltas = {cell.site: cell.delta for window in windows for cell in window.cells}
    claims = tuple(
        Claim(
            site=site,
            kernel=choice,
            own=own[site],
            claimed=claimed(progress, (site, choice)),
            delta=deltas.get(site),
            standing=_standing(deltas.get(site)),
        )
        for site, choice in changed.items()
    )
    # Halves of a table that failed as a whole say nothing of the pass.
    one = windows[0] if len(windows) == 1 else None
    saved_s = _saved_s(progress, changed)
    return Closing(claims, one.whole if one else None, saved_s, one.window if one else None)


def _standing(delta: Delta | None) -> Standing:
    if delta is None:
        return "gone"
    by_verdict: Mapping[str, Standing] = {"FASTER": "confirmed", "SLOWER": "slower", "SAME": "tie"}
    return by_verdict.get(delta.verdict, "not confirmed")


def _why(claim: Claim) -> str:
    if claim.delta is None:
        return "the closing check could not time it"
    what = "as fast as" if claim.standing == "tie" else "slower than"
    figure = units.ratio_within(claim.delta.ratio_interval)
    return f"{what} {claim.own} in the closing window, {figure}; {units.ratio(claim.claimed)} was claimed"


def _saved_s(progress: Progress, changed: Mapping[str, KernelChoice]) -> float | None:
    saved = [
        progress.first_s[site] * -math.expm1(progress.log_ratio[site, choice])
        for site, choice in changed.items()
        if site in progress.first_s and (site, choice) in progress.log_ratio
    ]
    return sum(saved) if saved and len(saved) == len(changed) else None
