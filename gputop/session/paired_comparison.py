"""Two sampled lanes to paired differences, phase by phase and whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from gputop.perf import paired_stats, verdicts
from gputop.plan.types import Plan, Step, Verdict
from gputop.results.records import Comparison, Delta
from gputop.session.aa_noise import NoiseFloors
from gputop.session.sampling import LaneSamples

TIMER_STEPS = 3
"""A time below this many of the timer's own steps is not resolved."""
WHOLE = ("device", "wall")
"""Times of a whole pass, by another clock than its phases'."""


@dataclass(frozen=True, slots=True)
class PhaseGroup:
    """The smallest set of phases that both plans time on their own: where one fuses, the other adds up."""

    name: str
    sites: frozenset[str]
    """Step sites of either plan that compute these phases."""


def groups(*passes: Iterable[Step]) -> tuple[PhaseGroup, ...]:
    """The groups of the given plans, in pass order of the first plan that has each."""
    parts: list[tuple[list[str], set[str]]] = []
    for step in (part for steps in passes for whole in steps for part in whole.apart()):
        names = list(dict.fromkeys(task.site.phase for task in step.tasks))
        joined: tuple[list[str], set[str]] = (names, {step.site})
        touching = [part for part in parts if set(part[0]) & set(names)]
        if touching:
            merged = list(dict.fromkeys(name for part in (*touching, joined) for name in part[0]))
            sites = set().union(*(part[1] for part in (*touching, joined)))
            parts[parts.index(touching[0])] = joined = (merged, sites)
            parts = [part for part in parts if part is joined or part not in touching]
        else:
            parts.append(joined)
    return tuple(PhaseGroup("+".join(names), frozenset(sites)) for names, sites in parts)


def series(lane: LaneSamples, group: PhaseGroup) -> list[float]:
    """Time of a group's phases in each sample; empty where the plan has no split, or none of these sites."""
    timed = [[sample.time_s[site] for site in group.sites if site in sample.time_s] for sample in lane.phases]
    return [sum(times) for times in timed] if all(timed) else []


def all_series(lane: LaneSamples, found: Iterable[PhaseGroup]) -> Iterator[tuple[str, list[float]]]:
    """Return each group's series, then those of the whole pass."""
    for group in found:
        yield group.name, series(lane, group)
    yield from zip(WHOLE, (lane.device_s, lane.wall_s), strict=True)


def site_series(lane: LaneSamples) -> dict[str, list[float]]:
    """Return each step site's times, sample by sample."""
    names = dict.fromkeys(part.site for step in lane.prepared.steps for part in step.apart())
    return {name: times for name in names if (times := lane.site_s(name))}


def site_key(site: str) -> str:
    """Return the A/A floors' key of a site, whose name may also be that of its phase."""
    return f"site {site}"


def compare(a: LaneSamples, b: LaneSamples, noise: NoiseFloors, timer_floor_s: float) -> Comparison:
    """b against a. Where their batches differ, times are per sequence and each delta says so.

    `timer_floor_s`: step and spread of the clock of whole passes.
    """
    plan_a, plan_b = a.lane.plan, b.lane.plan
    batches = (plan_a.batch, plan_b.batch) if plan_a.batch != plan_b.batch else (1, 1)
    note = f"per sequence: batch {plan_a.batch} against {plan_b.batch}" if batches != (1, 1) else ""
    found = groups(a.prepared.steps, b.prepared.steps)
    b_sites = site_series(b)
    phase_floor_s = max(a.phase_floor_s, b.phase_floor_s)

    def delta(name: str, noise_name: str, times_a: list[float], times_b: list[float]) -> Delta:
        clock_s = timer_floor_s if noise_name in WHOLE else phase_floor_s
        return _delta(
            name,
            [value / batches[0] for value in times_a],
            [value / batches[1] for value in times_b],
            noise.floor(plan_a.word, noise_name),
            # As they were timed, before they are shared out among sequences.
            unresolved(clock_s, times_a, times_b),
            note,
        )

    whole = zip(all_series(a, found), all_series(b, found), strict=True)
    deltas = [
        _bound_by_host(delta(name, name, of_a, of_b), plan_a, plan_b)
        for (name, of_a), (_, of_b) in whole
        if of_a and of_b
    ]
    sites = [
        delta(name, site_key(name), times, b_sites[name])
        for name, times in site_series(a).items()
        if name in b_sites
    ]
    return Comparison(plan_a.word, plan_b.word, 1, tuple(deltas), tuple(sites))


def _bound_by_host(delta: Delta, a: Plan, b: Plan) -> Delta:
    """The wall time of one pass in two maths, said to be the host's where it is the same in both."""
    if delta.phase != "wall" or delta.verdict != "SAME" or a.math == b.math:
        return delta
    if (a.rung, a.peer, a.batch) != (b.rung, b.peer, b.batch):
        return delta
    note = f"host-bound: as long in {a.math} as in {b.math}"
    return replace(delta, status="; ".join(part for part in (delta.status, note) if part))


def unresolved(clock_s: float, *lanes: list[float]) -> str:
    """Return why a clock of this step and spread can't resolve one of the times; empty if it can."""
    medians = (paired_stats.summarize(times).median for times in lanes)
    short = any(median is not None and median < TIMER_STEPS * clock_s for median in medians)
    return f"shorter than {TIMER_STEPS} steps of the timer" if short else ""


def judged(pair: verdicts.Paired, floor: verdicts.Floor, too_short: str) -> tuple[Verdict, str]:
    """Verdict and why, of a window's pair as of a ladder's. `too_short`: by `unresolved`."""
    return ("UNRESOLVED", too_short) if too_short else verdicts.verdict(pair, floor)


def _delta(
    name: str, a: list[float], b: list[float], floor: verdicts.Floor, too_short: str, note: str
) -> Delta:
    pair, difference = paired_stats.paired(a, b), paired_stats.paired_difference(a, b)
    verdict, why = judged(pair, floor, too_short)
    return Delta(
        phase=name,
        a_s=difference.a_s,
        b_s=difference.b_s,
        delta_s=difference.delta_s,
        delta_lo_s=difference.delta_lo_s,
        delta_hi_s=difference.delta_hi_s,
        ratio=pair.ratio,
        ratio_lo=pair.ratio_lo,
        ratio_hi=pair.ratio_hi,
        samples=pair.n,
        aa_floor=floor.apart,
        same_within=floor.same,
        verdict=verdict,
        status="; ".join(part for part in (why, note) if part),
    )
