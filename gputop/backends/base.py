"""What every backend offers a session. A backend knows devices and memory, not windows or verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gputop.plan.launch_shape import LaunchInfo
    from gputop.plan.types import Dims, Kernel, Plan, Step, Task, View, Workload
    from gputop.planner.registry import Registry
    from gputop.results.kernel_report import MachineCode
    from gputop.results.records import Ceilings, DeviceFacts, Health, Tuned
    from gputop.validation.gate import TimedLogits

    Floats = NDArray[np.float32]
    Tokens = NDArray[np.int32]

Say = Callable[[str], None]
"""Tells the user what a long step is doing; also extends the request's deadline."""


@dataclass(frozen=True, slots=True)
class PassTimes:
    """Per-pass seconds of one sample (two or more passes, the first dropped)."""

    wall_s: float
    """As used: tokens in, logits out, host included."""
    device_s: float
    """The pass alone, nothing late."""
    submit_s: float | None = None
    """Host time to enqueue one pass; None where the host is the device."""
    clock_hz: float | None = None
    """SM clock during the passes, by stamps of the device's own counters; None where there are none."""
    logits: tuple[TimedLogits, ...] = ()
    """What these passes left: of passes on one batch whose logits have the same bits, one."""


class LogitsLeft:
    """Collects what timed passes leave, a copy of each different outcome.

    Passes take the timed batches in turn (`gate.timed_tokens`): a kernel that does nothing then leaves the
    logits of the batch before.
    """

    def __init__(self) -> None:
        self._last: dict[int, Floats] = {}
        self._kept: list[TimedLogits] = []

    def add(self, token_set: int, logits: Floats) -> None:
        """The logits of one pass; they are copied if their bits are not those of the pass before."""
        last = self._last.get(token_set)
        if last is None or not np.array_equal(last.view(np.uint32), logits.view(np.uint32)):
            self._last[token_set] = logits.copy()
            self._kept.append((token_set, self._last[token_set]))

    def take(self, batch: int) -> tuple[TimedLogits, ...]:
        """Return all logits as [batch, vocab]."""
        return tuple((token_set, logits.reshape(batch, -1)) for token_set, logits in self._kept)


@dataclass(frozen=True, slots=True)
class PhaseTimes:
    """One pass's split by step site (`w1`, `w1@1`, `ln2+w1`), all instances added; a framework's by kind.

    Times and gaps together fill the pass: what a step ran beside the one before is in `overlap_s`, and in
    the time of the one before alone.
    """

    time_s: Mapping[str, float]
    gap_s: Mapping[str, float]
    overlap_s: Mapping[str, float]
    timer: str
    """`perf_counter`, `event`, `cupti`, `repeat`, `stamp`."""
    timer_floor_s: float
    """That timer's step and spread: shorter times than 3 of these are not resolved."""


TimedRun = tuple["Floats", float]
"""Logits [batch, vocab] of a run, and how many seconds the host waited for them."""


class Trace(Protocol):
    """A pass that kept every layer's buffers."""

    logits: Floats

    def read(self, view: View) -> Floats:
        """The view as [rows, columns] on the host."""


class Prepared(Protocol):
    """A plan with its weights, buffers and code in place on the device."""

    plan: Plan
    steps: tuple[Step, ...]

    def run(self, tokens: Tokens, poison: float) -> Floats:
        """The timed pass on `tokens` [batch, seq], buffers poisoned first; logits [batch, vocab]."""

    def run_each(self, runs: Sequence[tuple[Tokens, float]]) -> list[TimedRun]:
        """`run` of each, at once where that computes the same; the host's seconds are no measurement."""

    def trace(self, tokens: Tokens, poison: float) -> Trace:
        """The same code with every layer's buffers kept."""

    def sample_pass(self, passes: int) -> PassTimes:
        """Passes that take the timed batches in turn, with the logits that they left."""

    def sample_phases(self, passes: int) -> tuple[PhaseTimes, ...]:
        """Return the phase times of about this many passes, one list each; empty if this backend can't split
        the plan by phase, as a peer without CUPTI.
        """

    def facts(self) -> tuple[LaunchInfo, ...]:
        """One per step site, in pass order."""

    def tuned(self) -> tuple[Tuned, ...]:
        """Return what a framework measured before it chose its kernels; empty if its log can't be read."""

    def close(self) -> None:
        """Give the memory back; calling twice is harmless."""


class Backend(Protocol):
    """One device, opened for one workload."""

    name: str
    workload: Workload
    cache_state: str
    """Of a timed pass, for the CSV: `in-situ`."""
    aa_minimum: float
    """Smallest A/A floor ever reported, as |log ratio|."""
    timer_floor_s: float
    """Step and spread of the clock that times whole passes."""

    def facts(self) -> DeviceFacts: ...

    def health(self) -> Health: ...

    def ceilings(self, force: bool, say: Say) -> Ceilings:
        """Measured once for device, driver and clock, then read back from the cache."""

    def kept_ceilings(self) -> Ceilings | None:
        """Those that `ceilings` would give without measuring anything; None where it would measure."""

    def refuses(self, plan: Plan) -> str | None:
        """Return why this device or installation can't run a plan that is valid in itself; None if it can."""

    def fixed_toggles(self) -> Mapping[str, str]:
        """Toggle -> why it can't be set on this machine; half a sentence each."""

    def note(self, plan: Plan) -> str:
        """Return what this device adds to the plan beyond its string, in a sentence; empty if nothing."""

    def need_bytes(self, plan: Plan) -> int:
        """Memory that `prepare` will take."""

    def free_bytes(self) -> int: ...

    def prepare(self, plan: Plan, steps: tuple[Step, ...], say: Say) -> Prepared: ...

    def take_registry(self, registry: Registry) -> None:
        """Prepare plans with these kernels from here on: what was compiled of the user's own is forgotten.

        No plan that runs one of them is prepared then.
        """

    def machine_code(self, kernel: Kernel, task: Task, plan: Plan, dims: Dims) -> MachineCode | None:
        """What a kernel compiles to that does a task of a plan; None if nothing is known of it.

        Raise CompileFailed, or UsageError if it is not what its record says. Nothing is launched.
        """

    def close(self) -> None: ...


class BackendModule(Protocol):
    """What a backend's module exports."""

    def available(self) -> str | None:
        """Return None if the backend can be used here, else a sentence with the command that fixes it."""

    def open_backend(
        self, workload: Workload, device: str | None, say: Say, registry: Registry | None = None
    ) -> Backend:
        """`registry`: what plans are made of, and the folder of CUDA sources that is searched before our own.

        Raise Unavailable if the device or a library is missing.
        """


def run_in_turn(
    run: Callable[[Tokens, float], Floats], runs: Sequence[tuple[Tokens, float]]
) -> list[TimedRun]:
    """Run each after the one before it has ended."""
    done: list[TimedRun] = []
    for tokens, poison in runs:
        start = perf_counter()
        logits = run(tokens, poison)
        done.append((logits, perf_counter() - start))
    return done


Options = Mapping[str, Any]
