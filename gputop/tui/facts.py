"""What the views say of the state: the selected phase, its history, the step to advise. Pure functions."""

from __future__ import annotations

from gputop.results import phase_facts
from gputop.results.inspection import Inspection
from gputop.results.kernel_code import known_code
from gputop.results.records import Row
from gputop.tui.phase_sort import sorted_phases
from gputop.tui.state import State


def sm_count(state: State) -> int | None:
    """Return the SMs of the GPU that the window on the screen was measured on; None for a CPU."""
    return phase_facts.sm_count(state.window.device if state.window else None)


def shown_phases(state: State) -> tuple[Row, ...]:
    """Return the phases of the window on the screen as the user sorted them."""
    rows = phase_facts.phases_of(state.lane)
    return sorted_phases(rows, state.sort, state.sorted_backwards)


def selected_row(state: State) -> Row | None:
    """Return the phase that every view is about: the selected one, else the one with the largest excess."""
    return phase_facts.chosen_phase(state.lane, state.site)


def site_history(state: State, row: Row) -> tuple[tuple[str, float], ...]:
    """Return (plan, time of a row's site in s) for every plan seen or recorded, in the ladder's order."""
    return phase_facts.site_history(state.known_windows, row, [rung.id for rung in state.rungs])


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
        known_code(state.window.device.arch or "", (row.kernel or "").split("/")[0]),
    )


def source_of(state: State, kernel: str | None) -> str:
    """Return the file of a kernel below the checkout, if the ladder names it; else nothing."""
    for entry in state.ladder.values():
        for name, file in zip(entry.kernels, entry.files, strict=False):
            if file and kernel is not None and name.split("/")[0] == kernel.split("/")[0]:
                return f"kernels/{file}"
    return ""


def ladder_ratio(state: State, word: str) -> float | None:
    """Return the pinned plan's time / this one's, of one sequence, if the recorded ladder has both."""
    entry, pinned = state.ladder.get(word), state.ladder.get(state.pinned_word or "")
    if entry is None or pinned is None or not entry.ratio_first or not pinned.ratio_first:
        return None
    return entry.ratio_first / pinned.ratio_first
