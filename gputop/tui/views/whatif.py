"""What another launch, batch, math or card would do for the selected phase, by keys.

Occupancy is the calculator's, for the architecture. Times are the model's, in a recording: they wear ≈.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.binding import BindingType
from textual.message import Message

from gputop.perf import gpu_specs
from gputop.perf.block_shape import KNOBS, BlockShape, cliff_text, next_cliff, occupancy_figures, turned
from gputop.results.phase_facts import block_shape
from gputop.results.records import Row
from gputop.results.whatif import FROM_MODEL, SiteChange, WhatIfAsked, time_notes, time_rows
from gputop.tui import facts
from gputop.tui.actions import bindings_of
from gputop.tui.palette import BAD, CURRENT, FAINT, GOOD, MUTED, PINNED, TEXT
from gputop.tui.state import State, View, WhatIfAnswer
from gputop.tui.views.pane import ViewPane
from gputop.tui.views.whatif_knobs import PRICE_KNOBS, Subject, subject_of

TITLE_WIDTH, VALUE_WIDTH = 22, 16


@dataclass(frozen=True, slots=True)
class Turned:
    """What the user has turned, of which phase."""

    row: Row | None = None
    shape: BlockShape | None = None
    """None: the launch is not known."""
    prices: Mapping[str, str] = field(default_factory=dict)
    """Field of a knob of `PRICE_KNOBS` -> its value, if that is not the recorded one."""

    @classmethod
    def of(cls, row: Row | None) -> Turned:
        return cls(row, block_shape(row) if row is not None else None)


def whatif_text(state: State, change: Turned, chosen: int, width: int) -> Text:
    """Return the knobs, the occupancy and the times of the selected phase, as measured and as turned."""
    row = facts.selected_row(state)
    if row is None or state.window is None:
        return Text("Nothing is measured yet.", Style(color=MUTED))
    arch, sm_count = _chip(state, change)
    subject = subject_of(state, row.phase)
    if not arch or (change.shape is None and subject is None):
        return Text(
            f"{row.phase}: its launch is not known here (a CPU, or a library that does not say), so there is "
            "nothing to turn.",
            Style(color=MUTED),
        )
    parts = [
        Text.assemble(
            (f"what-if · {row.phase} · {row.kernel}", Style(color=TEXT, bold=True)),
            (_other_kernel(state, change), Style(color=PINNED, bold=True)),
            (f"   from the model, not measured {FROM_MODEL}", Style(color=MUTED)),
        ),
        Text("\n").join(_knob_lines(row, subject, change, chosen, arch)),
    ]
    measured = block_shape(row)
    if measured is not None and change.shape is not None:
        here = state.window.device
        before = occupancy_figures(measured, here.arch or "", here.sm_count or 0)
        after = occupancy_figures(change.shape, arch, sm_count)
        figures = [(title, one, after[title]) for title, one in before.items()]
        parts.append(Text("\n").join(_table(("occupancy", "measured", "what-if"), figures)))
    if subject is not None:
        parts.append(Text("\n").join(_times(state, subject, change)))
    else:
        said = "  times are forecast in a recording only; here a change can be measured"
        parts.append(Text(said, Style(color=FAINT)))
    text = Text("\n\n").join(parts)
    text.no_wrap = True
    return text


def _other_kernel(state: State, change: Turned) -> str:
    """Return ` → gemm_tiles/4` if the changed plan computes the site by another kernel."""
    site = site_of(state.whatif, change.row.phase) if state.whatif and change.row and change.prices else None
    return f" → {site.kernels[1]}" if site is not None and site.kernels[0] != site.kernels[1] else ""


def _chip(state: State, change: Turned) -> tuple[str, int]:
    """Return architecture and SMs of the card that is asked about; no architecture for a CPU."""
    device = state.window.device if state.window else None
    name = change.prices.get("device")
    if name is not None:
        model = gpu_specs.model(name)
        return model.arch, model.sm_count
    arch = device.arch if device is not None else None
    return (arch, device.sm_count or 0) if device and arch and arch.startswith("sm_") else ("", 0)


def _knob_lines(row: Row, subject: Subject | None, change: Turned, chosen: int, arch: str) -> Iterator[Text]:
    measured = block_shape(row)
    for number, knob in enumerate(KNOBS):
        if measured is None or change.shape is None:
            yield _knob_line(number == chosen, knob.title, "not known", "", "")
            continue
        before, value = (getattr(shape, knob.field) for shape in (measured, change.shape))
        was = f"measured: {knob.write(before)}" if value != before else ""
        cliff = cliff_text(change.shape, knob, arch)
        yield _knob_line(number == chosen, knob.title, knob.write(value), was, cliff)
    if subject is None:
        return
    for number, price in enumerate(PRICE_KNOBS, len(KNOBS)):
        own = price.recorded(subject)
        value = change.prices.get(price.field, own)
        was = f"recorded: {own}" if value != own else ""
        yield _knob_line(number == chosen, price.title, value or "none here", was, "")


def _knob_line(here: bool, title: str, value: str, was: str, cliff: str) -> Text:
    line = Text(f"{'▸' if here else ' '} {title:<{TITLE_WIDTH}}")
    line.stylize(Style(color=CURRENT if here else MUTED, bold=here))
    line.append(f"{value:>{VALUE_WIDTH}}", Style(color=PINNED if was else TEXT))
    for said, color in ((was, FAINT), (cliff, GOOD)):
        if said:
            line.append(f"   {said}", Style(color=color, bold=False))
    return line


def _times(state: State, subject: Subject, change: Turned) -> Iterator[Text]:
    answer = state.whatif
    if answer is None or answer.asked != subject.asked(change.prices):
        yield Text("  the model is being asked …", Style(color=FAINT))
        return
    site = site_of(answer, subject.site)
    if answer.found is None or site is None:
        why = answer.refused or f"{subject.site} is not in the changed plan"
        yield Text(f"  × {why}", Style(color=BAD))
        return
    yield from _table(("time in one pass", "now", "what-if"), list(time_rows(answer.found, site)))
    for note in time_notes(answer.found, site):
        yield Text(f"  {note}", Style(color=MUTED))
    if answer.found.is_shape_alone:
        yield Text("  registers, shared memory, block and grid move no time of the model", Style(color=MUTED))


def site_of(answer: WhatIfAnswer, site: str) -> SiteChange | None:
    """Return one site of what the model answered, if both plans have it."""
    sites = answer.found.sites if answer.found else ()
    return next((item for item in sites if item.site == site), None)


def _table(titles: tuple[str, str, str], rows: list[tuple[str, str, str]]) -> Iterator[Text]:
    yield Text(_cells(titles), Style(color=MUTED))
    for row in rows:
        yield Text(_cells(row), Style(color=MUTED if row[1] == row[2] else PINNED))


def _cells(row: tuple[str, str, str]) -> str:
    return f"  {row[0]:<{TITLE_WIDTH}}{row[1]:>{VALUE_WIDTH}}{row[2]:>{VALUE_WIDTH + 8}}"


class WhatIfView(ViewPane):
    """↑ ↓ choose a knob, ← → turn it, r takes what was measured again."""

    view: ClassVar[View] = "whatif"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of("whatif")

    class Asks(Message):
        """The model's answer is wanted."""

        def __init__(self, asked: WhatIfAsked) -> None:
            super().__init__()
            self.asked = asked

    def __init__(self) -> None:
        super().__init__()
        self.chosen = 0
        self.change = Turned()
        self._taken: WhatIfAnswer | None = None
        """The answer whose launch shape the knobs have taken."""
        self._asked: WhatIfAsked | None = None

    def draw(self, state: State, width: int, height: int) -> Text:
        row = facts.selected_row(state)
        if row != self.change.row:
            self.change = Turned.of(row)
        self._ask(state)
        self._take_shape(state)
        return whatif_text(state, self.change, self.chosen, width)

    def _ask(self, state: State) -> None:
        """Ask for the times of what is turned, once."""
        row = self.change.row
        subject = subject_of(state, row.phase) if row is not None else None
        asked = subject.asked(self.change.prices) if subject is not None else None
        if asked is not None and asked != self._asked:
            self.post_message(self.Asks(asked))
        self._asked = asked

    def _take_shape(self, state: State) -> None:
        """Take the launch that the changed plan has: other parts or another batch make another grid."""
        answer, row = state.whatif, self.change.row
        if answer is None or answer is self._taken or answer.asked != self._asked or row is None:
            return
        self._taken = answer
        site = site_of(answer, row.phase)
        if site is not None and self.change.prices:
            self.change = Turned(row, site.shape[1], self.change.prices)

    def explain(self, state: State) -> str:
        return "↑ ↓ choose what to turn, ← → turn it, n goes to its next cliff, r takes what was measured."

    def action_knob(self, step: int) -> None:
        count = len(KNOBS) + (len(PRICE_KNOBS) if self._subject else 0)
        self.chosen = (self.chosen + step) % count
        self.show(self._state)

    def action_turn(self, steps: int) -> None:
        change, subject = self.change, self._subject
        arch, _ = _chip(self._state, change)
        if self.chosen >= len(KNOBS) and subject is not None:
            knob = PRICE_KNOBS[self.chosen - len(KNOBS)]
            own = knob.recorded(subject)
            value = knob.turned(subject, change.prices.get(knob.field, own), steps)
            prices = {**change.prices, knob.field: value}
            if value == own:
                del prices[knob.field]
            self.change = Turned(change.row, Turned.of(change.row).shape, prices)
            self._taken = None
        elif change.shape is not None and arch:
            shape = turned(change.shape, KNOBS[self.chosen], steps, arch)
            self.change = Turned(change.row, shape, change.prices)
        self.show(self._state)

    def action_cliff(self) -> None:
        shape = self.change.shape
        arch, _ = _chip(self._state, self.change)
        if shape is None or not arch or self.chosen >= len(KNOBS):
            return
        cliff = next_cliff(shape, KNOBS[self.chosen].field, arch)
        if cliff is not None:
            self.change = Turned(self.change.row, cliff, self.change.prices)
            self.show(self._state)

    def action_reset(self) -> None:
        self.change = Turned.of(self.change.row)
        self.show(self._state)

    @property
    def _subject(self) -> Subject | None:
        row = self.change.row
        return subject_of(self._state, row.phase) if row is not None else None
