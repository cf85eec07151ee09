"""A plan's steps as calls that enqueue them: each launch compiled, packed and bound to memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gputop.backends.cuda.context import Context
from gputop.backends.cuda.launch import Geometry, KernelLaunch
from gputop.backends.cuda.library import Cublas, gemm_arguments
from gputop.backends.cuda.memory import PlanMemory
from gputop.backends.cuda.pack import pack
from gputop.errors import BadInput, NotHere
from gputop.spec import Dims, Kernel, Launch, Plan, Step

Call = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Sources:
    """Where kernels lie: `folders` in the order in which they are searched."""

    folders: tuple[Path, ...]

    def find(self, name: str) -> Path:
        for folder in self.folders:
            if (folder / name).is_file():
                return folder / name
        raise BadInput(f"Kernel source {name} is not below {' or '.join(map(str, self.folders))}.")


@dataclass(frozen=True, slots=True)
class BoundStep:
    """One step, ready to run."""

    step: Step
    calls: tuple[Call, ...]
    launches: tuple[Launch, ...]

    @property
    def label(self) -> str:
        """`kernel gemm_naive at w1, layer 3`, for messages."""
        task = self.step.tasks[0]
        return f"kernel {self.step.kernel.name} at {self.step.site}, layer {task.layer}"


class Libraries:
    """Library handles, created when a plan first asks."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._cublas: Cublas | None = None

    @property
    def cublas(self) -> Cublas:
        if self._cublas is None:
            self._cublas = Cublas()
        return self._cublas

    def close(self) -> None:
        if self._cublas is not None:
            self._cublas.close()
            self._cublas = None


class Binder:
    """Makes calls of launches on one context."""

    def __init__(self, context: Context, sources: Sources, libraries: Libraries) -> None:
        self._context = context
        self._sources = sources
        self._libraries = libraries

    def bind(
        self, steps: tuple[Step, ...], memory: PlanMemory, plan: Plan, dims: Dims
    ) -> tuple[BoundStep, ...]:
        """BadInput when a source, an entry or a library operation is missing."""
        return tuple(self._step(step, memory, plan, dims) for step in steps)

    def _step(self, step: Step, memory: PlanMemory, plan: Plan, dims: Dims) -> BoundStep:
        launches = step_launches(step, plan, dims)
        calls = tuple(self._call(step, launch, memory, plan) for launch in launches)
        return BoundStep(step, calls, launches)

    def _call(self, step: Step, launch: Launch, memory: PlanMemory, plan: Plan) -> Call:
        def address(operand: object) -> int:
            return memory.address(step.site, operand)  # type: ignore[arg-type]

        if launch.library:
            return self._library_call(launch, plan, address)
        name = launch.source or step.kernel.source
        function = self._context.function(self._sources.find(name), name, launch.entry, self._sources.folders)
        geometry = Geometry(
            launch.grid,
            launch.block,
            launch.smem_bytes,
            launch.cluster,
            launch.cooperative,
            launch.pdl and plan.pdl,
        )
        return KernelLaunch(self._context, function, geometry, pack(launch.args, address))

    def _library_call(self, launch: Launch, plan: Plan, address: Callable[[object], int]) -> Call:
        if launch.library != "cublas":
            raise NotHere(f"Library {launch.library} is not offered by this version of the cuda backend.")
        if launch.entry != "gemm":
            raise BadInput(f"cublas has no operation {launch.entry!r} here; it has: gemm.")
        gemm = gemm_arguments(launch.args, address)
        return self._libraries.cublas.gemm(gemm, plan.math, plan.layout)


def step_launches(step: Step, plan: Plan, dims: Dims) -> tuple[Launch, ...]:
    """What a step's kernel launches for its tasks."""
    if step.kernel.launches is None:
        raise BadInput(f"Kernel {step.kernel.name} has no launches: it can't run on cuda.")
    return step.kernel.launches(step.tasks, plan, dims)


def plan_launches(steps: tuple[Step, ...], plan: Plan, dims: Dims) -> Iterator[tuple[str, Launch]]:
    """Every launch of a pass with its step's site."""
    for step in steps:
        for launch in step_launches(step, plan, dims):
            yield step.site, launch


def is_library(kernel: Kernel) -> bool:
    return bool(kernel.library)
