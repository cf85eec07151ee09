"""The lines at the top: what is measured on, in which state, and how fresh the screen is."""

from __future__ import annotations

from collections.abc import Iterator

from rich.style import Style
from rich.text import Text

from gputop.model import workloads
from gputop.results.host_words import others_words, quota_words, throttled_words
from gputop.results.records import DeviceFacts, Health
from gputop.tui.format import shortened
from gputop.tui.palette import BAD, CURRENT, FAINT, GOOD, MUTED, PINNED, TEXT
from gputop.tui.state import State
from gputop.tui.widgets.cached_static import CachedStatic
from gputop.util.printable import printable
from gputop.util.units import UNKNOWN, celsius, hertz, percent, seconds, watts

LEAST_ASIDE = 12
"""Cells below which what goes on is left out beside the health."""
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
    """Return what is going on, as a mark and a word."""
    if state.worker == "gone":
        return Text("✖ worker lost", Style(color=BAD, bold=True))
    if state.worker == "restarting":
        return Text("↻ worker restarting", Style(color=PINNED, bold=True))
    if state.worker == "starting":
        return Text(f"… {state.doing or 'starting'}", Style(color=CURRENT))
    if state.opened is not None and state.opened.device.recording:
        return Text("recording", Style(color=PINNED, bold=True))
    if not state.measuring:
        return Text("■ stopped", Style(color=PINNED, bold=True))
    if state.lane is not None and not state.lane.gate.ok and not state.pending:
        return Text("■ gate FAIL", Style(color=BAD, bold=True))
    return Text("● measuring", Style(color=GOOD))


def who_line(state: State, width: int, now_s: float) -> Text:
    """Return device, workload and batch, then the activity and, if there is room, the window with its age."""
    line = Text()
    for doing in _doings(state, now_s):
        line = Text.assemble(_who(state, max(0, width - doing.cell_len - DOT.cell_len)), DOT, doing)
        if _who(state, width).cell_len + DOT.cell_len + doing.cell_len <= width:
            break
    line.truncate(width, overflow="ellipsis")
    return line


def _doings(state: State, now_s: float) -> Iterator[Text]:
    """Yield what goes on, each shorter than the one before."""
    doing = activity(state)
    if state.shot is not None:
        window = state.shot.window
        number = Text(f"window {window.number}", Style(color=MUTED))
        numbered = number if state.replaying else Text.assemble(doing, DOT, number)
        if not window.device.recording:
            # A recorded window is as old as its recording, which the line names.
            yield Text.assemble(numbered, (f", {age(now_s - state.shot.at_s)} ago", Style(color=MUTED)))
        yield numbered
    else:
        yield doing


def _who(state: State, room: int) -> Text:
    if state.opened is None:
        return Text(shortened("gputop", room), Style(color=TEXT, bold=True))
    facts, workload = state.opened.device, state.opened.workload
    batch = state.view.batch if state.view else workload.dims.batch
    backend = "" if facts.recording else f" · {facts.backend}"
    math = f" · {state.view.math}" if state.view else ""
    rest = f"{backend} · {workloads.label(workload)} · batch {batch}{math}"
    name = shortened(device_name(facts, state.source), max(8, room - len(rest)))
    line = Text.assemble((name, Style(color=TEXT, bold=True)), (rest, Style(color=MUTED)))
    line.truncate(room, overflow="ellipsis")
    return line


def device_name(facts: DeviceFacts, source: str = "") -> str:
    """Return the device's name; of a recording its name, its day and the device that was measured on."""
    if facts.recording:
        return f"▷ {printable(source)} {printable(facts.recording.removeprefix('recording of '))}"
    name = printable(facts.name) + ("" if facts.index is None else f" [{facts.index}]")
    quota = quota_words(facts)
    return f"{name}, {quota}" if quota else name


def health_line(health: Health, width: int) -> Text:
    """Clock, what disturbs the host, power, temperature, throttle and company; a dash is unknown."""
    throttle = UNKNOWN if health.throttle is None else ", ".join(health.throttle) or "none"
    others = UNKNOWN if health.others is None else f"{len(health.others)} other" if health.others else "no"
    items = (
        ("clock", hertz(health.sm_clock_hz), False),
        *((label, words, True) for label, words in _host(health)),
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


def _host(health: Health) -> Iterator[tuple[str, str]]:
    """Return what disturbs the host; empty if nothing does."""
    if others_words(health):
        yield "others", f"{percent(health.others_cores)} of {health.host_cores} cores"
    if throttled_words(health):
        yield "quota", f"held back {seconds(health.throttled_s)}"


def health_text(state: State, width: int) -> Text:
    """Return the device's health, and to its right what goes on."""
    health = state.window.health if state.window else Health()
    line = health_line(health, width)
    room = max(0, width - line.cell_len - 2)
    if room < LEAST_ASIDE or state.replaying:
        return line
    aside = Text(state.doing, Style(color=FAINT, italic=True))
    aside.truncate(room, overflow="ellipsis")
    return Text.assemble(line, " " * max(2, width - line.cell_len - aside.cell_len), aside)


class DeviceLine(CachedStatic):
    """The first line, beside the names of the views."""

    _shows: tuple[State, float] | None = None

    def show(self, state: State, now_s: float) -> None:
        self._shows = state, now_s
        self._draw()

    def on_resize(self) -> None:
        """Draw for the new width: it changes with the view too, whose name is written out."""
        self._draw()

    def _draw(self) -> None:
        if self._shows is not None:
            state, now_s = self._shows
            self.put(who_line(state, max(1, self.content_size.width), now_s))


class HealthLine(CachedStatic):
    """Clock, power, temperature, and who else uses the device."""

    def show(self, state: State) -> None:
        self.put(health_text(state, max(1, self.app.size.width - self.gutter.width)))
