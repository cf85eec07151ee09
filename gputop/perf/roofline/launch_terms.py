"""What one launch takes, in the order in which it happens, by ceilings that are measured one by one.

A launch of at most one wave is a sum, since nothing in it overlaps: it is launched, its first load comes,
its code comes, it works, it ends. Work is what the busiest SM takes: the longest of L2 (its feed), L1 and
shared memory, issue, arithmetic and DRAM. What its waits for memory add depends on its stages:

- 0: threads load into registers and wait by themselves. Waits and arithmetic of one warp in a row, or the
  resources of the SM, whichever takes longer.
- 1: a step waits for its own copies, and blocks that began together wait together. Waits, then the feed, then
  the longest of the other resources.
- n: copies are n - 1 steps ahead. The longest of waits and resources.

Several waves: resources are those of all blocks that the SM gets. Waits and arithmetic of a warp are there
once a wave. So are the first load and what stands outside the main loop, where no copies of another block
are under way meanwhile: with up to one stage, or one block an SM. The launch, the machine code and the last
store are there once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from gputop.perf.gpu_specs import SmLimits
from gputop.perf.roofline.l2_feed import sm_read_rate
from gputop.perf.roofline.peaks import Rates, over
from gputop.perf.roofline.placement import Placement
from gputop.plan.launch_shape import CodeFacts, LaunchShape

LaunchMode = Literal["stream", "graph", "pdl", "barrier", "call"]
"""How one launch begins; `barrier`: a task of a kernel that holds the SMs, behind a barrier of the grid;
`call`: a function call on the host.
"""

LAUNCH_CEILINGS: Mapping[LaunchMode, str] = {
    "stream": "launch_empty_queued",
    "graph": "launch_empty_graph",
    "pdl": "launch_empty_pdl",
    "barrier": "grid_barrier",
    "call": "call",
}
"""An empty launch that waits for the one before it; with programmatic dependent launch what remains of it."""
RESOURCES = ("l2", "l1", "issue", "compute", "dram")
TERMS = ("launch", "first load", "code", "latency", *RESOURCES, "end")
"""In the order in which a launch goes through them."""

SHARED_BYTES_PER_CYCLE = 128
"""Of one SM, in or out: 32 banks of 4 bytes."""
L1_CYCLES, SHUFFLE_CYCLES, SPECIAL_CYCLES, BARRIER_CYCLES = 33, 27, 40, 40
"""From a load to its use out of L1; a shuffle with the operation on what it brings; a division, exponential
or root; a barrier of a block. As microbenchmarks publish them for Hopper.
"""
WGMMA_WIDTHS = (24, 48, 56, 80, 96, 128)
"""Columns of the ceilings `tf32_wgmma_nN`."""


@dataclass(frozen=True, slots=True)
class Device:
    """What a launch runs on."""

    rates: Rates
    sm_count: int
    clock_hz: float
    sm: SmLimits | None
    """None: an architecture newer than the table."""


@dataclass(frozen=True, slots=True)
class LaunchTerms:
    """Seconds of one launch. None is unknown: the sum then leaves it out, and is not the whole."""

    launch_s: float | None = None
    first_load_s: float | None = None
    code_s: float | None = None
    latency_s: float | None = None
    """Waits for memory after the first, one after the other."""
    alone_s: float | None = None
    """What the arithmetic of one warp takes by itself, each instruction after those that it depends on."""
    l2_s: float | None = None
    l1_s: float | None = None
    issue_s: float | None = None
    compute_s: float | None = None
    dram_s: float | None = None
    end_s: float | None = None
    early_s: float = 0.0
    """What a dependent launch takes for weights that it asks for before it waits: hidden as far as it
    overlaps with the launch before.
    """
    stages: int = 2

    def shares(self) -> dict[str, float]:
        """Seconds by term as they add up: of the resources only the one that takes longest."""
        found = {
            "launch": self.launch_s,
            "first load": self.first_load_s,
            "code": self.code_s,
            **self._work(),
            "end": self.end_s,
        }
        return {name: seconds for name, seconds in found.items() if seconds}

    @property
    def total_s(self) -> float:
        return sum(self.shares().values())

    @property
    def busy_s(self) -> float:
        """The longest resource."""
        return max((seconds for _, seconds in self._resources()), default=0.0)

    def measured_beside(self, gap_s: float | None, overlap_s: float | None) -> LaunchTerms:
        """The terms as a time is held against them that leaves out the gap before the launch.

        What a launch costs holds that gap. Weights asked for early are hidden as long as the launch
        overlapped with the one before it; what they take beyond that is a wait for DRAM. With None, nobody
        saw it.
        """
        launch_s = self.launch_s
        if launch_s is not None and gap_s is not None:
            launch_s = max(0.0, launch_s - gap_s)
        late_s = 0.0 if overlap_s is None else max(0.0, self.early_s - overlap_s)
        dram_s = None if self.dram_s is None else max(self.dram_s, late_s)
        return replace(self, launch_s=launch_s, dram_s=dram_s)

    def _resources(self) -> list[tuple[str, float]]:
        known = ((name, getattr(self, f"{name}_s")) for name in RESOURCES)
        return [(name, seconds) for name, seconds in known if seconds is not None]

    def _work(self) -> dict[str, float]:
        resources = dict(self._resources())
        latency_s, alone_s = self.latency_s or 0.0, self.alone_s or 0.0
        if self.stages == 1:
            feed_s = resources.pop("l2", 0.0)
            top, top_s = _longest(resources, alone_s)
            return {"latency": latency_s, "l2": feed_s, top: top_s}
        top, top_s = _longest(resources, 0.0)
        if self.stages == 0 and latency_s + alone_s >= top_s:
            return {"latency": latency_s, "issue": alone_s}
        top, top_s = _longest(resources, alone_s)
        return {"latency": latency_s} if latency_s > top_s else {top: top_s}


def _longest(resources: Mapping[str, float], alone_s: float) -> tuple[str, float]:
    """The resource that takes longest; what one warp takes by itself counts as issue."""
    top = max(resources, key=lambda name: resources[name], default="issue")
    top_s = resources.get(top, 0.0)
    return ("issue", alone_s) if alone_s > top_s else (top, top_s)


def launch_terms(
    shape: LaunchShape,
    placement: Placement,
    code: CodeFacts | None,
    device: Device,
    mode: LaunchMode,
    dram_bytes: float = 0.0,
) -> LaunchTerms:
    """The terms of one launch, which brings `dram_bytes` from DRAM.

    `code`: its machine code, where that is known. A library's launch has no terms but those of its tile.
    """
    get = device.rates.get
    early = mode == "pdl" and shape.pdl
    if mode == "pdl" and not shape.pdl:
        mode = "graph"
    late = 1.0
    if early and shape.from_dram and shape.read_bytes:
        weights = (shape.early_bytes + shape.prefetched_bytes) * shape.blocks
        late = max(0.0, 1.0 - weights / dram_bytes) if dram_bytes else 0.0
    early_bytes = shape.early_bytes if early else 0.0
    waves = _walks(shape, placement)
    ahead_bytes = sum(weight.size_bytes for weight in shape.ahead)
    dram_s = over(late * dram_bytes + ahead_bytes, get("dram_read"))
    # Of a kernel that holds the SMs for many tasks, nobody knows which part of its code a task finds there.
    fetched = None if code is None or shape.inside else code.code_bytes
    return LaunchTerms(
        launch_s=_launch_s(shape, placement, device, mode),
        first_load_s=_first_load_s(shape, device, early, waves),
        code_s=over(fetched, get("code_fetch")),
        latency_s=_latency_s(shape, placement, code, device),
        alone_s=_alone_s(shape, placement, code, device),
        l2_s=_feed_s(shape, placement, device, shape.read_bytes - early_bytes),
        l1_s=placement.blocks * _l1_cycles(shape) / device.clock_hz,
        issue_s=_issue_s(shape, placement, code, device),
        compute_s=_compute_s(shape, placement, device),
        dram_s=dram_s,
        end_s=_end_s(shape, code, device, waves),
        early_s=_early_s(shape, device, (1.0 - late) * dram_bytes) if early else 0.0,
        stages=shape.stages,
    )


def call_terms(
    shape: LaunchShape | None, rates: Rates, dram_bytes: float, bandwidth: str = "dram_read"
) -> LaunchTerms:
    """The terms of one function call on the host; `bandwidth` is the ceiling of the memory that it can
    use.
    """
    rate = rates.get(shape.pipe) if shape and shape.pipe else None
    return LaunchTerms(
        launch_s=rates.get(LAUNCH_CEILINGS["call"]),
        compute_s=over(shape.flops, rate) if shape else None,
        dram_s=over(dram_bytes, rates.get(bandwidth)),
    )


def _walks(shape: LaunchShape, placement: Placement) -> int:
    """How often the first load and the code outside the main loop are walked through one after the other."""
    overlapped = shape.stages > 1 and placement.resident > 1
    return 1 if shape.library or overlapped else placement.waves


def _launch_s(shape: LaunchShape, placement: Placement, device: Device, mode: LaunchMode) -> float | None:
    get = device.rates.get
    launch_s = get(LAUNCH_CEILINGS[mode])
    if launch_s is None or mode == "barrier":
        return launch_s
    further_s = (placement.resident - 1) * (get("block_start") or 0.0)
    clustered_s, empty_s = get(f"launch_cluster_{shape.cluster}"), get("launch_empty_graph")
    cluster_s = 0.0 if clustered_s is None or empty_s is None else max(0.0, clustered_s - empty_s)
    return launch_s + further_s + cluster_s


def _first_load_s(shape: LaunchShape, device: Device, early: bool, walks: int) -> float | None:
    """Later waves find in L2 what the first had from DRAM: they are other rows of the same weights."""
    get = device.rates.get
    first_s = (
        get("first_load_pdl") if early else get("first_load_dram" if shape.from_dram else "first_load_l2")
    )
    later_s = get("first_load_l2")
    return None if first_s is None or later_s is None else first_s + (walks - 1) * later_s


def _early_s(shape: LaunchShape, device: Device, dram_bytes: float) -> float:
    get = device.rates.get
    first_s, dram_s = get("first_load_dram"), over(dram_bytes, get("dram_read"))
    return 0.0 if first_s is None or dram_s is None or not dram_bytes else first_s + dram_s


def _loop_turns(shape: LaunchShape, code: CodeFacts | None) -> float | None:
    """Turns of the main loop that one warp makes; None where the machine code is not known."""
    if code is None or not code.loop_flops or not shape.has_main_loop:
        return None
    return shape.flops / shape.blocks / shape.warps / code.loop_flops


def _latency_s(
    shape: LaunchShape, placement: Placement, code: CodeFacts | None, device: Device
) -> float | None:
    """Waits of one block, once a wave."""
    get = device.rates.get
    l2_s, dram_s = get("l2_latency"), get("dram_latency")
    if l2_s is None or dram_s is None:
        return None
    trips = 0.0
    if shape.stages >= 2:
        trips = shape.steps / (shape.stages - 1) - 1
    elif shape.step_loads and code:
        trips = shape.steps * shape.step_loads / code.loads_per_wait - 1
    first_s = l2_s + shape.weight_share * (dram_s - l2_s)
    serial = shape.serial
    cycles = (
        serial.l1_trips * L1_CYCLES
        + serial.shuffles * SHUFFLE_CYCLES
        + serial.specials * SPECIAL_CYCLES
        + serial.barriers * BARRIER_CYCLES
    )
    in_order_s = serial.l2_trips * l2_s + serial.dram_trips * dram_s + cycles / device.clock_hz
    return max(0.0, trips) * (first_s + (placement.waves - 1) * l2_s) + placement.waves * in_order_s


def _alone_s(
    shape: LaunchShape, placement: Placement, code: CodeFacts | None, device: Device
) -> float | None:
    turns = _loop_turns(shape, code)
    if turns is None or code is None:
        return None
    return placement.waves * turns * code.loop_cycles / device.clock_hz


def _issue_s(
    shape: LaunchShape, placement: Placement, code: CodeFacts | None, device: Device
) -> float | None:
    turns = _loop_turns(shape, code)
    if turns is None or code is None or device.sm is None:
        return None
    instructions = placement.blocks * shape.warps * turns * code.loop_instructions
    return instructions / device.sm.schedulers / device.clock_hz


def _feed_s(shape: LaunchShape, placement: Placement, device: Device, read_bytes: float) -> float | None:
    """Bytes of the busiest SM at its own rate, or all different bytes at L2's, whichever takes longer."""
    asked = shape.blocks * shape.read_bytes
    different = asked if shape.distinct_bytes is None else min(asked, shape.distinct_bytes)
    rate = sm_read_rate(
        device.rates, placement.active_sms, device.sm_count, shared=different <= SHARED_SHARE * asked
    )
    all_rate = device.rates.get("l2_read")
    if rate is None or all_rate is None:
        return None
    return max(placement.blocks * read_bytes / rate, (different + shape.written_bytes) / all_rate)


SHARED_SHARE = 0.5
"""Blocks that ask for each byte twice or more are fed as those of one panel."""


def _l1_cycles(shape: LaunchShape) -> float:
    """Of one block: what it brings in, what its products read again, and lines looked up one at a time."""
    return shape.shared_bytes / SHARED_BYTES_PER_CYCLE + shape.lookups * shape.lines_per_load


def _compute_s(shape: LaunchShape, placement: Placement, device: Device) -> float | None:
    if not shape.flops:
        return 0.0
    rate = pipe_rate(device.rates, shape.pipe, shape.tile[1] if shape.tile else None)
    busiest = placement.blocks * shape.flops / shape.blocks
    return None if rate is None else busiest / (rate / device.sm_count)


def pipe_rate(rates: Rates, pipe: str | None, columns: int | None = None) -> float | None:
    """FLOP/s of a pipe; of warpgroup products of so many columns, where such were measured."""
    if pipe is None:
        return None
    peak = rates.get(pipe)
    if pipe != "tf32_wgmma" or columns is None or peak is None:
        return peak
    narrower = [width for width in WGMMA_WIDTHS if width <= columns]
    rate = rates.get(f"tf32_wgmma_n{narrower[-1] if narrower else WGMMA_WIDTHS[0]}")
    return peak if rate is None else min(peak, rate)


def _end_s(shape: LaunchShape, code: CodeFacts | None, device: Device, walks: int) -> float | None:
    """The reduction, or what stands outside the main loop; then the last store."""
    get = device.rates.get
    store_s, l2_s = get("last_store"), get("l2_latency")
    if store_s is None or l2_s is None:
        return None
    if shape.library:
        start_s, empty_s, first_s = (
            get(name) for name in (f"library_start_{shape.library}", "launch_empty_graph", "first_load_l2")
        )
        if start_s is None or empty_s is None or first_s is None:
            return None
        # What every kernel of the family takes before and after its products, beyond its launch.
        return max(store_s, start_s - empty_s - first_s)
    if shape.exchange == "cluster":
        barrier_s, rate = get(f"cluster_barrier_{shape.cluster}"), get(f"dsmem_read_{shape.cluster}")
        if barrier_s is None or rate is None:
            return None
        exchange_s = 2 * barrier_s + shape.exchange_bytes / rate + shape.exchange_turns * l2_s
        return walks * exchange_s + store_s
    if shape.exchange == "memory":
        return walks * (2 + shape.exchange_turns) * l2_s + store_s
    if code is None:
        return None
    one_path = not shape.inside and (shape.has_main_loop or not code.loop_flops)
    outside_s = code.outside_cycles / device.clock_hz if one_path else 0.0
    return walks * outside_s + store_s
