"""The user's own kernel since it was saved: its error at its line, or check, verdict and machine code."""

from __future__ import annotations

from collections.abc import Iterator

from rich.style import Style
from rich.text import Text
from textual.widgets import Static

from gputop.results.kernel_report import KernelReport, MachineCode, SourceFault
from gputop.results.records import Delta, Row
from gputop.tui.own_kernel import OwnKernel
from gputop.tui.palette import BAD, CURRENT, GOOD, MUTED, TEXT, VERDICTS
from gputop.tui.state import State
from gputop.util.units import UNKNOWN, ratio, scientific, seconds, size_bytes, whole

MARK = "▸"
"""Before the line at which the compiler stopped."""


def own_kernel_lines(state: State) -> tuple[Text, ...]:
    """Return what is known of the kernel, a line each; nothing if none was saved."""
    own = state.own
    return () if own is None else tuple(_lines(state, own))


def _lines(state: State, own: OwnKernel) -> Iterator[Text]:
    report = own.report
    if report.fault is not None:
        yield from _fault(report.fault)
    else:
        yield _outcome(own)
        if own.gate is not None and not own.gate.ok:
            yield Text("  No time is shown for a wrong answer.", Style(color=MUTED))
        yield from _verdict(state, report)
        yield from _code(report)
    for other in own.others:
        said = other.fault.why if other.fault else f"{other.kernel} compiles; save it by itself to try it."
        yield Text(said, Style(color=BAD if other.fault else MUTED))


def _fault(fault: SourceFault) -> Iterator[Text]:
    yield Text.assemble(("✖ ", Style(color=BAD, bold=True)), (fault.why, Style(color=TEXT)))
    for number, line in fault.lines:
        here = number == fault.line
        style = Style(color=TEXT, bold=True) if here else Style(color=MUTED)
        yield Text(f"{MARK if here else ' '} {number:>5}  {line.expandtabs(4)}", style)


def _outcome(own: OwnKernel) -> Text:
    gate = own.gate
    if own.lost:
        return _marked("✖", BAD, own.lost)
    if gate is None:
        return _marked(
            "…", CURRENT, f"{own.report.file} compiles. Its answer at {own.report.site} is checked."
        )
    if not gate.ok:
        return _marked("✖ FAIL", BAD, gate.where)
    error, allowed = scientific(gate.pass_error), f"{gate.tolerance:.0e}"
    return _marked("✔ PASS", GOOD, f"both checks; error {error} of {allowed} allowed.")


def _verdict(state: State, report: KernelReport) -> Iterator[Text]:
    """By the windows that paired the kernel with what it would replace."""
    window, pair, compared = state.window, state.shot.pair if state.shot else None, state.comparison
    if window is None or pair is None or pair.current != report.trial or compared is None:
        return
    deltas = (compared.at(report.site), compared.get("device"))
    yield from (_paired(delta) for delta in deltas if delta is not None)
    rows = [lane.rows for lane in (window.lane("pinned"), window.lane("current")) if lane]
    bound = [_bound(row) for lane in rows for row in lane if row.phase == report.site]
    if len(bound) == 2:
        yield Text(f"  binds      {bound[0]} → {bound[1]}", Style(color=MUTED))


def _paired(delta: Delta) -> Text:
    mark = VERDICTS[delta.verdict]
    said = f"{delta.phase:<10} {seconds(delta.a_s)} → {seconds(delta.b_s)}   {ratio(delta.ratio)}"
    if delta.ratio_lo is not None and delta.ratio_hi is not None:
        said += f" [{ratio(delta.ratio_lo)}, {ratio(delta.ratio_hi)}]"
    line = Text.assemble((f"{mark.symbol} ", Style(color=mark.color, bold=True)), (said, Style(color=TEXT)))
    line.append(f"  {delta.verdict}", Style(color=mark.color, bold=True))
    return line.append(f"  {delta.status}" if delta.status else "", Style(color=MUTED))


def _bound(row: Row) -> str:
    """What binds a site, and how many times its floor it takes."""
    times = f", {1 / row.efficiency:.2g} × floor" if row.efficiency else ""
    return f"{row.binds or UNKNOWN}{times}"


def _code(report: KernelReport) -> Iterator[Text]:
    """Registers, spills and instructions, of the kernel that it would replace and of it."""
    before, after = report.incumbent, report.code
    if after is None:
        return
    facts = [_facts(code) for code in (before, after) if code]
    told = (f"{name} {' → '.join(code[name] for code in facts)}" for name in facts[-1])
    yield Text(f"  {'   '.join(told)}", Style(color=MUTED))
    for code in filter(None, (before, after)):
        if code.mix:
            yield Text(f"  {_mix(code)}", Style(color=MUTED))


def _facts(code: MachineCode) -> dict[str, str]:
    return {
        "registers": whole(code.registers),
        "spilled": _bytes(code.spill_bytes),
        "shared": _bytes(code.smem_bytes),
        "code": _bytes(code.code_bytes),
    }


def _mix(code: MachineCode) -> str:
    most = ", ".join(f"{count} {opcode}" for opcode, count in code.mix)
    return f"{code.kernel}, {'main loop' if code.of_loop else 'all of it'}: {most}"


def _bytes(count: int | None) -> str:
    return UNKNOWN if count is None else size_bytes(count) if count else "none"


def _marked(mark: str, color: str, said: str) -> Text:
    return Text.assemble((f"{mark} ", Style(color=color, bold=True)), (said, Style(color=TEXT)))


class OwnKernelPane(Static):
    """Opens by itself when a kernel is saved; a key closes and opens it."""

    def __init__(self) -> None:
        super().__init__(id="own-kernel", markup=False)
        self._shown: OwnKernel | None = None

    def show(self, state: State) -> None:
        """Draw the kernel that was saved last; hidden as long as there is none."""
        own = state.own
        if own is None:
            self.display = False
            return
        if self._shown is None or self._shown.report is not own.report:
            self.display = True
        self._shown = own
        self.border_title = f"your kernel: {own.report.file}"
        self.update(Text("\n").join(own_kernel_lines(state)))
