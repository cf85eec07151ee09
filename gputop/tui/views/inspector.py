"""One phase on a screen of its own: time by term, launch, occupancy, rates, its history, its check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.binding import BindingType

from gputop.results.records import Row
from gputop.tui import facts
from gputop.tui.actions import bindings_of
from gputop.tui.format import middle_cut, time_unit
from gputop.tui.palette import MUTED, TEXT
from gputop.tui.state import State, View
from gputop.tui.views.pane import ViewPane
from gputop.tui.widgets.detail import detail_text
from gputop.util.units import UNKNOWN, percent, scientific, seconds, si, size_bytes, whole

RATE_CEILINGS = (("dram_bytes", "dram", "dram_read", "B/s"), ("l2_bytes", "l2", "l2_read", "B/s"))


def inspector_text(state: State, width: int) -> Text:
    """Return everything that is known of the selected phase."""
    row = facts.selected_row(state)
    if row is None or state.lane is None:
        return Text("Nothing is measured yet.", Style(color=MUTED))
    sections = [
        detail_text(state, width, 14),
        _section("launch", _launch(row, state)),
        _section("rates", _rates(row, state)),
        _section("on the ladder", _history(state, row, width)),
        _section("measured", _measured(row)),
        _section("checked", _checked(state, row)),
        _section("notes", [row.status] if row.status else []),
    ]
    return Text("\n\n").join(section for section in sections if section.plain)


def _section(title: str, lines: list[str]) -> Text:
    if not lines:
        return Text("")
    text = Text.assemble((title, Style(color=TEXT, bold=True)))
    for line in lines:
        text.append(f"\n  {line}", Style(color=MUTED))
    return text


def _launch(row: Row, state: State) -> list[str]:
    if row.grid is None:
        return []
    sms = facts.sm_count(state)
    blocks, idle = facts.blocks_of(row), facts.idle_sms(row, sms)
    lines = [f"grid {row.grid}   block {row.block or UNKNOWN}   launches {whole(row.launches)}"]
    if blocks is not None and sms:
        filled = min(blocks, sms)
        bar = "█" * round(30 * filled / sms) + "░" * (30 - round(30 * filled / sms))
        lines.append(f"SMs with a block   {bar} {filled} of {sms}" + (f", {idle} idle" if idle else ""))
    if row.occupancy_theoretical is not None:
        share = row.occupancy_theoretical
        bar = "█" * round(30 * share) + "░" * (30 - round(30 * share))
        by = f", limited by {row.occupancy_limiters}" if row.occupancy_limiters else ""
        lines.append(f"warps an SM, most  {bar} {percent(share)}{by}")
    counted = percent(row.occupancy_achieved) if row.occupancy_achieved is not None else "not counted"
    lines.append(f"warps an SM, counted: {counted}")
    spilled = size_bytes(row.spill_bytes) if row.spill_bytes else "none"
    shared = size_bytes(row.smem_bytes) if row.smem_bytes is not None else UNKNOWN
    lines.append(f"registers {whole(row.registers)}   shared memory {shared}   spilled {spilled}")
    return lines


def _rates(row: Row, state: State) -> list[str]:
    if not row.time_s:
        return []
    lines = []
    if row.flops:
        lines.append(f"compute  {si(row.flops / row.time_s, 'FLOP/s')}")
    for field, name, ceiling, unit in RATE_CEILINGS:
        moved = getattr(row, field)
        if not moved:
            continue
        rate = moved / row.time_s
        roof = state.ceilings.get(ceiling) if state.ceilings else None
        share = f"   {percent(rate / roof)} of {si(roof, unit)}" if roof else ""
        lines.append(f"{name:<8} {si(rate, unit)}{share}")
    if row.moved_over_compulsory is not None:
        lines.append(f"asks L2 for {row.moved_over_compulsory:.2f} times the compulsory bytes")
    return lines


def _history(state: State, row: Row, width: int) -> list[str]:
    history = facts.site_history(state, row.phase)
    if len(history) < 2:
        return []
    largest = max(time_s for _, time_s in history)
    room = max(10, width - 40)
    return [
        f"{middle_cut(plan, 18):<18} {seconds(time_s):>9}  " + "━" * max(1, round(room * time_s / largest))
        for plan, time_s in history
    ]


def _measured(row: Row) -> list[str]:
    unit = time_unit([row.time_s])
    spread = f" ± {unit.write(row.time_mad_s)}" if row.time_mad_s is not None else ""
    lines = [
        f"{unit.write(row.time_s)}{spread} {unit.name}, {whole(row.count)} instances, "
        f"timer {row.timer or UNKNOWN}, caches {row.cache_state or UNKNOWN}, {row.samples} samples"
    ]
    if row.gap_s is not None or row.overlap_s is not None:
        lines.append(f"gap before {unit.write(row.gap_s)}   overlap {unit.write(row.overlap_s)} {unit.name}")
    if row.library_kernel:
        lines.append(f"library kernel {row.library_kernel_demangled or row.library_kernel}")
    return lines


def _checked(state: State, row: Row) -> list[str]:
    return list(_checks(state, row))


def _checks(state: State, row: Row) -> Iterator[str]:
    gate = state.lane.gate if state.lane else None
    if gate is None:
        return
    yield f"pass {gate.status}, error {scientific(gate.pass_error)} of {gate.tolerance:.0e} allowed"
    for check in gate.checks:
        if check.site == row.phase:
            error = scientific(check.error)
            yield f"this phase, layer {check.layer}: {error} of {check.tolerance:.0e} allowed"


class InspectorView(ViewPane):
    """← and → go to the next phase, k opens its kernels."""

    view: ClassVar[View] = "inspect"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of("inspect")

    def draw(self, state: State, width: int, height: int) -> Text:
        return inspector_text(state, width)

    def explain(self, state: State) -> str:
        return "← → other phases; k chooses another kernel; ↑ ↓ scroll; esc or 1 goes back."
