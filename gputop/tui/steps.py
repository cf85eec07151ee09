"""What was measured against the current plan: every plan paired with it, and the best step from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gputop.results.records import Comparison
from gputop.tui.state import State
from gputop.util.interval import Interval

LEAST_GAIN = 1.005
"""A ratio below this is no step to advise."""
TURNED = {"FASTER": "SLOWER", "SLOWER": "FASTER"}
"""A verdict -> the verdict of the same pair the other way round, if that differs."""


@dataclass(frozen=True, slots=True)
class Step:
    """A plan that was paired with the current one."""

    plan: str
    """Its plan string."""
    gain: Interval
    """Time of the current plan / time of that one: above 1, that one is faster."""
    verdict: str
    aa_floor: float | None

    @property
    def ratio(self) -> float:
        return self.gain.value or 0.0


def measured_steps(state: State) -> tuple[Step, ...]:
    """Return every plan that was paired with the current one, the fastest first.

    Windows come before the recorded ladder: they are of the two plans alone. Those of one pair are pooled.
    """
    word = state.current_word or ""
    found = {step.plan: step for step in _ladder_steps(state, word)}
    recorded = (window.comparison for window in state.recorded if window.comparison)
    for pair in (*recorded, *state.pooled.values()):
        step = _pair_step(pair, word)
        if step is not None:
            found[step.plan] = step
    return tuple(sorted(found.values(), key=lambda step: -step.ratio))


def same_question(state: State, steps: Iterable[Step]) -> tuple[Step, ...]:
    """Return the steps to plans of as many sequences: a pass of more answers another question."""
    batches = {
        lane.plan: lane.rows[0].batch for window in state.known_windows for lane in window.lanes if lane.rows
    }
    own = batches.get(state.current_word or "")
    return tuple(step for step in steps if batches.get(step.plan, own) == own)


def best_step(state: State) -> Step | None:
    """Return the best step from the current plan that was measured, or None.

    A rung that changes the current plan comes before others; frameworks and library baselines never count.
    """
    paired = [
        step
        for step in same_question(state, measured_steps(state))
        if step.verdict == "FASTER" and step.ratio > LEAST_GAIN and _is_own(state, step.plan)
    ]
    return max(paired or _later_rungs(state), key=lambda step: step.ratio, default=None)


def _is_own(state: State, word: str) -> bool:
    rung = state.rung(word.partition(",")[0])
    return rung is not None and rung.kind == "ladder"


def _later_rungs(state: State) -> Iterator[Step]:
    """Yield what the recorded ladder has measured faster than the current plan if no change of it was.

    Its ratios go through the ladder's first rung, so they have no interval of their own.
    """
    here = state.ladder.get(state.current_word or "")
    if here is None or not here.ratio_first:
        return
    for entry in state.ladder.values():
        if entry.kind != "ladder" or not entry.gate.ok or not entry.ratio_first or entry.batch != here.batch:
            continue
        gain = entry.ratio_first / here.ratio_first
        if gain > LEAST_GAIN:
            yield Step(entry.rung, Interval(gain), "FASTER", None)


def _ladder_steps(state: State, word: str) -> Iterator[Step]:
    for entry in state.ladder.values():
        if entry.before == word and entry.ratio_before:
            yield Step(entry.rung, entry.ratio_before_interval, entry.verdict, entry.aa_floor)
    here = state.ladder.get(word)
    if here is not None and here.before and here.ratio_before:
        verdict = TURNED.get(here.verdict, here.verdict)
        yield Step(here.before, here.ratio_before_interval.inverse, verdict, here.aa_floor)


def _pair_step(pair: Comparison, word: str) -> Step | None:
    delta = pair.get("device")
    if delta is None or not delta.ratio:
        return None
    if pair.plan_a == word:
        return Step(pair.plan_b, delta.ratio_interval, delta.verdict, delta.aa_floor)
    if pair.plan_b == word:
        verdict = TURNED.get(delta.verdict, delta.verdict)
        return Step(pair.plan_a, delta.ratio_interval.inverse, verdict, delta.aa_floor)
    return None
