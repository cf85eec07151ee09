"""A sampled pass by what its kernels do, whoever's it is; and ours as others are forecast from it."""

from __future__ import annotations

from gputop.perf import paired_stats
from gputop.plan.types import KINDS
from gputop.results import breakdown
from gputop.results.records import Breakdown
from gputop.session.peer_forecast import OwnPlanTiming
from gputop.session.rows import PlanModel
from gputop.session.sampling import LaneSamples
from gputop.util.demangle import demangled


def breakdown_of(samples: LaneSamples, physics: PlanModel) -> Breakdown:
    """Return the breakdown of the same pass's phase table, by `breakdown.of_rows`."""
    facts = samples.prepared.facts()
    kinds: dict[str, str] = {model.name: model.kind for model in physics.sites} or {
        kind: kind for kind in KINDS if samples.site_s(kind)
    }
    others = [
        demangled(fact.library_kernel) or fact.library_kernel or fact.site
        for fact in facts
        if kinds.get(fact.site) == "other"
    ]
    return breakdown.from_parts(
        ((kind, paired_stats.summarize(samples.site_s(name)).median) for name, kind in kinds.items()),
        _gap_s(samples),
        sum(fact.launches for fact in facts) or None,
        others,
    )


def ours(samples: LaneSamples, physics: PlanModel) -> OwnPlanTiming:
    """A plan of ours in this window."""
    names = [model.name for model in physics.sites]
    times = {name: paired_stats.summarize(samples.site_s(name)).median for name in names}
    return OwnPlanTiming(
        plan=samples.lane.plan,
        sites=physics.sites,
        time_s={name: time_s for name, time_s in times.items() if time_s is not None},
        gap_s={name: gap_s for name in names if (gap_s := _median_gap_s(samples, name)) is not None},
        launches={fact.site: fact.launches for fact in samples.prepared.facts()},
    )


def _gap_s(samples: LaneSamples) -> float | None:
    """Return all gaps of a pass in seconds; None if its timer can't see gaps."""
    sites = dict.fromkeys(site for sample in samples.phases for site in sample.gap_s)
    gaps = [gap_s for site in sites if (gap_s := _median_gap_s(samples, site)) is not None]
    return sum(gaps) if gaps else None


def _median_gap_s(samples: LaneSamples, site: str) -> float | None:
    known = [sample.gap_s[site] for sample in samples.phases if site in sample.gap_s]
    return paired_stats.summarize(known).median
