"""A plan in place on the device: run, traced and timed."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from statistics import fmean
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from gputop.backends.base import LogitsLeft, PassTimes, PhaseTimes, Say, TimedRun, run_in_turn
from gputop.backends.cuda.bind import Binder, BoundStep, plan_launches
from gputop.backends.cuda.launch_info import launch_info
from gputop.backends.cuda.memory import PlanMemory
from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.graph import capture
from gputop.backends.cuda.runtime.status_codes import explained
from gputop.backends.cuda.runtime.utility_kernels import Tools
from gputop.backends.cuda.timing.cupti import KernelRecorder
from gputop.backends.cuda.timing.events import Timer
from gputop.backends.cuda.timing.phase_timer import PhaseSplit
from gputop.backends.cuda.weights import DeviceWeights
from gputop.plan.launch_shape import LaunchInfo
from gputop.plan.types import Dims, Plan, Step, View
from gputop.results.records import Tuned
from gputop.util.startup_trace import mark

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Tokens = NDArray[np.int32]

Call = Callable[[], None]

HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2


class CudaTrace:
    """A pass that kept every layer's buffers. They live as long as this does."""

    def __init__(self, memory: PlanMemory, logits: Floats) -> None:
        self._memory = memory
        self.logits = logits

    def read(self, view: View) -> Floats:
        return self._memory.read(view)


class CudaPrepared:
    """See `backends.base.Prepared`."""

    def __init__(
        self,
        context: Context,
        tools: Tools,
        timer: Timer,
        binder: Binder,
        weights: DeviceWeights,
        plan: Plan,
        dims: Dims,
        steps: tuple[Step, ...],
        kept_steps: tuple[Step, ...],
        timed_tokens: Sequence[Tokens],
        recorder: KernelRecorder | None,
        say: Say,
    ) -> None:
        """`kept_steps`: the same steps with a buffer for each layer.

        `timed_tokens`: the batches [batch, seq] that timed passes take in turn.

        Every kernel has run once when this returns: DeviceLost names the one that faults or never ends.
        """
        self.plan = plan
        self.steps = steps
        self._context = context
        self._tools = tools
        self._timer = timer
        self._binder = binder
        self._weights = weights
        self._dims = dims
        self._kept_steps = kept_steps
        self._timed_tokens = np.stack([tokens.reshape(-1) for tokens in timed_tokens])
        self._token_set = 0
        """Which of them the next timed pass takes."""
        self._memory = self._new_memory(steps, keep_layers=False)
        self._bound = binder.bind(steps, self._memory, plan, dims)
        self._calls: tuple[Call, ...] = tuple(call for step in self._bound for call in step.calls)
        self._prove(self._bound, self._memory, say)
        mark("cuda: facts of the launches")
        self._facts = launch_info(context, self._bound)
        self._graph: Any = None
        if plan.graph:
            self._graph = capture(context, self._calls, f"the pass of {plan.word}")
            self._submit: tuple[Call, ...] = (self._launch_graph,)
        else:
            self._submit = self._calls
        self._split = PhaseSplit(
            context, timer, self._memory, self._bound, self._submit, plan.graph, recorder
        )
        host_tokens, self._host_tokens_at = context.mapped(self._timed_tokens.size, ctypes.c_int32)
        np.ctypeslib.as_array(host_tokens)[:] = self._timed_tokens.reshape(-1)
        host_logits, self._host_logits_at = context.mapped(self._memory.logits.size, ctypes.c_float)
        self._host_logits = np.ctypeslib.as_array(host_logits)

    @property
    def bound(self) -> tuple[BoundStep, ...]:
        """The pass's steps in order, ready to run one by one outside of a graph."""
        return self._bound

    def run(self, tokens: Tokens, poison: float) -> Floats:
        return self._run(self._memory, self._submit, tokens, poison)

    def run_each(self, runs: Sequence[tuple[Tokens, float]]) -> list[TimedRun]:
        return run_in_turn(self.run, runs)

    def trace(self, tokens: Tokens, poison: float) -> CudaTrace:
        """The same kernels outside a graph, with the memory of every layer beside the timed one."""
        memory = self._new_memory(self._kept_steps, keep_layers=True)
        bound = self._binder.bind(self._kept_steps, memory, self.plan, self._dims)
        calls = tuple(call for step in bound for call in step.calls)
        return CudaTrace(memory, self._run(memory, calls, tokens, poison))

    def sample_pass(self, passes: int) -> PassTimes:
        """Means over `passes` - 1 passes of either clock: the first leaves the caches as they are in use."""
        device, submit, wall, left = [], [], [], LogitsLeft()
        for _ in range(passes):
            device_s, submit_s = self._on_device(left)
            device.append(device_s)
            submit.append(submit_s)
            clock_hz = self._timer.clock_hz()
            wall.append(self._wall(left))
        return PassTimes(
            wall_s=fmean(wall[1:]),
            device_s=fmean(device[1:]),
            submit_s=fmean(submit[1:]),
            clock_hz=clock_hz,
            logits=left.take(self.plan.batch),
        )

    def sample_phases(self, passes: int) -> tuple[PhaseTimes, ...]:
        return self._split.sample(passes)

    def facts(self) -> tuple[LaunchInfo, ...]:
        return self._facts

    def tuned(self) -> tuple[Tuned, ...]:
        return ()

    def close(self) -> None:
        """Free the resources. Skipped if a kernel hangs, since freeing would block on it."""
        if self._context.hung is not None:
            return
        self._graph = None
        self._split.close()
        self._calls = self._submit = ()
        self._bound = ()
        self._memory.close()
        self._weights.close()
        for pointer in (self._host_tokens_at, self._host_logits_at):
            self._context.unmap(pointer)
        self._host_tokens_at = self._host_logits_at = 0

    def _new_memory(self, steps: tuple[Step, ...], keep_layers: bool) -> PlanMemory:
        launches = plan_launches(steps, self.plan, self._dims)
        return PlanMemory(
            self._context, self._tools, self._weights, self.plan, self._dims, launches, keep_layers
        )

    def _prove(self, bound: Sequence[BoundStep], memory: PlanMemory, say: Say) -> None:
        """Run every step by itself, so that a fault has a name, and every kernel is loaded and warm."""
        self._context.copy_in(memory.tokens, self._timed_tokens[0])
        self._context.synchronize("drawing the weights")
        told = set()
        for step in bound:
            if step.step.site not in told:
                told.add(step.step.site)
                say(f"first run of {step.label}")
            for call in step.calls:
                call()
            self._context.synchronize(step.label)

    def _run(self, memory: PlanMemory, calls: Sequence[Call], tokens: Tokens, poison: float) -> Floats:
        memory.poison(poison)
        self._context.copy_in(memory.tokens, np.ascontiguousarray(tokens.reshape(-1)))
        what = f"the pass of {self.plan.word}"
        with explained(what):
            for call in calls:
                call()
        self._context.synchronize(what)
        logits: Floats = self._context.copy_out(memory.logits)
        return logits.reshape(self.plan.batch, -1)

    def _on_device(self, left: LogitsLeft) -> tuple[float, float]:
        """Device and enqueueing seconds of a pass. Its tokens lie there before, its logits are read after."""
        context, token_set = self._context, self._next_token_set()
        with explained("the timed pass"):
            self._enqueue_tokens(token_set)
        times = self._timer.whole(self._submit)
        with explained("the timed pass"):
            self._enqueue_logits()
            context.stream.synchronize()
        left.add(token_set, self._host_logits)
        return times

    def _wall(self, left: LogitsLeft) -> float:
        """Tokens in, the pass, logits out, as a caller without any of this apparatus waits for it."""
        token_set = self._next_token_set()
        with explained("the timed pass"):
            begun = perf_counter()
            self._enqueue_tokens(token_set)
            for call in self._submit:
                call()
            self._enqueue_logits()
            self._context.stream.synchronize()
            wall_s = perf_counter() - begun
        left.add(token_set, self._host_logits)
        return wall_s

    def _next_token_set(self) -> int:
        """The timed batches in turn."""
        token_set = self._token_set
        self._token_set = (token_set + 1) % len(self._timed_tokens)
        return token_set

    def _enqueue_tokens(self, token_set: int) -> None:
        tokens = self._memory.tokens
        source = self._host_tokens_at + token_set * tokens.nbytes
        self._context.copy_async(tokens.data.ptr, source, tokens.nbytes, HOST_TO_DEVICE)

    def _enqueue_logits(self) -> None:
        logits = self._memory.logits
        self._context.copy_async(self._host_logits_at, logits.data.ptr, logits.nbytes, DEVICE_TO_HOST)

    def _launch_graph(self) -> None:
        self._graph.launch(self._context.stream)
