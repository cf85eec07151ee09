"""Dispatch tables: which sites an entry `SITE:KERNEL` serves, which entries make one table of another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from gputop.plan.types import Kernel, KernelChoice, Site
from gputop.util.errors import UsageError

Dispatch = Mapping[str, KernelChoice]
"""Site -> kernel."""
Entry = tuple[str, KernelChoice]
"""Site or phase, and the kernel asked for there."""


def phase_of_names(sites: Iterable[Site]) -> dict[str, str]:
    """Return every name that an entry may be for, a site's or a phase's, with the phase."""
    names = {site.name: site.phase for site in sites}
    return {phase: phase for phase in names.values()} | names


def served(name: str, kernel: Kernel, sites: Sequence[Site]) -> list[str]:
    """Return the sites that an entry is for.

    A phase's name means all its sites. A kernel that fuses takes along the sites of its other phases.
    `name` is one of `phase_of_names`.
    """
    of_phase = [site.name for site in sites if site.phase == name]
    if not kernel.fuses:
        return of_phase or [name]
    if of_phase:
        return [site.name for site in sites if site.phase == name or site.phase in kernel.covers]
    layers = next(site.layers for site in sites if site.name == name)
    return [
        site.name
        for site in sites
        if site.name == name or (site.phase in kernel.covers and site.layers == layers)
    ]


def check_none_hidden(entries: Sequence[Entry], serves: Sequence[Sequence[str]]) -> None:
    """Raise UsageError for an entry whose every site a later one gives another kernel: it would be ignored.

    `serves`: the sites of each entry.
    """
    taker = {site: index for index, sites in enumerate(serves) for site in sites}
    for index, (name, choice) in enumerate(entries):
        takers = {taker[site] for site in serves[index]}
        if index in takers:
            continue
        by, theirs = entries[max(takers)]
        if theirs != choice:
            raise UsageError(
                f"{by}:{theirs} serves {name} too, so that nothing is left of {name}:{choice} before it: "
                f"write {by} first, or leave one of them out."
            )


def differing_entries(
    sites: Sequence[Site], base: Dispatch, wanted: Dispatch, kernel: Callable[[str], Kernel]
) -> tuple[Entry, ...]:
    """Return the fewest entries, in pass order, that turn one dispatch into the other.

    `kernel` gives a record by its name.
    """
    entries = []
    current = dict(base)
    for site in sites:
        choice = wanted[site.name]
        if current[site.name] != choice:
            entries.append((site.name, choice))
            current.update(dict.fromkeys(served(site.name, kernel(choice.kernel), sites), choice))
    return tuple(entries)
