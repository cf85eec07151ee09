"""A plan in place on the device: run, traced and timed."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from statistics import fmean
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from gputop.backends.base import PassTimes, PhaseTimes, Say
from gputop.backends.cuda.bind import Binder, BoundStep, plan_launches
from gputop.backends.cuda.capture import capture
from gputop.backends.cuda.context import Context
from gputop.backends.cuda.faults import explained
from gputop.backends.cuda.launchfacts import launch_facts
from gputop.backends.cuda.memory import PlanMemory
from gputop.backends.cuda.stamps import WORKSPACE, seconds_apart
from gputop.backends.cuda.timing import Timer
from gputop.backends.cuda.tools import Tools
from gputop.backends.cuda.weights import DeviceWeights
from gputop.spec import Dims, LaunchFacts, Plan, Step, View

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Tokens = NDArray[np.int32]

Call = Callable[[], None]

HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2
PHASE_PASSES = 3
"""Passes of one phase sample, the first dropped."""


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
        tokens: Tokens,
        say: Say,
    ) -> None:
        """`kept_steps`: the same steps with a buffer for each layer; `tokens` [batch, seq]: those timed.

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
        self._tokens = np.ascontiguousarray(tokens.reshape(-1))
        self._memory = self._new_memory(steps, keep_layers=False)
        self._bound = binder.bind(steps, self._memory, plan, dims)
        self._calls: tuple[Call, ...] = tuple(call for step in self._bound for call in step.calls)
        self._prove(self._bound, self._memory, say)
        self._facts = launch_facts(context, self._bound)
        self._graph: Any = None
        self._marked_graph: tuple[Any, list[Any]] | None = None
        if plan.graph:
            self._graph = capture(context, self._calls, f"the pass of {plan.word or plan.rung}")
            self._submit: tuple[Call, ...] = (self._launch_graph,)
        else:
            self._submit = self._calls
        self._host_tokens, self._host_tokens_at = context.mapped(self._tokens.size, ctypes.c_int32)
        self._host_logits, self._host_logits_at = context.mapped(self._memory.logits.size, ctypes.c_float)
        np.ctypeslib.as_array(self._host_tokens)[:] = self._tokens

    def run(self, tokens: Tokens, poison: float) -> Floats:
        return self._run(self._memory, self._submit, tokens, poison)

    def trace(self, tokens: Tokens, poison: float) -> CudaTrace:
        """The same kernels outside a graph, with the memory of every layer beside the timed one."""
        memory = self._new_memory(self._kept_steps, keep_layers=True)
        bound = self._binder.bind(self._kept_steps, memory, self.plan, self._dims)
        calls = tuple(call for step in bound for call in step.calls)
        return CudaTrace(memory, self._run(memory, calls, tokens, poison))

    def sample_pass(self, passes: int) -> PassTimes:
        """Means over `passes` - 1 passes of either clock: the first leaves the caches as they are in use."""
        device, submit, wall = [], [], []
        for _ in range(passes):
            device_s, submit_s = self._timer.whole(self._submit)
            device.append(device_s)
            submit.append(submit_s)
            wall.append(self._wall())
        return PassTimes(wall_s=fmean(wall[1:]), device_s=fmean(device[1:]), submit_s=fmean(submit[1:]))

    def sample_phases(self) -> PhaseTimes:
        """Marks between the steps, in the stream or, for a plan with a graph, as nodes of a graph.

        What lies between the marks of a stamped kernel and is in none of its tasks is a gap before them.
        """
        split = self._split_graph if self._graph is not None else self._split_stream
        time_s: dict[str, float] = {}
        gap_s: dict[str, float] = {}
        for index in range(PHASE_PASSES):
            times = split()
            if index == 0:
                continue
            for step, seconds in zip(self._bound, times, strict=True):
                for site, part_s in self._parts(step, seconds, gap_s).items():
                    time_s[site] = time_s.get(site, 0.0) + part_s / (PHASE_PASSES - 1)
        stamped = any(step.step.kernel.stamped for step in self._bound)
        return PhaseTimes(time_s, gap_s, overlap_s={}, timer="stamp" if stamped else "event")

    def facts(self) -> tuple[LaunchFacts, ...]:
        return self._facts

    def close(self) -> None:
        self._graph = self._marked_graph = None
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
        self._context.copy_in(memory.tokens, self._tokens)
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
        what = f"the pass of {self.plan.word or self.plan.rung}"
        with explained(what):
            for call in calls:
                call()
        self._context.synchronize(what)
        logits: Floats = self._context.copy_out(memory.logits)
        return logits.reshape(self.plan.batch, -1)

    def _wall(self) -> float:
        """Tokens in, the pass, logits out, as a caller without any of this apparatus waits for it."""
        context, memory = self._context, self._memory
        copy = context.copy_async
        with explained("the timed pass"):
            begun = perf_counter()
            copy(memory.tokens.data.ptr, self._host_tokens_at, memory.tokens.nbytes, HOST_TO_DEVICE)
            for call in self._submit:
                call()
            copy(self._host_logits_at, memory.logits.data.ptr, memory.logits.nbytes, DEVICE_TO_HOST)
            context.stream.synchronize()
            return perf_counter() - begun

    def _launch_graph(self) -> None:
        self._graph.launch(self._context.stream)

    def _parts(self, step: BoundStep, seconds: float, gap_s: dict[str, float]) -> dict[str, float]:
        """Seconds by site of a step that took `seconds` between its marks; adds a stamped one's gap."""
        if not step.step.kernel.stamped:
            return {step.step.site: seconds}
        parts: dict[str, float] = {}
        tasks_s = seconds_apart(self._memory.workspace(step.step.site, WORKSPACE))
        for part, part_s in zip(step.step.apart(), tasks_s, strict=True):
            parts[part.site] = parts.get(part.site, 0.0) + part_s
        first = next(iter(parts))
        outside_s = max(0.0, seconds - sum(tasks_s)) / (PHASE_PASSES - 1)
        gap_s[first] = gap_s.get(first, 0.0) + outside_s
        return parts

    def _split_stream(self) -> list[float]:
        times, _ = self._timer.split([step.calls for step in self._bound])
        return times

    def _split_graph(self) -> list[float]:
        graph, events = self._marked_graph or self._capture_marked()
        with explained("the timed pass"):
            graph.launch(self._context.stream)
        self._context.synchronize("the timed pass")
        return [self._timer.between(events[i], events[i + 1]) for i in range(len(self._bound))]

    def _capture_marked(self) -> tuple[Any, list[Any]]:
        """A second graph of the pass with a mark before, between and after its steps."""
        events = self._timer.own_events(len(self._bound) + 1)
        marks = [self._timer.captured_mark(event) for event in events]
        calls = [marks[0]]
        for step, mark in zip(self._bound, marks[1:], strict=True):
            calls += [*step.calls, mark]
        graph = capture(self._context, calls, "the marked pass")
        self._marked_graph = (graph, events)
        return self._marked_graph
