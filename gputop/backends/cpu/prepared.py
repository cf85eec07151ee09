"""A plan in place on the cpu: its calls bound to memory, run, traced and timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import copy_context
from dataclasses import dataclass
from time import perf_counter_ns

import numpy as np
from numpy.typing import NDArray

from gputop.backends.base import LogitsLeft, PassTimes, PhaseTimes, TimedRun, run_in_turn
from gputop.backends.cpu.activation_calls import Call
from gputop.backends.cpu.kernels import Bind
from gputop.backends.cpu.memory import Floats, Memory
from gputop.backends.cpu.own_kernels import first_run
from gputop.perf.paired_stats import undisturbed
from gputop.plan.launch_shape import LaunchInfo
from gputop.plan.types import Dims, Plan, Step, View
from gputop.results.records import Tuned
from gputop.util import host_cpu
from gputop.util.heartbeat import beat

NS = 1e-9
DEAR_PASS_S = 0.05
"""A pass no shorter than this is not run only to be dropped, where one of the same plan has just run."""
LITTLE = 0.1
"""What runs after a pass for less than this share of it leaves the caches as they were."""
LONG_PASS_S = 1.0
"""A pass longer than this shows signs of life at every step, which shorter ones are spared."""
Threads = Callable[[], AbstractContextManager[object]]
Bound = tuple[tuple[Call, ...], ...]
"""The calls of each step."""


@dataclass(slots=True)
class LastPass:
    """The pass that ran last of all prepared plans: the caches are as it left them."""

    of: object = None
    pass_s: float = 0.0
    ended_s: float = 0.0

    def note(self, prepared: object, start_ns: int) -> None:
        """A pass that began at `start_ns` ends."""
        self.of, self.ended_s = prepared, perf_counter_ns() * NS
        self.pass_s = self.ended_s - start_ns * NS

    def warms(self, prepared: object) -> bool:
        """Return whether a pass of `prepared` finds the caches as in use."""
        gap_s = perf_counter_ns() * NS - self.ended_s
        return self.of is prepared and self.pass_s >= DEAR_PASS_S and gap_s < LITTLE * self.pass_s


class CpuTrace:
    """A pass that kept every layer's buffers. They live as long as this does."""

    def __init__(self, memory: Memory, sequences: int) -> None:
        self._memory = memory
        self.logits: Floats = memory.logits.reshape(sequences, -1).copy()

    def read(self, view: View) -> Floats:
        """The view as [rows, columns]; not to be written."""
        return self._memory.view(view)


class CpuPrepared:
    """See `backends.base.Prepared`. BLAS threads are set around timed regions, never inside."""

    def __init__(
        self,
        plan: Plan,
        dims: Dims,
        steps: tuple[Step, ...],
        kept_steps: tuple[Step, ...],
        weights: Mapping[str, Floats],
        timed_tokens: Sequence[NDArray[np.int32]],
        threads: Threads,
        one_thread: bool,
        last_pass: LastPass,
        timer_floor_s: float,
        table: Mapping[str, Bind],
        digests: Mapping[str, str],
        deadline_s: float,
    ) -> None:
        """`kept_steps`: the same steps with a buffer for each layer.

        `timed_tokens`: the batches [batch, seq] that timed passes take in turn. `last_pass` is shared by all
        plans on this machine; `timer_floor_s`: step and spread of its clock. `table`: kernel -> the function
        that binds it; `digests`: a user's own kernel -> which code it is; `deadline_s`: what the first run of
        such a kernel may take.

        Raise DeviceLost, naming it, for such a kernel that does not end.
        """
        self.plan = plan
        self.steps = steps
        self.closed = False
        self._dims = dims
        self._kept_steps = kept_steps
        self._weights = weights
        self._threads = threads
        self._one_thread = one_thread
        self._last_pass = last_pass
        self._timer_floor_s = timer_floor_s
        self._timed_tokens = tuple(tokens.reshape(-1) for tokens in timed_tokens)
        self._token_set = 0
        """Which of them the next timed pass takes."""
        self._table = table
        self._digests = digests
        self._memory = Memory(plan, dims, weights, keep_layers=False)
        self._bound = self._bind(steps, self._memory)
        if any(step.kernel.record for step in steps):
            np.copyto(self._memory.tokens, self._timed_tokens[0])
            with np.errstate(all="ignore"):
                first_run(steps, self._bound, deadline_s)
        self._calls = _flat(self._bound)
        self._long = False
        """Whether a pass takes so long that it must show signs of life."""

    def run(self, tokens: NDArray[np.int32], poison: float) -> Floats:
        with self._threads():
            return self._run_own(tokens, poison)

    def run_each(self, runs: Sequence[tuple[NDArray[np.int32], float]]) -> list[TimedRun]:
        """A pass that is held to one thread leaves the other cores to passes in memory of their own."""
        if not self._one_thread or host_cpu.whole_cores() < len(runs):
            return run_in_turn(self.run, runs)
        mine, *others = runs
        start = perf_counter_ns()
        with self._threads(), ThreadPoolExecutor() as pool:
            # In a copy of the context: whoever listens for signs of life hears those of every pass.
            begun = [
                pool.submit(copy_context().run, run_in_turn, self._run_beside, (other,)) for other in others
            ]
            done = run_in_turn(self._run_own, (mine,))
            for pending in begun:
                done += pending.result()
        # Whichever ended last has read the same weights.
        self._last_pass.note(self, start)
        return done

    def trace(self, tokens: NDArray[np.int32], poison: float) -> CpuTrace:
        memory = Memory(self.plan, self._dims, self._weights, keep_layers=True)
        bound = self._bind(self._kept_steps, memory)
        with self._threads():
            _run(memory, bound, tokens, poison)
        return CpuTrace(memory, self.plan.batch)

    def sample_pass(self, passes: int) -> PassTimes:
        """Return the least disturbed pass. The first one only brings caches to their state in use, and is
        dropped.

        If a pass of this plan has just done that, no pass is dropped.
        """
        dropped = 0 if self._last_pass.warms(self) else 1
        calls, tokens = self._calls, self._memory.tokens
        logits, taken = self._memory.logits, np.empty_like(self._memory.logits)
        wall_ns, device_ns, left = [], [], LogitsLeft()
        with self._threads():
            for _ in range(passes - 1 + dropped):
                beat()
                token_set, timed_tokens = self._next_tokens()
                start = perf_counter_ns()
                np.copyto(tokens, timed_tokens)
                begin = perf_counter_ns()
                for call in calls:
                    call()
                end = perf_counter_ns()
                np.copyto(taken, logits)
                wall_ns.append(perf_counter_ns() - start)
                device_ns.append(end - begin)
                left.add(token_set, taken)
        self._last_pass.note(self, start)
        return PassTimes(
            wall_s=undisturbed(wall_ns[dropped:]) * NS,
            device_s=undisturbed(device_ns[dropped:]) * NS,
            logits=left.take(self.plan.batch),
        )

    def sample_phases(self, passes: int) -> tuple[PhaseTimes, ...]:
        return tuple(self._split() for _ in range(passes))

    def _split(self) -> PhaseTimes:
        """One pass with a stamp on both sides of each step. Caches are as the last pass left them."""
        stamps: list[int] = []
        stamp = stamps.append
        np.copyto(self._memory.tokens, self._next_tokens()[1])
        with self._threads():
            stamp(perf_counter_ns())
            for calls in self._bound:
                stamp(perf_counter_ns())
                for call in calls:
                    call()
                if self._long:
                    beat()
                stamp(perf_counter_ns())
        self._last_pass.note(self, stamps[0])
        time_s: dict[str, float] = {}
        gap_s: dict[str, float] = {}
        for index, step in enumerate(self.steps):
            before, start, end = stamps[2 * index : 2 * index + 3]
            time_s[step.site] = time_s.get(step.site, 0.0) + (end - start) * NS
            gap_s[step.site] = gap_s.get(step.site, 0.0) + (start - before) * NS
        return PhaseTimes(time_s, gap_s, {}, "perf_counter", self._timer_floor_s)

    def facts(self) -> tuple[LaunchInfo, ...]:
        """A launch is one NumPy call."""
        kernels: dict[str, str] = {}
        cubins = {step.site: self._digests.get(step.kernel.name) for step in self.steps}
        launches: dict[str, int] = {}
        for step, calls in zip(self.steps, self._bound, strict=True):
            kernels[step.site] = str(step.choice)
            launches[step.site] = launches.get(step.site, 0) + len(calls)
        return tuple(LaunchInfo(site, kernels[site], launches[site], cubin=cubins[site]) for site in kernels)

    def tuned(self) -> tuple[Tuned, ...]:
        return ()

    def close(self) -> None:
        self.closed = True
        self._calls = self._bound = ()
        self._weights = {}
        self._memory.close()

    def _next_tokens(self) -> tuple[int, NDArray[np.int32]]:
        """The timed batches in turn, flat, with their number."""
        token_set = self._token_set
        self._token_set = (token_set + 1) % len(self._timed_tokens)
        return token_set, self._timed_tokens[token_set]

    def _run_own(self, tokens: NDArray[np.int32], poison: float) -> Floats:
        """Run a step in the memory of the timed passes."""
        start = perf_counter_ns()
        _run(self._memory, self._bound, tokens, poison)
        self._last_pass.note(self, start)
        if not self._long and (perf_counter_ns() - start) * NS > LONG_PASS_S:
            self._long = True
            self._calls = _flat(self._bound, beat)
        return self._logits(self._memory)

    def _run_beside(self, tokens: NDArray[np.int32], poison: float) -> Floats:
        """Run the same calls on the same weights in other memory."""
        memory = Memory(self.plan, self._dims, self._weights, keep_layers=False)
        _run(memory, self._bind(self.steps, memory), tokens, poison)
        return self._logits(memory)

    def _bind(self, steps: tuple[Step, ...], memory: Memory) -> Bound:
        """The calls of each step."""
        return tuple(
            tuple(
                call
                for task in step.tasks
                for call in self._table[step.kernel.name](task, memory, self.plan, self._dims)
            )
            for step in steps
        )

    def _logits(self, memory: Memory) -> Floats:
        return memory.logits.reshape(self.plan.batch, -1).copy()


def _run(memory: Memory, bound: Bound, tokens: NDArray[np.int32], poison: float) -> None:
    memory.poison(poison)
    np.copyto(memory.tokens, tokens.reshape(-1))
    # Poison is meant to spread: what it does to the arithmetic is for the gate to say.
    with np.errstate(all="ignore"):
        for call in _flat(bound, beat):
            call()


def _flat(bound: Bound, *after_each: Call) -> tuple[Call, ...]:
    """The calls of all steps in a row."""
    return tuple(call for calls in bound for call in (*calls, *after_each))
