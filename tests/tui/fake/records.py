"""A canned run of a small ladder: the same numbers every time, made by arithmetic on a table of phases."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gputop.plan.choices import Candidate, PlanView, RungView, SiteChoices, SiteView, ToggleView
from gputop.plan.types import Dims, KernelChoice, Plan, PlanRequest, Verdict, Workload
from gputop.results.records import (
    SCHEMA_PHASES,
    Ceiling,
    Ceilings,
    Comparison,
    Delta,
    DeviceFacts,
    Gate,
    Health,
    PhaseCheck,
    PlanResult,
    Row,
    Window,
)

WORKLOAD = Workload("gpt2-small", Dims(12, 768, 12, 3072, 128, 256))
TIME_UTC = "2026-01-02T03:04:05Z"
DEVICE = DeviceFacts("cpu", "AMD EPYC 9R14", sm_count=2, versions="numpy 2.4.6")
CEILINGS = Ceilings(
    DEVICE.name,
    None,
    TIME_UTC,
    (Ceiling("dram_read", 2e10, "B/s", "read"), Ceiling("fp32", 6e11, "FLOP/s", "sgemm")),
)
HEALTH = Health(sm_clock_hz=3.7e9)
NO_COPY = "there is one copy of the weights on this backend"
WRONG_KERNEL = "gemm-wrong"
"""A kernel whose plan fails its gate."""


@dataclass(frozen=True, slots=True)
class Canned:
    """One phase: what it takes at speed 1, and what physics asks."""

    name: str
    count: int
    time_s: float
    floor_s: float
    binds: str


PHASES = (
    Canned("embed", 1, 40e-6, 12e-6, "dram"),
    Canned("ln1", 12, 0.9e-3, 0.31e-3, "latency"),
    Canned("qkv", 12, 8.1e-3, 6.6e-3, "compute"),
    Canned("attention", 12, 4.7e-3, 0.6e-3, "unknown"),
    Canned("wo", 12, 2.9e-3, 2.2e-3, "compute"),
    Canned("ln2", 12, 0.9e-3, 0.31e-3, "latency"),
    Canned("w1", 12, 11.2e-3, 8.8e-3, "compute"),
    Canned("w2", 12, 13.4e-3, 8.8e-3, "dram"),
    Canned("lnf", 1, 60e-6, 20e-6, "latency"),
    Canned("head", 1, 30e-6, 33e-6, "dram"),
)

RUNGS = (
    RungView("cpu-loops", 0, "ladder", "One core, plain loops over rows: the pass before anything was done."),
    RungView(
        "cpu-transposed",
        1,
        "ladder",
        "Weights turned so that the inner loop reads them in order.",
        before="cpu-loops",
    ),
    RungView("cpu-blas", 2, "ladder", "Every product handed to BLAS on one thread."),
    RungView("cpu-threads", 3, "ladder", "The same products on every core."),
    RungView("cpu-fused", 4, "ladder", "Query, key and value as one product of three times the width."),
    RungView("cpu-folded", 5, "ladder", "Layernorm's scale and shift moved into the weights that follow."),
    RungView("cpu-pruned", 6, "ladder", "In the last layer only the last token is computed."),
    RungView("torch-eager", 6, "peer", "The same weights in PyTorch.", "PyTorch is not installed here."),
)
SPEEDS = {
    "cpu-loops": 0.08,
    "cpu-transposed": 0.079,
    "cpu-blas": 1.0,
    "cpu-threads": 1.71,
    "cpu-fused": 1.79,
    "cpu-folded": 1.84,
    "cpu-pruned": 1.97,
}


SLOW = ("cpu-loops", "cpu-transposed")
FUSED = ("cpu-fused", "cpu-folded", "cpu-pruned")


def view_of(request: PlanRequest) -> PlanView:
    """The plan as a worker would resolve it."""
    sets = dict(request.sets)
    threads = "1" if request.rung in (*SLOW, "cpu-blas") else "all"
    toggles = (
        ToggleView("threads", sets.get("threads", threads), ("1", "all"), doc="Threads that BLAS may use"),
        ToggleView(
            "prune", sets.get("prune", "off"), ("off", "on"), doc="Last layer for the last token only"
        ),
        ToggleView(
            "fold", sets.get("fold", "off"), ("off", "on"), doc="Layernorm folded into the next weights"
        ),
        ToggleView(
            "layout", "row", ("row", "transposed"), (("transposed", NO_COPY),), "How weights are stored"
        ),
        ToggleView("batch", sets.get("batch", "1"), (), doc="Sequences in one pass"),
    )
    dispatch = dispatch_of(request)
    sites = tuple(
        SiteView(site, choice, ("gemm-loops", WRONG_KERNEL) if is_gemm(site) else ())
        for site, choice in dispatch
    )
    kept = tuple(
        (name, value) for name, value in request.sets if value != ("off" if name != "threads" else threads)
    )
    plan = Plan(
        "cpu",
        replace(request, sets=kept),
        dispatch,
        layout="transposed" if request.rung == "cpu-transposed" else "row",
        threads="1" if sets.get("threads", threads) == "1" else "all",
        fused_qkv=request.rung in FUSED,
        fold=sets.get("fold", "on" if request.rung in FUSED[1:] else "off") == "on",
        prune=sets.get("prune", "on" if request.rung in FUSED[2:] else "off") == "on",
        batch=int(sets.get("batch", "1")),
    )
    return PlanView(plan, toggles, sites)


def dispatch_of(request: PlanRequest) -> tuple[tuple[str, KernelChoice], ...]:
    """Every site with its kernel."""
    uses, slow = dict(request.uses), request.rung in SLOW
    own = {
        phase.name: "gemm-loops" if slow and is_gemm(phase.name) else kernel_of(phase.name)
        for phase in PHASES
    }
    return tuple((site, uses.get(site, KernelChoice(kernel))) for site, kernel in own.items())


def choices_of(request: PlanRequest, site: str) -> SiteChoices:
    """The kernels of one site as a worker would list them."""
    own = dict(dispatch_of(request))[site]
    others = tuple(use for use in request.uses if use[0] != site)
    names = (kernel_of(site), "gemm-loops", WRONG_KERNEL) if is_gemm(site) else (kernel_of(site),)
    candidates = tuple(
        Candidate(
            KernelChoice(name),
            replace(
                request,
                uses=others if name == kernel_of(site) else (*others, (site, KernelChoice(name))),
            ),
        )
        for name in names
    )
    why = f"gemm-wide can't serve {site}: needs 64 columns, this has 16"
    return SiteChoices(site, own, candidates, (("gemm-wide", why),) if is_gemm(site) else ())


def is_gemm(phase: str) -> bool:
    return phase in ("qkv", "wo", "w1", "w2", "head")


def kernel_of(phase: str) -> str:
    return "gemm-blas" if is_gemm(phase) else f"{phase.rstrip('12f')}-numpy"


def speed(request: PlanRequest) -> float:
    sets = dict(request.sets)
    gain = 1.7 if sets.get("threads") == "all" else 1.0
    return SPEEDS[request.rung] * gain * (1.08 if sets.get("prune") == "on" else 1.0)


def fails(request: PlanRequest) -> bool:
    return any(choice.kernel == WRONG_KERNEL for _, choice in request.uses)


def gate_of(request: PlanRequest) -> Gate:
    if not fails(request):
        return Gate("PASS", 3.1e-7, 1e-5, (0.1234, -0.5678))
    site = next(site for site, choice in request.uses if choice.kernel == WRONG_KERNEL)
    where = f"{site} in layer 3: row 17 is off by 4.2e-02, allowed 1.0e-05."
    return Gate("FAIL", 4.2e-2, 1e-5, (0.9, 0.9), (PhaseCheck(site, 3, 4.2e-2, 1e-5),), where)


def window_of(number: int, current: PlanRequest, pinned: PlanRequest | None) -> Window:
    """One window of one plan, or of two."""
    lanes: tuple[PlanResult, ...] = (lane_of(number, current, "current", pinned),)
    comparison = None
    verdict = "One plan was measured"
    if pinned is not None:
        lanes += (lane_of(number, pinned, "pinned", None),)
        device = delta_of("device", current, pinned)
        if not (fails(current) or fails(pinned)):
            comparison = Comparison(view_of(pinned).word, view_of(current).word, 1, (device,))
            verdict = (
                f"{view_of(current).word} is {device.verdict} than {view_of(pinned).word}: "
                f"{device.ratio:.2f}× (99 % interval {device.ratio_lo:.2f} to {device.ratio_hi:.2f})"
            )
        else:
            verdict = "No comparison: a plan failed its gate"
    advice = "w2 has the largest excess: 4.6 ms over its floor, by dram. threads=all is forecast to win 9 ms."
    return Window(
        number,
        TIME_UTC,
        1.0,
        DEVICE,
        HEALTH,
        WORKLOAD.name,
        lanes,
        comparison,
        "interval narrow enough",
        "" if fails(current) else advice,
        verdict,
    )


def lane_of(number: int, request: PlanRequest, role: str, pinned: PlanRequest | None) -> PlanResult:
    rows = () if fails(request) else rows_of(number, request, pinned)
    device_s = None if fails(request) else device_time(request)
    return PlanResult(
        view_of(request).word,
        request.rung,
        "current" if role == "current" else "pinned",
        gate_of(request),
        device_s,
        None if device_s is None else device_s * 1.004,
        None,
        False,
        rows,
    )


def device_time(request: PlanRequest) -> float:
    return sum(phase.time_s for phase in PHASES) / speed(request) + 80e-6


def delta_of(phase: str, current: PlanRequest, pinned: PlanRequest) -> Delta:
    if phase == "device":
        a_s, b_s = device_time(pinned), device_time(current)
    else:
        base = next(item.time_s for item in PHASES if item.name == phase)
        a_s, b_s = base / speed(pinned), base / speed(current)
    ratio = a_s / b_s
    verdict: Verdict = "FASTER" if ratio > 1.01 else "SLOWER" if ratio < 0.99 else "SAME"
    margin = 0.01 * a_s
    return Delta(
        phase, a_s, b_s, b_s - a_s, b_s - a_s - margin, b_s - a_s + margin,
        ratio, ratio * 0.99, ratio * 1.01, 24, 0.004, verdict,
    )  # fmt: skip


def rows_of(number: int, request: PlanRequest, pinned: PlanRequest | None) -> tuple[Row, ...]:
    view = view_of(request)
    base = Row(
        SCHEMA_PHASES, TIME_UTC, number, 24, "cpu", DEVICE.name, None, WORKLOAD.name, 1, 128,
        request.rung, view.word, "", gate="PASS", gate_error=3.1e-7, logit0=0.1234, logit1=-0.5678,
        pinned_plan=view_of(pinned).word if pinned else None,
    )  # fmt: skip
    rows = [_phase_row(base, phase, view, request, pinned) for phase in PHASES]
    sum_s = sum(row.time_s or 0.0 for row in rows)
    floor_s = sum(phase.floor_s for phase in PHASES)
    device_s = device_time(request)
    totals = {"sum": sum_s, "gaps": 60e-6, "device": device_s, "wall": device_s * 1.004, "residual": 20e-6}
    for name, time_s in totals.items():
        row = replace(base, phase=name, time_s=time_s, timer="perf_counter")
        if name in ("sum", "device"):
            row = replace(row, floor_s=floor_s, efficiency=floor_s / time_s)
        if name == "device" and pinned is not None:
            row = _with_delta(row, delta_of("device", request, pinned))
        rows.append(row)
    return tuple(rows)


def _phase_row(
    base: Row, phase: Canned, view: PlanView, request: PlanRequest, pinned: PlanRequest | None
) -> Row:
    time_s = phase.time_s / speed(request)
    kernel = next(str(site.kernel) for site in view.sites if site.site == phase.name)
    row = replace(
        base, phase=phase.name, count=phase.count, kernel=kernel, time_s=time_s, time_mad_s=time_s * 0.01,
        timer="perf_counter", floor_s=phase.floor_s, floor_term="compute", efficiency=phase.floor_s / time_s,
        binds=phase.binds, binds_share=0.6, runner_up="launch", unexplained_s=0.2 * time_s,
        compute_s=phase.floor_s,
        dram_s=0.8 * time_s if phase.binds == "dram" else 0.3 * time_s, launch_s=phase.count * 1e-6,
        flops=6e11 * phase.floor_s, dram_bytes=2e9 * phase.floor_s,
    )  # fmt: skip
    return _with_delta(row, delta_of(phase.name, request, pinned)) if pinned is not None else row


def _with_delta(row: Row, delta: Delta) -> Row:
    return replace(
        row,
        delta_s=delta.delta_s,
        delta_lo_s=delta.delta_lo_s,
        delta_hi_s=delta.delta_hi_s,
        ratio=delta.ratio,
        verdict=delta.verdict,
    )
