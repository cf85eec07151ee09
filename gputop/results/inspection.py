"""All that one window tells of one phase, as sections of plain lines.

The inspector on the screen and `gputop inspect` show these lines, so that they can't disagree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from gputop.perf.block_shape import KNOBS, BlockShape, cliff_text
from gputop.perf.gpu_specs import SM_LIMITS
from gputop.results import phase_facts
from gputop.results.counters import Counted, counted_lines
from gputop.results.file_rows import phase_records
from gputop.results.kernel_code import KernelCode, code_lines, spilled
from gputop.results.records import Ceilings, DeviceFacts, Gate, PhaseCheck, Row
from gputop.util.units import UNKNOWN, flop, percent, scientific, seconds, si, size_bytes, whole

SCHEMA_INSPECT = "gputop.inspect/1"
BAR_CELLS = 30
MOST_BAR_CELLS = 60
LEVELS = (("dram_bytes", "dram", "dram_read"), ("l2_bytes", "l2", "l2_read"))
"""Column of bytes, its name, the ceiling that bounds their rate."""
LAUNCH_KEYS = ("grid", "block", "launches", "registers", "smem_bytes", "spill_bytes", "waves", "cubin")


@dataclass(frozen=True, slots=True)
class Inspection:
    """One phase of one plan in one window, and what is known around it."""

    row: Row
    device: DeviceFacts
    gate: Gate | None = None
    ceilings: Ceilings | None = None
    history: tuple[tuple[str, float], ...] = ()
    """(plan, time of this site in s) of other plans, in the ladder's order."""
    source: str = ""
    """`kernels/gemm/11_warpgroup.cu`; empty for a library's kernel and the cpu's."""
    code: tuple[KernelCode, ...] = ()
    """Machine code of the launches of one instance, if it was looked at."""
    why_no_code: str = ""
    counted: tuple[Counted, ...] = ()
    """What hardware counters gave of this site's launches, now or earlier; empty if nothing was counted."""

    @property
    def arch(self) -> str:
        """The GPU's architecture if its limits are known; else empty."""
        arch = self.device.arch or ""
        return arch if arch in SM_LIMITS else ""

    @property
    def shape(self) -> BlockShape | None:
        """What the kernel's blocks need; None if the launch is not known in full."""
        return phase_facts.block_shape(self.row)

    @property
    def occupancy_counted(self) -> float | None:
        """Mean warps an SM had / its most, as counted; None if nobody counted."""
        if self.row.occupancy_achieved is not None:
            return self.row.occupancy_achieved
        return self.counted[0].values.get("occupancy_achieved") if self.counted else None

    @property
    def checks(self) -> tuple[PhaseCheck, ...]:
        """The gate's checks of this phase."""
        return tuple(check for check in self.gate.checks if check.site == self.row.phase) if self.gate else ()


@dataclass(frozen=True, slots=True)
class Section:
    """Some lines under a title."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TermLine:
    """One line of the list that takes a phase's time apart."""

    label: str
    """`l2 40 %`, or `measured`, `floor`, `unexplained`."""
    term: str
    value_s: float | None
    aside: str = ""
    """The work behind it: `355 MB, 2.73× needed`."""


def heading(inspection: Inspection) -> str:
    """Return `w2 · gemm_warpgroup_56/8 · kernels/gemm/11_warpgroup.cu`."""
    row = inspection.row
    return " · ".join(
        part for part in (row.phase, row.kernel or "no kernel named", inspection.source) if part
    )


def term_lines(row: Row) -> tuple[TermLine, ...]:
    """Return the measured time, each term that is not 0, largest first, the floor, reach, and what is left.

    A term that equals the floor says so, and the floor then has no line of its own.
    """
    each = f"{seconds((row.time_s or 0.0) / row.count)} × {row.count}" if row.count else ""
    lines = [TermLine("measured", "measured", row.time_s, each)]
    shares = [item for item in phase_facts.term_shares(row) if item.value_s > 0]
    for item in shares:
        label = f"{item.term} {100 * item.share:.0f} %"
        asides = (_work(row, item.term), "= floor" if item.term == row.floor_term else "")
        lines.append(TermLine(label, item.term, item.value_s, " ".join(part for part in asides if part)))
    if row.floor_s is not None and row.floor_term not in [item.term for item in shares]:
        lines.append(TermLine("floor", "floor", row.floor_s, row.floor_term or ""))
    if row.reach_s is not None:
        lines.append(TermLine("reach", "reach", row.reach_s))
    if row.unexplained_s is not None:
        lines.append(TermLine("unexplained", "unexplained", row.unexplained_s))
    return tuple(lines)


def _work(row: Row, term: str) -> str:
    """Return the work behind a term."""
    if term == "l2" and row.l2_bytes is not None:
        moved = row.moved_over_compulsory
        return size_bytes(row.l2_bytes) + (f", {moved:.2f}× needed" if moved is not None else "")
    if term == "dram" and row.dram_bytes is not None:
        return size_bytes(row.dram_bytes)
    if term == "compute" and row.flops is not None:
        return flop(row.flops)
    return ""


def sections(inspection: Inspection, width: int) -> tuple[Section, ...]:
    """Return every section that has something to say, for lines of about `width` cells."""
    row = inspection.row
    every = (
        Section("launch", tuple(_launch(inspection))),
        Section("occupancy", tuple(_occupancy(inspection))),
        Section("rates", tuple(_rates(inspection))),
        Section("code", tuple(_code(inspection))),
        Section("counted", tuple(_counted(inspection))),
        Section("on the ladder", tuple(_history(inspection, width))),
        Section("measured", tuple(_measured(row))),
        Section("checked", tuple(_checked(inspection))),
        Section("notes", (row.status,) if row.status else ()),
    )
    return tuple(section for section in every if section.lines)


def _launch(inspection: Inspection) -> Iterator[str]:
    row = inspection.row
    if row.grid is None:
        return
    waves = f"   waves {row.waves:.2g}" if row.waves is not None else ""
    yield f"grid {row.grid}   block {row.block or UNKNOWN}   launches {whole(row.launches)}{waves}"
    shared = size_bytes(row.smem_bytes)
    yield f"registers {whole(row.registers)}   shared memory {shared}   spilled {spilled(row.spill_bytes)}"


def _occupancy(inspection: Inspection) -> Iterator[str]:
    """Yield what the grid gives the SMs, then the limit and its cause, then what was counted."""
    row, sms = inspection.row, phase_facts.sm_count(inspection.device)
    blocks, idle = phase_facts.extent_of(row.grid), phase_facts.idle_sms(row, sms)
    if blocks is not None and sms:
        filled = min(blocks, sms)
        yield f"SMs with a block   {_bar(filled / sms)} {filled} of {sms}" + (
            f", {idle} idle" if idle else ""
        )
    if row.occupancy_grid is not None:
        yield f"warps an SM, given {_bar(row.occupancy_grid)} {percent(row.occupancy_grid)}"
    if row.occupancy_theoretical is not None:
        share = row.occupancy_theoretical
        by = f", limited by {row.occupancy_limiters}" if row.occupancy_limiters else ""
        yield f"warps an SM, most  {_bar(share)} {percent(share)}{by}"
        yield from _cause(inspection, sms)
    if row.grid is not None:
        counted = inspection.occupancy_counted
        yield f"warps an SM, counted: {percent(counted) if counted is not None else 'not counted'}"


def _cause(inspection: Inspection, sms: int | None) -> Iterator[str]:
    """Yield how many blocks each limit allows, and from where on an SM would hold one more.

    Yield nothing if the calculator does not arrive at the driver's own figure: then it lacks something,
    such as a cluster or named barriers.
    """
    shape, arch = inspection.shape, inspection.arch
    found = shape.occupancy(arch) if shape and arch else None
    if shape is None or found is None:
        return
    most = SM_LIMITS[arch].warps_per_sm
    if abs(found.warps_per_sm / most - (inspection.row.occupancy_theoretical or 0.0)) > 1e-3:
        return
    if sms:
        yield f"warps an SM, by this grid: {shape.warps_given(arch, sms)} of {most} on the busiest SM"
    allowed = ", ".join(f"{name} {count}" for name, count in shape.allowed(arch).items())
    yield f"blocks an SM: {found.blocks_per_sm}, as the limits allow {allowed}"
    for knob in KNOBS:
        if knob.limit in found.limiters and (cliff := cliff_text(shape, knob, arch)) != "":
            yield f"{knob.title}: {cliff}"


def _bar(share: float) -> str:
    full = max(0, min(BAR_CELLS, round(BAR_CELLS * share)))
    return "█" * full + "░" * (BAR_CELLS - full)


def _rates(inspection: Inspection) -> Iterator[str]:
    row = inspection.row
    if not row.time_s:
        return
    if row.flops:
        yield f"compute  {si(row.flops / row.time_s, 'FLOP/s')}"
    for field, name, ceiling in LEVELS:
        moved = getattr(row, field)
        if not moved:
            continue
        rate = moved / row.time_s
        roof = inspection.ceilings.get(ceiling) if inspection.ceilings else None
        share = f"   {percent(rate / roof)} of {si(roof, 'B/s')}" if roof else ""
        yield f"{name:<8} {si(rate, 'B/s')}{share}"
    if row.moved_over_compulsory is not None:
        yield f"asks L2 for {row.moved_over_compulsory:.2f} times the compulsory bytes"


def _code(inspection: Inspection) -> Iterator[str]:
    for code in inspection.code:
        yield from code_lines(code)
    ran = inspection.row.cubin
    if ran and inspection.code and ran not in [code.cubin for code in inspection.code]:
        yield f"measured was another build, cubin {ran}: source or compiler have changed since"
    if inspection.why_no_code:
        yield inspection.why_no_code


def _counted(inspection: Inspection) -> Iterator[str]:
    for counted in inspection.counted:
        yield from counted_lines(counted, inspection.row)


def _history(inspection: Inspection, width: int) -> Iterator[str]:
    history = inspection.history
    if len(history) < 2:
        return
    largest_s = max(time_s for _, time_s in history)
    names = min(max(len(plan) for plan, _ in history), max(12, min(width, 120) // 3))
    room = min(MOST_BAR_CELLS, max(10, width - names - 20))
    for plan, time_s in history:
        name = plan if len(plan) <= names else f"{plan[: names - 1]}…"
        here = "▸" if plan == inspection.row.plan else " "
        yield f"{here}{name:<{names}} {seconds(time_s):>9}  " + "━" * max(1, round(room * time_s / largest_s))


def _measured(row: Row) -> Iterator[str]:
    spread = f" ± {seconds(row.time_mad_s)}" if row.time_mad_s is not None else ""
    yield (
        f"{seconds(row.time_s)}{spread}, {whole(row.count)} instances, "
        f"timer {row.timer or UNKNOWN}, caches {row.cache_state or UNKNOWN}, {row.samples} samples"
    )
    if row.gap_s is not None or row.overlap_s is not None:
        yield f"gap before {seconds(row.gap_s)}   overlap {seconds(row.overlap_s)}"
    if row.library_kernel:
        yield f"library kernel {row.library_kernel_demangled or row.library_kernel}"


def _checked(inspection: Inspection) -> Iterator[str]:
    gate = inspection.gate
    if gate is None:
        return
    yield f"pass {gate.status}, error {scientific(gate.pass_error)} of {gate.tolerance:.0e} allowed"
    for check in inspection.checks:
        error = scientific(check.error)
        yield f"this phase, layer {check.layer}: {error} of {check.tolerance:.0e} allowed"
        if (element := check.element) is not None:
            place = f"element {element.row}, {element.column} of layer {element.layer}"
            yield f"{place}: {scientific(element.error)} of {scientific(element.bound)} by rounding"


def inspection_record(inspection: Inspection) -> Mapping[str, object]:
    """Return the same facts as raw SI values for JSON (`gputop.inspect/1`); None is unknown."""
    row, sms, shape, arch = (
        inspection.row,
        phase_facts.sm_count(inspection.device),
        inspection.shape,
        inspection.arch,
    )
    known = {key: value for key, value in next(iter(phase_records((row,)))).items() if key != "schema"}
    blocks = phase_facts.extent_of(row.grid)
    return {
        "schema": SCHEMA_INSPECT,
        "phase_columns": known,
        "source": inspection.source or None,
        "terms": [asdict(item) for item in phase_facts.term_shares(row)],
        "launch": {key: known[key] for key in LAUNCH_KEYS},
        "occupancy": {
            "sm_count": sms,
            "sms_with_a_block": min(blocks, sms) if blocks is not None and sms else None,
            "idle_sms": phase_facts.idle_sms(row, sms),
            "given": row.occupancy_grid,
            "limit": row.occupancy_theoretical,
            "limiters": row.occupancy_limiters,
            "blocks_by_limit": shape.allowed(arch) if shape and arch else {},
            "counted": inspection.occupancy_counted,
        },
        "rates_per_s": {
            name: getattr(row, field) / row.time_s if row.time_s and getattr(row, field) else None
            for field, name in (("flops", "flops"), *((field, field) for field, _, _ in LEVELS))
        },
        "code": [asdict(code) for code in inspection.code],
        "counted": [
            {**asdict(counted.launch), "values": dict(counted.values)} for counted in inspection.counted
        ],
        "history_s": dict(inspection.history),
        "checks": [asdict(check) for check in inspection.checks],
    }
