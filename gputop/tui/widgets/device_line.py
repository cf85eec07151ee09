"""The lines at the top: what is measured on, in which state, and how fresh the screen is."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text

from gputop.results.records import DeviceFacts, Health
from gputop.tui.format import shortened
from gputop.tui.palette import BAD, CURRENT, FAINT, GOOD, MUTED, PINNED, TEXT
from gputop.tui.state import State
from gputop.tui.widgets.cached_static import CachedStatic
from gputop.util.printable import printable
from gputop.util.units import UNKNOWN, celsius, hertz, watts

LEAST_ASIDE = 12
"""Cells below which what goes on is left out beside the health; how the gate was passed never is."""
DOT = Text(" · ", Style(color=FAINT))


def age(seconds: float) -> str:
    """`3 s`, `2 min 05 s`, `1 h 02 min`."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def activity(state: State) -> Text:
    """What is going on, as a mark and a word."""
    if state.worker == "gone":
        return Text("✖ worker lost", Style(color=BAD, bold=True))
    if state.worker == "restarting":
        return Text("↻ worker restarting", Style(color=PINNED, bold=True))
    if state.worker == "starting":
        return Text(f"… {state.doing or 'starting'}", Style(color=CURRENT))
    if state.opened is not None and state.opened.device.recording:
        return Text("▷ replay", Style(color=PINNED, bold=True))
    if not state.measuring:
        return Text("■ stopped", Style(color=PINNED, bold=True))
    if state.lane is not None and not state.lane.gate.ok and not state.pending:
        return Text("■ gate FAIL", Style(color=BAD, bold=True))
    return Text("● measuring", Style(color=GOOD))


def who_line(state: State, width: int, now_s: float) -> Text:
    """Device, backend, workload and batch on the left; window, its age and the activity on the right."""
    right = activity(state)
    if state.shot is not None:
        window = state.shot.window
        # A recorded window is as old as its recording, which the line names.
        ago = "" if window.device.recording else f", {age(now_s - state.shot.at_s)} ago"
        fresh = f"window {window.number}{ago}"
        right = Text.assemble((fresh, Style(color=MUTED)), DOT, right)
    left = _who(state, max(0, width - right.cell_len - 2))
    return Text.assemble(left, " " * max(1, width - left.cell_len - right.cell_len), right)


def _who(state: State, room: int) -> Text:
    if state.opened is None:
        return Text(shortened("gputop", room), Style(color=TEXT, bold=True))
    facts, workload = state.opened.device, state.opened.workload
    batch = state.view.batch if state.view else workload.dims.batch
    backend = "" if facts.recording else f" · {facts.backend}"
    rest = f"{backend} · {workload.name} · batch {batch}"
    name = shortened(device_name(facts), max(8, room - len(rest)))
    line = Text.assemble((name, Style(color=TEXT, bold=True)), (rest, Style(color=MUTED)))
    line.truncate(room, overflow="ellipsis")
    return line


def device_name(facts: DeviceFacts) -> str:
    if facts.recording:
        return printable(facts.recording)
    name = printable(facts.name)
    return name if facts.index is None else f"{name} [{facts.index}]"


def health_line(health: Health, width: int) -> Text:
    """Clock, power, temperature, throttle and company; what can't be read here is a dash."""
    throttle = UNKNOWN if health.throttle is None else ", ".join(health.throttle) or "none"
    others = UNKNOWN if health.others is None else f"{len(health.others)} other" if health.others else "no"
    items = (
        ("clock", hertz(health.sm_clock_hz), False),
        ("power", watts(health.power_w), False),
        ("temp", celsius(health.temperature_c), False),
        ("throttle", throttle, bool(health.throttle)),
        ("shared", others, bool(health.others)),
    )
    line = Text(no_wrap=True)
    for label, value, alarming in items:
        mark = "! " if alarming else ""
        style = Style(color=PINNED if alarming else MUTED, bold=alarming)
        cell = Text.assemble((f"{label} ", Style(color=FAINT)), (mark + value, style))
        if line.cell_len + 2 + cell.cell_len > width:
            break
        line = Text.assemble(line, "  " if line else "", cell)
    return line


def gate_text(state: State, room: int) -> Text:
    """How the plan of the rows passed its gate, and where there is room its error and first two logits."""
    if state.lane is None or state.pending:
        return Text("")
    gate = state.lane.gate
    text = Text.assemble((gate.status, Style(color=GOOD if gate.ok else BAD, bold=not gate.ok)))
    error = "" if gate.pass_error is None else f" {gate.pass_error:.1e}"
    logits = "  logits " + " ".join(f"{logit:+.4f}" for logit in gate.logits[:2]) if gate.logits else ""
    for more, color in ((error, MUTED), (logits, FAINT)):
        if text.cell_len + len(more) > room:
            break
        text.append(more, Style(color=color))
    return text


def second_line(state: State, width: int, *, gate: bool) -> Text:
    """The health, and to its right the gate, for which the health gives way, or else what goes on."""
    health = state.window.health if state.window else Health()
    kept = gate_text(state, 0).cell_len if gate else 0
    line = health_line(health, width - kept - 2 if kept else width)
    room = max(0, width - line.cell_len - 2)
    aside = gate_text(state, room) if gate else Text(state.doing, Style(color=FAINT, italic=True))
    if not kept and room < LEAST_ASIDE:
        return line
    aside.truncate(room, overflow="ellipsis")
    return Text.assemble(line, " " * max(2, width - line.cell_len - aside.cell_len), aside)


class DeviceLine(CachedStatic):
    """One line, or two where there is height for the device's health."""

    def show(self, state: State, now_s: float, *, lines: int, gate: bool) -> None:
        """With `gate`, how the plan passed stands at the right, where no heading says it."""
        width = max(1, self.size.width)
        text = who_line(state, width, now_s)
        if lines > 1:
            text = Text("\n").join((text, second_line(state, width, gate=gate)))
        self.put(text)
