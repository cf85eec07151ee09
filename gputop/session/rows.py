"""A sampled lane as the rows of the phase table: sites, then `sum gaps device wall residual`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gputop.perf import paired_stats, roofline
from gputop.perf.roofline import Floor
from gputop.perf.roofline.peaks import total
from gputop.plan.launch_shape import LaunchInfo
from gputop.plan.types import KINDS, Dims, KernelKind, Plan
from gputop.results.records import SCHEMA_PHASES, Comparison, Delta, DeviceFacts, Health, Row
from gputop.results.residual import residual_note, residual_s
from gputop.session import interference
from gputop.session.cost_model import SiteModel
from gputop.session.paired_comparison import TIMER_STEPS
from gputop.session.sampling import LaneSamples
from gputop.session.site_deltas import SiteDelta, site_deltas
from gputop.session.timed_site import (
    TimedSite,
    binding_columns,
    model_columns,
    modelled_pass_s,
    pass_binding,
    reach_efficiency,
)
from gputop.util.demangle import demangled

HOST_BOUND = 1.5
"""Wall time over device time from which on the host is said to set the pace."""

NO_CEILINGS = "this device's ceilings are still to be measured"


@dataclass(frozen=True, slots=True)
class WindowContext:
    """What all rows of a window share."""

    number: int
    time_utc: str
    device: DeviceFacts
    health: Health
    workload: str
    cache_state: str
    versions: str


@dataclass(frozen=True, slots=True)
class PlanModel:
    """What the model says of a lane's plan."""

    sites: tuple[SiteModel, ...]
    plan_floors: tuple[Floor, ...]
    question_floors: Mapping[str, Floor]
    """By phase."""
    has_ceilings: bool = True
    """Without any there are no floors, and what binds is not `unknown` but not asked yet."""


def lane_rows(
    occasion: WindowContext,
    samples: LaneSamples,
    dims: Dims,
    physics: PlanModel,
    comparison: Comparison | None,
) -> tuple[Row, ...]:
    """Make all rows of a plan whose gate passed. They have deltas only if `comparison` ends in this plan."""
    facts = {fact.site: fact for fact in samples.prepared.facts()}
    base = _base(occasion, samples, dims, comparison)
    deltas = site_deltas(physics.sites, comparison)
    sites = [
        _site_row(base, occasion, samples, model, facts.get(model.name), physics, deltas[model.name])
        for model in physics.sites
    ] or [_kind_row(base, samples, kind, facts.get(kind)) for kind in KINDS if samples.site_s(kind)]
    disturbed = interference.disturbed(occasion.health)
    return (*sites, *_totals(base, samples, dims, sites, physics, comparison, disturbed))


def _base(occasion: WindowContext, samples: LaneSamples, dims: Dims, comparison: Comparison | None) -> Row:
    plan, gate, health = samples.lane.plan, samples.lane.gate, occasion.health
    logits = (*gate.logits[:2], None, None)
    return Row(
        schema=SCHEMA_PHASES,
        time_utc=occasion.time_utc,
        window=occasion.number,
        samples=len(samples.device_s),
        backend=plan.backend,
        device=occasion.device.name,
        driver=occasion.device.driver,
        workload=occasion.workload,
        batch=plan.batch,
        seq=dims.seq,
        rung=plan.rung,
        plan=plan.word,
        phase="",
        math=plan.math,
        cache_state=occasion.cache_state,
        gate=gate.status,
        gate_error=gate.pass_error,
        logit0=logits[0],
        logit1=logits[1],
        sm_clock_hz=samples.clock_hz or health.sm_clock_hz,
        power_w=health.power_w,
        throttle=None if health.throttle is None else " ".join(health.throttle) or "none",
        pinned_plan=comparison.plan_a if comparison else None,
        versions=occasion.versions,
    )


def _site_row(
    base: Row,
    occasion: WindowContext,
    samples: LaneSamples,
    model: SiteModel,
    facts: LaunchInfo | None,
    physics: PlanModel,
    compared: SiteDelta,
) -> Row:
    time, delta = paired_stats.summarize(samples.site_s(model.name)), compared.delta
    timed = _timed(samples, model)
    efficiency = roofline.efficiency(model.floor.value_s, time.median, timed.overlap_s)
    return replace(
        base,
        phase=model.name,
        kind=model.kind,
        count=model.count,
        kernel=str(model.choice),
        time_s=time.median,
        time_mad_s=time.mad,
        timer=samples.phases[0].timer if samples.phases else None,
        gap_s=timed.gap_s,
        overlap_s=timed.overlap_s,
        floor_s=model.floor.value_s,
        floor_term=model.floor.term,
        question_floor_s=_question_floor_s(samples.lane.plan, model, physics),
        efficiency=efficiency.value,
        flops=model.work.flops,
        dram_bytes=model.dram_bytes,
        status=_status(
            _unresolved(time.median, samples),
            efficiency.note,
            timed.left.note,
            "" if physics.has_ceilings else NO_CEILINGS,
            model.note,
            compared.note,
            delta.status if delta else "",
        ),
        **model_columns(timed, samples.lane.plan.math, has_ceilings=physics.has_ceilings),
        **_launch_columns(facts),
        **_delta_columns(delta),
    )


def _kind_row(base: Row, samples: LaneSamples, kind: KernelKind, facts: LaunchInfo | None) -> Row:
    """Make a row of a framework's pass, whose kernels are known by kind only."""
    time = paired_stats.summarize(samples.site_s(kind))
    return replace(
        base,
        phase=kind,
        kind=kind,
        kernel=samples.lane.plan.peer,
        time_s=time.median,
        time_mad_s=time.mad,
        timer=samples.phases[0].timer,
        gap_s=_gap_s(samples, kind),
        overlap_s=_median(sample.overlap_s.get(kind) for sample in samples.phases),
        status=_status(_unresolved(time.median, samples)),
        **_launch_columns(facts),
    )


def _unresolved(time_s: float | None, samples: LaneSamples) -> str:
    return "unresolved" if time_s is not None and time_s < TIMER_STEPS * samples.phase_floor_s else ""


def _totals(
    base: Row,
    samples: LaneSamples,
    dims: Dims,
    sites: list[Row],
    physics: PlanModel,
    comparison: Comparison | None,
    disturbed: str,
) -> Iterable[Row]:
    device, wall = paired_stats.summarize(samples.device_s), paired_stats.summarize(samples.wall_s)
    submit_s = _median(samples.submit_s)
    sum_s, gaps_s = (_added(sites, name) for name in ("time_s", "gap_s"))
    question = tuple(physics.question_floors.values())
    overlapped, question_overlapped = (
        roofline.device_floor(physics.plan_floors),
        roofline.device_floor(question),
    )
    share = roofline.efficiency(overlapped.value_s, device.median)
    binding = pass_binding(timed_sites(samples, physics), device.median)
    launches, reach_s = _added(sites, "launches"), _added(sites, "reach_s")
    timer = next((site.timer for site in sites), None)
    yield replace(
        base,
        phase="sum",
        time_s=sum_s,
        timer=timer,
        floor_s=roofline.sum_floor(physics.plan_floors),
        question_floor_s=roofline.sum_floor(question),
    )
    yield replace(base, phase="gaps", time_s=gaps_s, timer=timer)
    yield replace(
        base,
        phase="device",
        launches=None if launches is None else int(launches),
        time_s=device.median,
        time_mad_s=device.mad,
        timer="perf_counter" if submit_s is None else "event",
        submit_s=submit_s,
        floor_s=overlapped.value_s,
        floor_term=overlapped.term,
        question_floor_s=question_overlapped.value_s,
        efficiency=share.value,
        **binding_columns(binding, has_ceilings=physics.has_ceilings),
        modelled_s=modelled_pass_s(sites),
        reach_s=reach_s,
        reach_efficiency=reach_efficiency(reach_s, device.median, None),
        flops=_added(sites, "flops"),
        dram_bytes=_added(sites, "dram_bytes"),
        tokens_per_s=_rate(dims.tokens, device.median),
        host_bound=host_bound(samples),
        **_delta_columns(comparison.get("device") if comparison else None),
        status=_status(share.note, _delta_status(comparison, "device"), disturbed),
    )
    yield replace(
        base,
        phase="wall",
        time_s=wall.median,
        time_mad_s=wall.mad,
        timer="perf_counter",
        tokens_per_s=_rate(dims.tokens, wall.median),
        **_delta_columns(comparison.get("wall") if comparison else None),
        status=_status(_delta_status(comparison, "wall"), disturbed),
    )
    left_s = residual_s(device.median, sum_s, gaps_s)
    note = residual_note(left_s, device.median)
    yield replace(base, phase="residual", time_s=left_s, status=_status(note))


def timed_sites(samples: LaneSamples, physics: PlanModel) -> list[TimedSite]:
    """The sites of a lane, each with its median times."""
    return [_timed(samples, model) for model in physics.sites]


def host_bound(samples: LaneSamples) -> bool | None:
    """Return whether the host, not the device, limits a pass; None if the host is the device.

    The host does if enqueueing a pass takes longer than running it, or the pass as used takes far longer.
    """
    submit_s, device_s = _median(samples.submit_s), _median(samples.device_s)
    wall_s = _median(samples.wall_s)
    if submit_s is None or device_s is None:
        return None
    return submit_s >= device_s or (wall_s is not None and wall_s >= HOST_BOUND * device_s)


def _timed(samples: LaneSamples, model: SiteModel) -> TimedSite:
    overlap_s = _median(sample.overlap_s.get(model.name) for sample in samples.phases)
    time_s = paired_stats.summarize(samples.site_s(model.name)).median
    return TimedSite(model, time_s, _gap_s(samples, model.name), overlap_s)


def _delta_columns(delta: Delta | None) -> dict[str, Any]:
    if delta is None:
        return {}
    return {
        "delta_s": delta.delta_s,
        "delta_lo_s": delta.delta_lo_s,
        "delta_hi_s": delta.delta_hi_s,
        "ratio": delta.ratio,
        "verdict": delta.verdict,
    }


def _delta_status(comparison: Comparison | None, name: str) -> str:
    delta = comparison.get(name) if comparison else None
    return delta.status if delta else ""


def _launch_columns(facts: LaunchInfo | None) -> dict[str, Any]:
    if facts is None:
        return {}
    return {
        "library_kernel": facts.library_kernel,
        "launches": facts.launches,
        "grid": facts.grid,
        "block": facts.block,
        "registers": facts.registers,
        "smem_bytes": facts.smem_bytes,
        "occupancy_grid": facts.occupancy_grid,
        "occupancy_theoretical": facts.occupancy_theoretical,
        "occupancy_limiters": " ".join(facts.occupancy_limiters) or None,
        "waves": facts.waves,
        "warps_in_flight": facts.warps_in_flight,
        "cubin": facts.cubin,
        "spill_bytes": facts.spill_bytes,
        "library_kernel_demangled": demangled(facts.library_kernel),
    }


def _question_floor_s(plan: Plan, model: SiteModel, physics: PlanModel) -> float | None:
    """A pruned plan computes only what is asked; else each phase has one row, whose phases' floors add."""
    if plan.prune:
        return model.floor.value_s
    return roofline.device_floor(physics.question_floors[phase] for phase in model.phases).value_s


def _added(rows: Iterable[Row], name: str) -> float | None:
    """The values of a column added; None where one is unknown, or there are no rows."""
    values: list[float | None] = [getattr(row, name) for row in rows]
    return total(values) if values else None


def _gap_s(samples: LaneSamples, site: str) -> float | None:
    return _median(sample.gap_s.get(site) for sample in samples.phases)


def _median(values: Iterable[float | None]) -> float | None:
    return paired_stats.summarize([value for value in values if value is not None]).median


def _rate(amount: int, time_s: float | None) -> float | None:
    return amount / time_s if time_s else None


def _status(*parts: str) -> str | None:
    return "; ".join(part for part in parts if part) or None
