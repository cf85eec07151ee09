"""From a checked record to the kernels that it describes, one for each tile and number of stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from gputop.plan.types import Dims, Kernel, Launch, Plan, Task
from gputop.planner.own_kernels.record import TILE_SIZES, OwnRecord, entry_name
from gputop.util.errors import UsageError

REDUCE_THREADS = 256


@dataclass(frozen=True, slots=True)
class _Own:
    """One kernel of a record: its entry at one tile and number of stages."""

    record: OwnRecord
    like: Kernel
    """Ours, whose arguments it is given."""
    tile: tuple[int, int, int] | None
    stages: int | None

    @property
    def entry(self) -> str:
        return entry_name(self.record.entry, self.tile, self.stages)

    @property
    def own_sizes(self) -> dict[str, int]:
        """What the record itself fixes."""
        numbers = (*(self.tile or (None,) * 3), self.stages)
        return {name: number for name, number in zip(TILE_SIZES, numbers, strict=True) if number is not None}

    def given(self, task: Task, plan: Plan, dims: Dims) -> tuple[Launch, ...]:
        """The launches that our kernel would make of the task. A C function has no launch for the rest, so it
        does all of it."""
        assert self.like.launches is not None
        fused = plan.fused_stores or self.record.backend == "cpu"
        return self.like.launches((task,), plan.change(fused_stores=fused), dims)

    def launches(self, task: Task, plan: Plan, dims: Dims) -> tuple[Launch, ...]:
        found: list[Launch] = []
        for launch in self.given(task, plan, dims):
            if launch.entry not in self.like.entries:
                found.append(launch)
                continue
            sizes = self.record.family.sizes_in(launch.args) | self.own_sizes
            found.append(self._launch(launch, sizes))
            if self.record.reduce and task.splits > 1:
                grid = (-(-sizes["columns"] // REDUCE_THREADS), sizes["rows"], 1)
                added = replace(launch, entry=self.record.reduce, grid=grid, block=(REDUCE_THREADS, 1, 1))
                found.append(replace(added, smem_bytes=0, pdl=False))
        return tuple(found)

    def _launch(self, launch: Launch, sizes: Mapping[str, int]) -> Launch:
        record = self.record
        x, y, z = (rule.value(sizes) for rule in record.grid) if record.grid else (1, 1, 1)
        return replace(
            launch,
            entry=self.entry,
            grid=(x, y, z),
            block=record.block,
            smem_bytes=record.smem_bytes.value(sizes) if record.smem_bytes else 0,
            cluster=record.cluster,
            pdl=record.pdl,
        )

    def limits(self, task: Task, plan: Plan, dims: Dims) -> str | None:
        """Why it can't take the task, by its sites, its sizes, or what its rules give."""
        record = self.record
        if record.sites and task.site.name not in record.sites:
            return f"{record.file} says that it is for {' and '.join(record.sites)}"
        for launch in self.given(task, plan, dims):
            if launch.entry in self.like.entries:
                sizes = record.family.sizes_in(launch.args)
                if why := next(_unfit(record.takes, sizes, task.site.name), None):
                    return why
                try:
                    made = self._launch(launch, sizes | self.own_sizes)
                except UsageError as error:
                    return f"its rule {error} at {task.site.name}"
                if made.grid[0] % record.cluster:
                    blocks = f"{task.site.name} has {made.grid[0]} along x"
                    return f"its clusters have {record.cluster} blocks, and {blocks}"
        return None


def kernels_of(record: OwnRecord, ours: Mapping[str, Kernel]) -> Iterator[Kernel]:
    """Yield the kernels of a record, named as their entries. `ours`: gputop's own by name."""
    like = ours[record.family.like]
    for tile in record.tiles or (None,):
        for stages in record.stages or (None,):
            yield _kernel(_Own(record, like, tile, stages))


def _kernel(own: _Own) -> Kernel:
    record = own.record
    return Kernel(
        name=own.entry,
        backend=record.backend,
        idea=record.idea or f"Your own, by {record.file}.",
        covers=record.phases,
        entries=(own.entry, record.reduce) if record.reduce else (own.entry,),
        source=record.source,
        splits=record.splits,
        blocks_per_sm=record.blocks_per_sm,
        maths=record.math,
        layouts=(record.layout,) if record.layout else own.like.layouts,
        fused_stores=record.family.divides and record.backend == "cuda",
        record=record.file,
        limits=own.limits,
        launches=lambda tasks, plan, dims: own.launches(tasks[0], plan, dims),
    )


def _unfit(takes: Mapping[str, Mapping[str, int]], sizes: Mapping[str, int], site: str) -> Iterator[str]:
    """Each size that the record does not take, half a sentence."""
    for size, bounds in takes.items():
        given = sizes[size]
        if given % bounds.get("multiple", 1):
            yield f"it needs {size} a multiple of {bounds['multiple']}, and {site} has {given}"
        if given < bounds.get("least", given):
            yield f"it needs {size} of at least {bounds['least']}, and {site} has {given}"
        if given > bounds.get("most", given):
            yield f"it needs {size} of at most {bounds['most']}, and {site} has {given}"
