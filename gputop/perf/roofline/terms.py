"""The time that each resource alone would take for a phase: the terms, of which the largest binds."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from gputop.perf.gpu_specs import SM_LIMITS, arch_name
from gputop.perf.roofline.floors import compulsory_bytes
from gputop.perf.roofline.peaks import (
    LAUNCH_COSTS,
    WEIGHT_SHARE,
    Mode,
    Rates,
    first_known,
    largest,
    over,
    total,
)
from gputop.perf.roofline.quantization import Fit, fit
from gputop.plan.traffic import CriticalPath, Traffic, Work
from gputop.plan.types import LaunchInfo, Math

BARRIER_L2_WAITS = 3
"""Round trips of a grid barrier where it was not measured."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Seconds by resource, as if it alone set the pace of busy SMs; then the shape factor."""

    compute_s: float | None = None
    """FLOPs as launched, padding included, over the rate of the pipe used."""
    dram_s: float | None = None
    l2_s: float | None = None
    l1_s: float | None = None
    issue_s: float | None = None
    latency_s: float | None = None
    launch_s: float | None = None
    """From each start to the next: the gaps before kernels included, see `without_gaps`."""
    shape_factor: float | None = None
    """Padding x idling: see `fit`."""
    padding: float | None = None
    """The part of the shape factor that is in the declared counts already."""


def terms(
    work: Work,
    traffic: Traffic | None,
    facts: LaunchInfo | None,
    rates: Rates,
    *,
    count: int,
    launches: int | None,
    mode: Mode,
    l2_bytes: int | None,
    sm_count: int | None = None,
    arch: str | None = None,
    clock_hz: float | None = None,
    pipe: str | None = None,
    math: Math = "fp32",
    rows: int | None = None,
    columns: int | None = None,
    bandwidth: str = "dram_read",
) -> Terms:
    """What each resource alone would take for one phase in one pass.

    `work` and `launches` are of all `count` instances, `traffic` is of one. `pipe` names the ceiling
    of the math really used and overrides the one that `traffic` declares; `bandwidth` names that of
    the memory. `rows` and `columns` are the site's output, for the padding. DRAM bytes are the
    compulsory ones, or those declared where they are more. In mode `call` (cpu) compute, dram and
    launch are all there is.
    """
    declared = _Declared(traffic, count)
    tiled = _fit(traffic, facts, sm_count, rows, columns)
    used = pipe or (traffic.pipe if traffic else None)
    compulsory = compulsory_bytes(work, l2_bytes, count=count, math=math)
    dram_bytes = max(compulsory, declared.of("dram_bytes") or 0.0)
    launch_cost_s = first_known(rates, LAUNCH_COSTS[mode])

    compute_s = over(_flops_launched(work, declared, tiled), rates.get(used) if used else None)
    dram_s = over(dram_bytes, rates.get(bandwidth))
    launch_s = None if launches is None or launch_cost_s is None else launches * launch_cost_s
    if mode == "call":
        return Terms(compute_s=compute_s, dram_s=dram_s, launch_s=launch_s)

    sm_hz = None if sm_count is None or clock_hz is None else sm_count * clock_hz
    sm = SM_LIMITS.get(arch_name(arch)) if arch else None
    issue_hz = None if sm is None or sm_hz is None else sm.schedulers * sm_hz
    return Terms(
        compute_s=compute_s,
        dram_s=dram_s,
        l2_s=over(declared.of("l2_bytes"), rates.get("l2_read")),
        l1_s=over(declared.of("l1_wavefronts"), sm_hz),
        issue_s=over(declared.of("warp_instructions"), issue_hz),
        latency_s=largest(
            _in_flight_s(declared, dram_bytes, facts, rates),
            _chain_s(declared, facts, rates, clock_hz),
        ),
        launch_s=launch_s,
        shape_factor=tiled.shape_factor if tiled else None,
        padding=tiled.padding if tiled else None,
    )


def moved_over_compulsory(
    work: Work, traffic: Traffic | None, *, count: int, math: Math = "fp32"
) -> float | None:
    """Bytes a kernel asks of L2 over its weights and activations touched once; None where undeclared.

    `work` is of all `count` instances, `traffic` of one.
    """
    once = work.weight_bytes * WEIGHT_SHARE[math] + work.in_bytes + work.out_bytes
    moved = _Declared(traffic, count).of("l2_bytes")
    return None if moved is None or once == 0 else moved / once


@dataclass(frozen=True, slots=True)
class _Declared:
    """A kernel's declared traffic, over all instances of a pass."""

    traffic: Traffic | None
    count: int

    def of(self, field: str) -> float | None:
        one: float | None = getattr(self.traffic, field, None)
        return None if one is None else one * self.count


def _flops_launched(work: Work, declared: _Declared, tiled: Fit | None) -> float:
    flops = declared.of("flops")
    return work.flops * (tiled.padding if tiled else 1.0) if flops is None else flops


def _fit(
    traffic: Traffic | None,
    facts: LaunchInfo | None,
    sm_count: int | None,
    rows: int | None,
    columns: int | None,
) -> Fit | None:
    if traffic is None or traffic.tile is None or facts is None:
        return None
    if not (rows and columns and sm_count and facts.blocks):
        return None
    return fit(rows, columns, traffic.tile[:2], facts.blocks, sm_count)


def _in_flight_s(
    declared: _Declared, dram_bytes: float, facts: LaunchInfo | None, rates: Rates
) -> float | None:
    """Little's law: bytes x latency / bytes in flight, each byte at the latency of its memory.

    With the L2's latency unknown only DRAM bytes wait: the term may be too low, never too high.
    """
    per_warp = declared.traffic.bytes_in_flight_per_warp if declared.traffic else None
    warps = facts.warps_in_flight if facts else None
    dram_latency_s, l2_latency_s = rates.get("dram_latency"), rates.get("l2_latency")
    if not per_warp or not warps or dram_latency_s is None:
        return None
    waiting = dram_bytes * dram_latency_s
    if l2_latency_s is not None:
        waiting += max(0.0, (declared.of("l2_bytes") or 0.0) - dram_bytes) * l2_latency_s
    return waiting / (per_warp * warps)


def _chain_s(
    declared: _Declared, facts: LaunchInfo | None, rates: Rates, clock_hz: float | None
) -> float | None:
    """The longest chain, once a wave, since a block of the next wave waits for a slot; then what follows.

    What a first wave had from DRAM, later ones find in L2: they are other rows of the same weights.
    """
    if declared.traffic is None or not declared.traffic.chains:
        return None
    waves = 1 if facts is None or facts.waves is None else max(1, ceil(facts.waves))
    later = (
        CriticalPath(c.cycles, c.l2_waits + c.dram_waits, grid_barriers=c.grid_barriers).times(waves - 1)
        for c in declared.traffic.chains
    )
    walks = [first + rest for first, rest in zip(declared.traffic.chains, later, strict=True)]
    longest_s = largest(*(_seconds(walk, rates, clock_hz) for walk in walks))
    after_s = _seconds(declared.traffic.after, rates, clock_hz)
    return None if longest_s is None or after_s is None else declared.count * (longest_s + after_s)


def _seconds(chain: CriticalPath, rates: Rates, clock_hz: float | None) -> float | None:
    """None where it needs a figure that was not measured."""
    parts = (
        over(chain.cycles, clock_hz),
        _waits_s(chain.l2_waits, rates.get("l2_latency")),
        _waits_s(chain.dram_waits, rates.get("dram_latency")),
        _waits_s(chain.grid_barriers, _barrier_s(rates)),
    )
    return total(parts)


def _barrier_s(rates: Rates) -> float | None:
    """A grid barrier as measured, else its round trips: what a block wrote is seen, the block is counted, and
    it sees that all have been."""
    l2_s = rates.get("l2_latency")
    return first_known(rates, ("grid_barrier",)) or (None if l2_s is None else BARRIER_L2_WAITS * l2_s)


def _waits_s(waits: float, latency_s: float | None) -> float | None:
    if waits == 0:
        return 0.0
    return None if latency_s is None else waits * latency_s
