"""What `/` can find besides actions: rungs, phases, kernels, toggles, columns, words and recordings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from gputop.results import columns, recording
from gputop.results.row_figures import binds_words
from gputop.tui import facts
from gputop.tui.palette import TERMS
from gputop.tui.screens.glossary import GLOSSARY
from gputop.tui.state import State
from gputop.util.units import seconds

Kind = Literal["rung", "plan", "phase", "kernel", "toggle", "column", "word", "recording"]


@dataclass(frozen=True, slots=True)
class Found:
    """One thing that can be found, and what choosing it takes."""

    kind: Kind
    name: str
    """A rung, a plan string, a site, a toggle, a column, a word, a recording; the kernel of a kernel."""
    doc: str
    value: str = ""
    """The toggle's value, or the kernel's site."""

    @property
    def title(self) -> str:
        """`rung flash`, `toggle pdl=on`, `kernel gemm_wmma/4 at w2`."""
        if self.kind == "toggle":
            return f"toggle {self.name}={self.value}"
        if self.kind == "kernel":
            return f"kernel {self.name} at {self.value}"
        return f"{self.kind} {self.name}"


def findable(state: State) -> Iterator[Found]:
    """Yield everything that can be found in this state, the nearest to the user's work first."""
    yield from _rungs(state)
    yield from _phases(state)
    yield from _toggles(state)
    yield from _kernels(state)
    for name in recording.shipped():
        yield Found("recording", name, "Open this recording")
    for column in columns.COLUMNS:
        yield Found("column", column.key, column.doc)
    for mark in TERMS:
        yield Found("word", mark.term, mark.meaning)
    for word, meaning in GLOSSARY:
        yield Found("word", word, meaning)


def _rungs(state: State) -> Iterator[Found]:
    for rung in state.rungs:
        entry = state.ladder.get(rung.id)
        time = f"{seconds(entry.device_s)}. " if entry and entry.device_s else ""
        yield Found("rung", rung.id, f"{time}{rung.refused or rung.idea}")
    for plan in state.tried:
        yield Found("plan", str(plan), "A plan that was tried")


def _phases(state: State) -> Iterator[Found]:
    for row in facts.shown_phases(state):
        near = f", {binds_words(row)}" if row.binds else ""
        yield Found("phase", row.phase, f"{seconds(row.time_s)}{near}: {row.kernel or 'no kernel named'}")


def _toggles(state: State) -> Iterator[Found]:
    for toggle in state.view.toggles if state.view else ():
        refused = dict(toggle.refused)
        for value in toggle.values:
            if value != toggle.value and value not in refused:
                yield Found("toggle", toggle.name, toggle.doc, value)


def _kernels(state: State) -> Iterator[Found]:
    for site in state.view.sites if state.view else ():
        yield Found("kernel", site.kernel.kernel, f"In use as {site.kernel}", site.site)
        for kernel in site.others:
            yield Found("kernel", kernel, "Choose it at this site", site.site)
