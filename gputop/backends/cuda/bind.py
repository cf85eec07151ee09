"""A plan's steps as calls that enqueue them: each launch compiled, packed and bound to memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from gputop.backends.argument_words import Address
from gputop.backends.cuda.compiler.sources import Sources
from gputop.backends.cuda.libraries.cublas import Cublas, gemm_arguments
from gputop.backends.cuda.libraries.cublaslt import CublasLt
from gputop.backends.cuda.machine_code import check_arguments
from gputop.backends.cuda.memory import PlanMemory
from gputop.backends.cuda.runtime.context import Context, Function
from gputop.backends.cuda.runtime.launch import Geometry, KernelLaunch
from gputop.backends.cuda.runtime.params import pack
from gputop.backends.cuda.runtime.utility_kernels import Tools
from gputop.backends.cuda.timing.events import Timer
from gputop.plan.types import Activation, Dims, Launch, Plan, Step
from gputop.planner.kernel_calls import launches_of
from gputop.util.errors import UsageError, unknown_name

Call = Callable[[], None]

LIBRARY_OPERATIONS = {"cublas": ("gemm",), "cublaslt": ("gemm", "gemm_best")}
"""What a library launch may name as its entry; each takes the arguments of our own GEMMs."""


@dataclass(frozen=True, slots=True)
class BoundStep:
    """One step, ready to run."""

    step: Step
    calls: tuple[Call, ...]

    @property
    def label(self) -> str:
        """`kernel gemm_split_k/4 at w1, layer 3`, for messages."""
        task = self.step.tasks[0]
        return f"kernel {self.step.choice} at {self.step.site}, layer {task.layer}"


class Libraries:
    """Library handles, created when a plan first asks."""

    def __init__(self, context: Context, tools: Tools, timer: Timer) -> None:
        self._context = context
        self._tools = tools
        self._timer = timer
        self._cublas: Cublas | None = None
        self._cublaslt: CublasLt | None = None

    @property
    def cublas(self) -> Cublas:
        """Unavailable without cuBLAS."""
        if self._cublas is None:
            self._cublas = Cublas(self._context)
        return self._cublas

    @property
    def cublaslt(self) -> CublasLt:
        """Unavailable without nvmath."""
        if self._cublaslt is None:
            self._cublaslt = CublasLt(self._context, self._tools, self._timer)
        return self._cublaslt

    def close(self) -> None:
        """Harmless twice; not after a kernel that does not end, for which a library would wait."""
        if self._context.hung is not None:
            return
        for library in (self._cublas, self._cublaslt):
            if library is not None:
                library.close()
        self._cublas = self._cublaslt = None


class Binder:
    """Makes calls of launches on one context."""

    def __init__(self, context: Context, sources: Sources, libraries: Libraries) -> None:
        self._context = context
        self._sources = sources
        self._libraries = libraries

    def bind(
        self, steps: tuple[Step, ...], memory: PlanMemory, plan: Plan, dims: Dims
    ) -> tuple[BoundStep, ...]:
        """UsageError when a source, an entry or a library operation is missing."""
        return tuple(self._step(step, memory, plan, dims) for step in steps)

    def _step(self, step: Step, memory: PlanMemory, plan: Plan, dims: Dims) -> BoundStep:
        launches = step_launches(step, plan, dims)
        return BoundStep(step, tuple(self._call(step, launch, memory, plan, dims) for launch in launches))

    def _call(self, step: Step, launch: Launch, memory: PlanMemory, plan: Plan, dims: Dims) -> Call:
        address = partial(memory.address, step.site)

        if launch.library:
            return self._library_call(launch, plan, address, dims.activation)
        name = launch.source or step.kernel.source
        sources = self._sources
        function = self._context.function(
            sources.find(name), name, launch.entry, sources.folders, sources.macros
        )
        whole_wave = launch.cooperative and not any(launch.grid)
        geometry = Geometry(
            self._whole_wave(function, launch) if whole_wave else launch.grid,
            launch.block,
            launch.smem_bytes,
            launch.cluster,
            launch.cooperative,
            launch.pdl and plan.pdl,
            plan.carveout == "shared",
        )
        arguments = pack(launch.args, address)
        if step.kernel.record:
            check_arguments(step.kernel, function.facts, len(arguments))
        return KernelLaunch(self._context, function, geometry, arguments)

    def _library_call(self, launch: Launch, plan: Plan, address: Address, activation: Activation) -> Call:
        operations = LIBRARY_OPERATIONS.get(launch.library)
        if operations is None:
            raise unknown_name("library", launch.library, LIBRARY_OPERATIONS)
        if launch.entry not in operations:
            raise unknown_name(f"operation of {launch.library}", launch.entry, operations)
        gemm = gemm_arguments(launch.args, address, activation)
        if launch.library == "cublas":
            return self._libraries.cublas.gemm(gemm, plan.math, plan.layout)
        best = launch.entry == "gemm_best"
        return self._libraries.cublaslt.gemm(gemm, plan.math, plan.layout, best, plan.batch)

    def _whole_wave(self, function: Function, launch: Launch) -> tuple[int, int, int]:
        """Return how many blocks the device holds at once; UsageError if not even one fits on an SM."""
        threads = launch.block[0] * launch.block[1] * launch.block[2]
        function.allow_smem(launch.smem_bytes)
        resident = function.blocks_per_sm(threads, launch.smem_bytes)
        if resident == 0:
            raise UsageError(f"No block of {launch.entry} fits on an SM of this device.")
        return (resident * self._context.sm_count, 1, 1)


def step_launches(step: Step, plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    """Return the launches of a step's kernel for its tasks."""
    if step.kernel.launches is None:
        raise UsageError(f"Kernel {step.kernel.name} has no launches: it can't run on cuda.")
    return launches_of(step, plan, dims)


def plan_launches(steps: tuple[Step, ...], plan: Plan, dims: Dims) -> Iterator[tuple[str, Launch]]:
    """Every launch of a pass with its step's site."""
    for step in steps:
        for launch in step_launches(step, plan, dims):
            yield step.site, launch
