"""Plans kept prepared between windows, within memory, each with its gate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gputop.planner.resolver import Resolver, plan_dims
from gputop.results.records import Gate, PhaseCheck
from gputop.util.errors import UsageError
from gputop.validation import gate, phase_check
from gputop.validation.gate import GatedPass

if TYPE_CHECKING:
    from gputop.backends.base import Backend, PassTimes, Prepared, Say, TimedRun, Tokens
    from gputop.plan.types import Plan

MOST_IDLE = 4
"""Plans kept prepared beyond those in use: flipping back and forth should not prepare again."""
RESERVE_BYTES = 256 << 20
"""Left to the rest of the machine."""

Key = tuple["Plan", str]
"""A plan, and what a copy of it is for: empty is the plan itself, others lie in memory of their own."""


@dataclass(slots=True, eq=False)
class PreparedLane:
    """A plan in place, its gate, and how long its gated passes took."""

    plan: Plan
    """As it was last asked for: one pass may have several names."""
    prepared: Prepared
    gate: Gate
    """As it stands: a timed pass, or the pass gate after a window, may still fail it."""
    pass_s: float
    """The shortest, poisoning included: good for choosing how to sample, never shown."""
    gated: GatedPass | None = None
    """What timed passes are held to; None if the pass gate failed, since then none are timed."""
    sample_s: float | None = None
    """How long a sample of it takes, once that was tried."""

    def sample_pass(self, passes: int) -> PassTimes:
        """A sample of timed passes, whose logits are checked; a wrong one fails the gate."""
        times = self.prepared.sample_pass(passes)
        if self.gated is not None and (fault := self.gated.fault_of(times.logits)):
            self.gate = replace(self.gate, status="FAIL", where=fault)
        return times


class PreparedLanes:
    """The prepared plans of a session, least recently used first."""

    def __init__(self, backend: Backend, catalog: Resolver) -> None:
        self._backend = backend
        self.catalog = catalog
        self._lanes: dict[Key, PreparedLane] = {}

    def get(self, plan: Plan, say: Say, *, copy: str = "", held: Iterable[PreparedLane] = ()) -> PreparedLane:
        """The plan prepared and through its pass gate; lanes in `held` are not given up for it.

        UsageError when it does not fit into memory.
        """
        key = (plan, copy)
        lane = self._lanes.pop(key, None)
        if lane is None:
            self._make_room(plan, tuple(held))
            lane = self._prepare(plan, say)
        lane.plan = plan
        self._lanes[key] = lane
        return lane

    def check_phases(self, lane: PreparedLane, say: Say) -> Gate:
        """Both gates of a lane. The phase gate runs once for what is prepared; it says where a pass fails."""
        if lane.gate.checks or not lane.prepared.steps:
            return lane.gate
        workload = self._backend.workload
        batches = gate.trace_tokens(workload, plan_dims(workload, lane.plan))
        checks: list[PhaseCheck] = []
        known: phase_check.Known = {}
        for tokens, poison in zip(batches, gate.POISONS, strict=True):
            say(f"checking every phase of {lane.plan.word}, buffers poisoned with {poison:g}")
            checks += self._check_trace(lane, tokens, poison, known)
        lane.gate = gate.combine(lane.gate, checks)
        return lane.gate

    def _check_trace(
        self, lane: PreparedLane, tokens: Tokens, poison: float, known: phase_check.Known
    ) -> tuple[PhaseCheck, ...]:
        """One traced pass, whose memory is given back before the next one's is taken."""
        workload, plan = self._backend.workload, lane.plan
        dims = plan_dims(workload, plan)
        trace = lane.prepared.trace(tokens, poison)
        steps = self.catalog.steps(plan, dims, keep_layers=True)
        return phase_check.check_phases(trace, steps, workload, plan, dims, known)

    def check_again(self, lane: PreparedLane, say: Say) -> None:
        """The pass gate after timing: a kernel must not have changed what it computes on the way."""
        again, _ = self._check_pass(lane.plan, lane.prepared, say)
        if lane.gate.ok and not again.ok:
            lane.gate = replace(lane.gate, status="FAIL", where=f"after the timed passes: {again.where}")

    def drop_copies(self) -> None:
        """Close every copy; the plans themselves stay."""
        self._close([key for key in self._lanes if key[1]])

    def drop(self, stale: Callable[[Plan], bool]) -> None:
        """Close every plan of which `stale` holds, and its copies."""
        self._close([key for key in self._lanes if stale(key[0])])

    def room_for(self, plan: Plan) -> bool:
        """Return whether the plan fits in memory beside all prepared ones."""
        return self._backend.need_bytes(plan) + RESERVE_BYTES <= self._backend.free_bytes()

    def close(self) -> None:
        self._close(list(self._lanes))

    def _prepare(self, plan: Plan, say: Say) -> PreparedLane:
        steps = self.catalog.steps(plan, plan_dims(self._backend.workload, plan))
        prepared = self._backend.prepare(plan, steps, say)
        try:
            return self._gated(plan, prepared, say)
        except BaseException:
            prepared.close()
            raise

    def _gated(self, plan: Plan, prepared: Prepared, say: Say) -> PreparedLane:
        """The pass gate, and on the way how long a pass takes."""
        outcome, runs = self._check_pass(plan, prepared, say)
        logits, times = zip(*runs, strict=True)
        repeats_bits = not plan.peer and all(step.kernel.repeats_bits for step in prepared.steps)
        workload = self._backend.workload
        gated = GatedPass(workload, plan_dims(workload, plan), plan.math, logits, repeats_bits)
        return PreparedLane(plan, prepared, outcome, min(times), gated if outcome.ok else None)

    def _check_pass(self, plan: Plan, prepared: Prepared, say: Say) -> tuple[Gate, list[TimedRun]]:
        """The outcome, and each run of it."""
        say(f"checking the answer of {plan.word}")
        workload = self._backend.workload
        dims = plan_dims(workload, plan)
        runs = prepared.run_each(gate.pass_runs(workload, dims))
        bitwise_row_invariant = all(step.kernel.bitwise_row_invariant for step in prepared.steps)
        logits = [out for out, _ in runs]
        return gate.judge_pass(logits, workload, dims, plan.math, bitwise_row_invariant), runs

    def _make_room(self, plan: Plan, held: tuple[PreparedLane, ...]) -> None:
        """Give up idle plans, oldest first, until this one fits; none where that could not be enough."""
        idle = [key for key, lane in self._lanes.items() if lane not in held]
        need_bytes = self._backend.need_bytes(plan) + RESERVE_BYTES
        could_be_free = self._backend.free_bytes() + sum(
            self._backend.need_bytes(self._lanes[key].plan) for key in idle
        )
        if need_bytes > could_be_free:
            raise UsageError(self._too_large(plan, could_be_free))
        self._close(idle[: max(0, len(idle) - MOST_IDLE + 1)])
        for key in idle:
            if need_bytes <= self._backend.free_bytes():
                return
            self._close([key])
        if need_bytes > self._backend.free_bytes():
            # Plans may share weights: closing them can give back less than each alone would.
            raise UsageError(self._too_large(plan, self._backend.free_bytes()))

    def _too_large(self, plan: Plan, free_bytes: int) -> str:
        """Return a sentence: what does not fit, and the largest batch that does."""

        def fits(batch: int) -> bool:
            return self._backend.need_bytes(plan.change(batch=batch)) + RESERVE_BYTES <= free_bytes

        need_gb, free_gb = self._backend.need_bytes(plan) / 1e9, max(0, free_bytes - RESERVE_BYTES) / 1e9
        sentence = f"{plan.word} needs {need_gb:.1f} GB of memory, and {free_gb:.1f} GB can be had."
        if not fits(1):
            return f"{sentence} Not even a batch of 1 fits: take a smaller workload."
        below, above = 1, plan.batch
        while above - below > 1:
            middle = (below + above) // 2
            below, above = (middle, above) if fits(middle) else (below, middle)
        return f"{sentence} The largest batch that fits is {below}: --batch {below}."

    def _close(self, keys: list[Key]) -> None:
        for key in keys:
            if key in self._lanes:
                self._lanes.pop(key).prepared.close()
