"""What was measured, as frozen records: rows, gates, windows, comparisons. None is unknown, never 0.

Seconds end in `_s`; a ratio is always time of the first plan over time of the second: above 1,
the second is faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal

from gputop.plan.types import Verdict as Verdict
from gputop.util.interval import Interval

SCHEMA_PHASES = "gputop.phases/1"
SCHEMA_COMPARE = "gputop.compare/1"
SCHEMA_WINDOWS = "gputop.windows/1"
SCHEMA_CEILINGS = "gputop.ceilings/1"
SCHEMA_LADDER = "gputop.ladder/1"

GateStatus = Literal["PASS", "PASS pass-only", "FAIL", "unchecked"]
TOTAL_ROWS = ("sum", "gaps", "device", "wall", "residual")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the phase table: a site, or one of `TOTAL_ROWS`. Fields are the CSV columns in order."""

    schema: str
    time_utc: str
    window: int
    samples: int
    backend: str
    device: str
    driver: str | None
    workload: str
    batch: int
    seq: int
    rung: str
    plan: str
    phase: str
    count: int | None = None
    kernel: str | None = None
    library_kernel: str | None = None
    math: str | None = None
    launches: int | None = None
    time_s: float | None = None
    time_mad_s: float | None = None
    timer: str | None = None
    cache_state: str | None = None
    gap_s: float | None = None
    overlap_s: float | None = None
    submit_s: float | None = None
    floor_s: float | None = None
    floor_term: str | None = None
    efficiency: float | None = None
    binds: str | None = None
    runner_up: str | None = None
    compute_s: float | None = None
    dram_s: float | None = None
    l2_s: float | None = None
    l1_s: float | None = None
    issue_s: float | None = None
    latency_s: float | None = None
    launch_s: float | None = None
    shape_factor: float | None = None
    unexplained_s: float | None = None
    flops: float | None = None
    dram_bytes: float | None = None
    l2_bytes: float | None = None
    grid: str | None = None
    block: str | None = None
    registers: int | None = None
    smem_bytes: int | None = None
    occupancy_theoretical: float | None = None
    occupancy_limiters: str | None = None
    occupancy_achieved: float | None = None
    waves: float | None = None
    warps_in_flight: float | None = None
    gate: str = "unchecked"
    gate_error: float | None = None
    logit0: float | None = None
    logit1: float | None = None
    tokens_per_s: float | None = None
    sm_clock_hz: float | None = None
    power_w: float | None = None
    throttle: str | None = None
    pinned_plan: str | None = None
    delta_s: float | None = None
    delta_lo_s: float | None = None
    delta_hi_s: float | None = None
    ratio: float | None = None
    verdict: str | None = None
    cubin: str | None = None
    versions: str | None = None
    status: str | None = None
    question_floor_s: float | None = None
    """Floor of the question asked, which no plan changes; `floor_s` is that of this plan's work."""
    host_bound: bool | None = None
    kind: str | None = None
    """One of `spec.KINDS`; of a framework's pass, whose kernels are seen by kind alone, the phase too."""
    spill_bytes: int | None = None
    """Of a thread, stored to and loaded from local memory because registers ran out."""
    moved_over_compulsory: float | None = None
    """Bytes that the kernel asks of L2 (`l2_bytes`) / its weights and activations moved once."""
    library_kernel_demangled: str | None = None
    """`library_kernel` as declared in C++."""
    first_load_s: float | None = None
    code_s: float | None = None
    end_s: float | None = None
    modelled_s: float | None = None
    """What the terms come to that are known: those of a launch add up, of its resources the longest
    counts.
    """
    binds_share: float | None = None
    """Of the time; of `unknown` the part that is unexplained."""
    reach_s: float | None = None
    """The least that launches which wait for each other can take."""
    occupancy_grid: float | None = None
    """Warps that this grid gives an SM / the most it holds; `occupancy_theoretical` is with blocks enough."""
    reach_efficiency: float | None = None
    """`reach_s` / (`time_s` + `gap_s`): reach holds the gap before a launch."""


@dataclass(frozen=True, slots=True)
class ElementCheck:
    """The element of an output that is farthest from float64, as a share of what rounding allows it."""

    row: int
    column: int
    error: float
    """|out - expected|."""
    bound: float | None
    """The largest error that rounding explains (phases/rounding.py); None where it explains any."""
    layer: int = 0

    @property
    def ok(self) -> bool:
        return self.bound is None or self.error <= self.bound

    @property
    def share(self) -> float:
        """error / bound; infinite where nothing is allowed."""
        if self.bound:
            return self.error / self.bound
        return 0.0 if self.ok else inf


@dataclass(frozen=True, slots=True)
class PhaseCheck:
    """Worst row and worst element of a site's output against float64 on the task's own inputs."""

    site: str
    layer: int
    """Of the worst row; the worst element may be in another."""
    error: float | None
    """||row - expected|| / ||expected|| of the worst row. None: not finite."""
    tolerance: float
    row: int | None = None
    """The worst row of the output, or the first that is not finite."""
    element: ElementCheck | None = None
    """None where the output is not finite, and in recordings older than it."""

    @property
    def ok(self) -> bool:
        return self._rows_ok and (self.element is None or self.element.ok)

    @property
    def fault(self) -> str:
        """What is wrong, where and by how much: a row's norm, else an element. Empty if nothing is."""
        if not self._rows_ok:
            place = f"{self.site} of layer {self.layer}, row {self.row}"
            return beyond(place, self.error, self.tolerance)
        if self.element is None or self.element.ok:
            return ""
        return (
            f"{self.site} of layer {self.element.layer}, row {self.element.row}, "
            f"column {self.element.column}: {self.element.error:.2g} from float64, "
            f"rounding explains {self.element.bound or 0:.2g}"
        )

    @property
    def _rows_ok(self) -> bool:
        return self.error is not None and self.error <= self.tolerance


def beyond(place: str, error: float | None, tolerance: float) -> str:
    """What is wrong at a place, and what would be allowed. `error`: None if it is not finite."""
    if error is None:
        return f"{place}: not finite"
    return f"{place}: {error:.2g} from float64, allowed {tolerance:g}"


@dataclass(frozen=True, slots=True)
class Gate:
    """Outcome of the correctness check of one prepared plan."""

    status: GateStatus
    pass_error: float | None
    """Worst ||out - ref|| / ||ref|| over token sets and poisons; None: not finite, or not run."""
    tolerance: float
    logits: tuple[float, ...] = ()
    """The first two of the first token set."""
    checks: tuple[PhaseCheck, ...] = ()
    """Worst check of each site."""
    where: str = ""
    """For FAIL: what failed, by how much, and where, in a sentence."""

    @property
    def ok(self) -> bool:
        return self.status in ("PASS", "PASS pass-only")


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What a backend measures on, and with what."""

    backend: str
    name: str
    uuid: str | None = None
    index: int | None = None
    driver: str | None = None
    arch: str | None = None
    """`sm_90`; for cpu the BLAS kernel set."""
    sm_count: int | None = None
    """SMs, or cores."""
    l2_bytes: int | None = None
    memory_bytes: int | None = None
    versions: str = ""
    """`numpy 2.4.6, OpenBLAS 0.3.30 Zen`."""
    notes: tuple[str, ...] = ()
    recording: str = ""
    """`recording of 2026-01-02 on NVIDIA H200` where that is shown; empty where this device measures."""
    cpu_quota_cores: float | None = None
    """Cores' worth of time that a quota allows the measuring process; None: no quota, or not known."""


@dataclass(frozen=True, slots=True)
class Health:
    """The device's state during a window; None is not supported here."""

    sm_clock_hz: float | None = None
    memory_clock_hz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    throttle: tuple[str, ...] | None = None
    """Clock event reasons seen; () is none seen, None is not readable."""
    others: tuple[str, ...] | None = None
    """Other processes on the device."""
    host_cores: int | None = None
    """Cores of the host that the measuring process may run on."""
    others_cores: float | None = None
    """Cores' worth of time that other programs used of those during the window."""
    throttled_s: float | None = None
    """How long a CPU quota held the measuring process back in the window, each core counted; None: no quota,
    or the kernel does not count."""
    launch_s: float | None = None
    """What an empty launch in a graph costs in the measuring process: its ceiling is `launch_graph`."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """One measured peak."""

    name: str
    """`dram_read dram_copy l2_read fp32 tf32_mma bf16_mma tf32_wgmma bf16_wgmma launch_stream
    launch_queued launch_graph launch_dependent launch_pdl grid_barrier call dram_latency l2_latency` and
    those of `gputop.backends.cuda.ceilings`."""
    value: float
    unit: Literal["B/s", "FLOP/s", "s"]
    how: str
    clock_hz: float | None = None
    sustained: float | None = None
    limit: float | None = None
    """What the hardware's width times this clock allows, same unit."""
    library: float | None = None
    """The vendor library's rate on the same resource."""
    datasheet: float | None = None
    status: str = "ok"
    """`ok`, or why this figure is not to be trusted."""


@dataclass(frozen=True, slots=True)
class Ceilings:
    """All measured peaks of one device."""

    device: str
    driver: str | None
    time_utc: str
    items: tuple[Ceiling, ...]
    versions: str = ""
    missing: tuple[str, ...] = ()
    """What could not be measured, each with why: `grid_barrier: ...`."""

    def get(self, name: str) -> float | None:
        """The value of a ceiling in its own unit, or None when it was not measured."""
        return next((item.value for item in self.items if item.name == name), None)


@dataclass(frozen=True, slots=True)
class Delta:
    """A paired difference between plan a and plan b within one window; phase, `device` or `wall`."""

    phase: str
    a_s: float | None
    b_s: float | None
    delta_s: float | None
    """b - a."""
    delta_lo_s: float | None
    delta_hi_s: float | None
    ratio: float | None
    """a / b: above 1, b is faster."""
    ratio_lo: float | None
    ratio_hi: float | None
    samples: int
    aa_floor: float
    """|log ratio| that two copies of one plan reach."""
    verdict: Verdict
    status: str = ""
    """Why UNRESOLVED, or what else must be known to read it."""
    same_within: float | None = None
    """|log ratio| within which the two are SAME: what copies are known to differ by in this window. None if
    the window does not know, and in recordings older than it."""

    @property
    def ratio_interval(self) -> Interval:
        return Interval(self.ratio, self.ratio_lo, self.ratio_hi)

    @property
    def delta_interval_s(self) -> Interval:
        return Interval(self.delta_s, self.delta_lo_s, self.delta_hi_s)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two plans paired in one window. Whole-pass verdict is that of `device`."""

    plan_a: str
    plan_b: str
    windows: int
    deltas: tuple[Delta, ...]
    sites: tuple[Delta, ...] = ()
    """The same by site, `w1` apart from `w1@1`, of the sites that both plans time."""

    def get(self, phase: str) -> Delta | None:
        return next((d for d in self.deltas if d.phase == phase), None)

    def at(self, site: str) -> Delta | None:
        return next((d for d in self.sites if d.phase == site), None)


@dataclass(frozen=True, slots=True)
class Pooled:
    """A window's comparison together with earlier windows of the same pair in the same state."""

    comparison: Comparison
    units: int
    """How many processes prepared the two plans; all windows of one share a placement in memory."""
    since_utc: str
    """When the oldest window began."""


@dataclass(frozen=True, slots=True)
class Breakdown:
    """One pass by what its kernels do, in seconds; None is unknown."""

    launches: int | None = None
    """Kernels of one pass."""
    gemm_s: float | None = None
    attention_s: float | None = None
    pointwise_s: float | None = None
    other_s: float | None = None
    """Kernels whose kind is not known: 0 where all are."""
    gap_s: float | None = None
    """The device without a kernel, copies of its own included."""
    others: tuple[str, ...] = ()
    """The kernels behind `other_s`."""
    status: str = ""
    """Why nothing, or not all, is known."""


@dataclass(frozen=True, slots=True)
class Tuned:
    """What a compiler measured of one product before it chose: ratios within its own log, never times."""

    operation: str
    """`addmm`"""
    sizes: str
    """Of its operands: `128x768, 768x2304`."""
    choices: int
    best: str
    second: str | None = None
    second_ratio: float | None = None
    """Second best time / best time."""
    library: str | None = None
    library_ratio: float | None = None
    """The vendor library's time / best time; None where the log does not list it."""


@dataclass(frozen=True, slots=True)
class PlanResult:
    """One plan's share of a window."""

    plan: str
    rung: str
    role: Literal["current", "pinned"]
    gate: Gate
    device_s: float | None
    wall_s: float | None
    submit_s: float | None
    host_bound: bool | None
    rows: tuple[Row, ...]
    """Empty when the gate failed: no gate, no time."""
    tuned: tuple[Tuned, ...] = ()
    """Of a framework that measures its kernels before it chooses, where its log could be had."""

    @property
    def batch(self) -> int | None:
        """Sequences of its pass; None without rows."""
        return self.rows[0].batch if self.rows else None


@dataclass(frozen=True, slots=True)
class Window:
    """One stretch of measurement in which plans were run alternately."""

    number: int
    time_utc: str
    seconds: float
    device: DeviceFacts
    health: Health
    workload: str
    lanes: tuple[PlanResult, ...]
    comparison: Comparison | None = None
    stopped_because: str = ""
    """`interval narrow enough`, `time budget`, `one plan: spread narrow enough`, `stopped`."""
    advice: str = ""
    """The largest excess, its term, and what spends less of it, with a forecast."""
    verdict: str = ""
    """The comparison in words, or why there is none."""
    notes: tuple[str, ...] = ()
    pooled: Pooled | None = None
    """With earlier windows of this pair; None without a comparison, and in recordings."""

    def lane(self, role: str) -> PlanResult | None:
        return next((lane for lane in self.lanes if lane.role == role), None)
