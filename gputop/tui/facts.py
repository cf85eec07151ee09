"""What the views say of the state: the selected phase, its history, the step to advise. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass

from gputop.results import phase_facts
from gputop.results.inspection import Inspection
from gputop.results.records import Row
from gputop.tui.state import State

LEAST_GAIN = 1.005
"""A ratio below this is no step to advise."""


def sm_count(state: State) -> int | None:
    """Return the SMs of the GPU that the window on the screen was measured on; None for a CPU."""
    return phase_facts.sm_count(state.window.device if state.window else None)


def shown_phases(state: State) -> tuple[Row, ...]:
    """Return the phases of the window on the screen as the user sorted them."""
    return phase_facts.sorted_phases(phase_facts.phases_of(state.lane), state.sort, state.ceilings)


def selected_row(state: State) -> Row | None:
    """Return the phase that every view is about: the selected one, else the one with the largest excess."""
    return phase_facts.chosen_phase(state.lane, state.site)


def site_history(state: State, row: Row) -> tuple[tuple[str, float], ...]:
    """Return (plan, time of a row's site in s) for every plan seen or recorded, in the ladder's order."""
    seen = (summary.shot.window for summary in state.seen.values())
    return phase_facts.site_history((*state.recorded, *seen), row, [rung.id for rung in state.rungs])


def inspection(state: State, row: Row) -> Inspection | None:
    """Return all that is known of a phase of the window on the screen; None before the first window."""
    if state.window is None or state.lane is None:
        return None
    return Inspection(
        row,
        state.window.device,
        state.lane.gate,
        state.ceilings,
        site_history(state, row),
        source_of(state, row.kernel),
    )


def source_of(state: State, kernel: str | None) -> str:
    """Return the file of a kernel below the checkout, if the ladder names it; else nothing."""
    for entry in state.ladder.values():
        for name, file in zip(entry.kernels, entry.files, strict=False):
            if file and kernel is not None and name.split("/")[0] == kernel.split("/")[0]:
                return f"kernels/{file}"
    return ""


@dataclass(frozen=True, slots=True)
class MeasuredStep:
    """A plan that was measured faster than the current one."""

    rung: str
    ratio: float
    """Time of the current plan / time of that one, of one sequence."""


def measured_step(state: State) -> MeasuredStep | None:
    """Return the best step from the current plan that the recorded ladder has measured, or None.

    A rung that changes the current plan comes before others; PyTorch and library baselines never count.
    """
    here = state.ladder.get(state.current_word or "")
    if here is None or not here.ratio_first:
        return None
    own = [
        entry
        for entry in state.ladder.values()
        if entry.kind == "ladder" and entry.gate.ok and entry.ratio_first and entry.batch == here.batch
    ]
    gains = {entry.rung: (entry.ratio_first or 0.0) / here.ratio_first for entry in own}
    steps = [entry for entry in own if entry.before == here.rung and entry.verdict != "SAME"]
    for candidates in (steps, own):
        best = max(candidates, key=lambda entry: gains[entry.rung], default=None)
        if best is not None and gains[best.rung] > LEAST_GAIN:
            return MeasuredStep(best.rung, gains[best.rung])
    return None
