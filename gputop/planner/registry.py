"""Phases, kernels, rungs and toggles by name, and the tasks and steps that make a pass of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from operator import add
from pathlib import Path
from typing import Self, TypeVar

from gputop import phases as bridge
from gputop.plan.rungs import Rung, Toggle
from gputop.plan.types import Dims, Kernel, KernelChoice, Phase, Plan, Site, Step, Task
from gputop.plan.work import NOTHING, Work
from gputop.planner.own_kernels.folder import OwnFolder, read_folder
from gputop.util import paths
from gputop.util.errors import UsageError, unknown_name

T = TypeVar("T")

MEASURING = "measure/"
"""Sources that measure the device and compute no phase: theirs is the cuda backend."""
PLACES = ("before", "layer", "after")
"""Where a phase can stand in a pass, in order (`Phase.place`)."""


@dataclass(frozen=True)
class Registry:
    """All that a plan is made of, by name."""

    phases: tuple[Phase, ...]
    """In pass order."""
    records: tuple[Kernel, ...]
    """Every kernel; in which phases it stands its `covers` say."""
    rungs: tuple[Rung, ...]
    toggles: tuple[Toggle, ...]
    kernels_dir: Path
    """Folder of the CUDA sources."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """File of kernels' records that can't be used, ours or the user's -> why, half a sentence."""

    @classmethod
    def load(cls, kernels_dir: Path | None = None) -> Self:
        """What this installation carries, and the user's own kernels in `kernels_dir`.

        Raise UsageError if that folder can't be read; what is wrong in it costs its own kernel.
        """
        ours = bridge.kernels()
        carried = paths.kernels_dir()
        own = read_folder(kernels_dir, ours) if kernels_dir and kernels_dir != carried else OwnFolder()
        return cls(
            bridge.phases(),
            (*ours, *own.kernels),
            bridge.rungs(),
            bridge.toggles(),
            kernels_dir or carried,
            {file: f"it can't be loaded: {why}" for file, why in bridge.unread().items()} | {**own.broken},
        )

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """Name -> record, in the order of the phases that they serve; the first if a name stands twice."""
        found: dict[str, Kernel] = {}
        for kernel in self.records:
            found.setdefault(kernel.name, kernel)
        return found

    def phase(self, name: str) -> Phase:
        """UsageError for an unknown name, as in the three below."""
        return _by_name("phase", name, {phase.name: phase for phase in self.phases})

    def kernel(self, name: str) -> Kernel:
        return _by_name("kernel", name, self.kernels)

    def rung(self, name: str) -> Rung:
        return _by_name("rung", name, {rung.id: rung for rung in self.rungs})

    def toggle(self, name: str) -> Toggle:
        return _by_name("toggle", name, {toggle.name: toggle for toggle in self.toggles})

    def rungs_of(self, backend: str) -> tuple[Rung, ...]:
        """One backend's ladder, oracles and peers included."""
        return tuple(rung for rung in self.rungs if rung.backend == backend)

    def kernels_for(self, phase: str, backend: str) -> tuple[Kernel, ...]:
        """Every kernel of a backend that computes the phase, alone or fused with others."""
        return tuple(k for k in self.kernels.values() if k.backend == backend and phase in k.covers)

    def sites(self, dims: Dims, pruned: bool, folded: bool = False) -> tuple[Site, ...]:
        """Every site of a pass, in the order in which they first run."""
        before, layer, after = (self._placed(place, dims, pruned, folded) for place in PLACES)
        return (*before, *sorted(layer, key=lambda site: site.layers[0]), *after)

    def work(self, sites: Iterable[Site], dims: Dims) -> Work:
        """Add the work of all instances of the sites."""
        works = (self.phase(site.phase).work(site, dims).times(site.count) for site in sites)
        return reduce(add, works, NOTHING)

    def site_task(self, site: Site, plan: Plan, dims: Dims) -> Task:
        """The first task at a site, as it is timed."""
        return self.phase(site.phase).task(site, site.layers[0], plan, dims, False)

    def pass_tasks(self, plan: Plan, dims: Dims, keep_layers: bool) -> tuple[Task, ...]:
        """Every task of a pass in order. `keep_layers`: each layer writes its own slots."""
        by_name = {phase.name: phase for phase in self.phases}
        return tuple(
            by_name[site.phase].task(site, layer, plan, dims, keep_layers)
            for site, layer in self._instances(dims, plan.prune, plan.fold)
        )

    def steps(self, plan: Plan, dims: Dims, keep_layers: bool = False) -> tuple[Step, ...]:
        """The pass as launches see it: a fusing kernel takes its consecutive tasks together.

        Empty for a peer. UsageError where a fusing kernel is not given all that it computes.
        """
        if plan.peer:
            return ()
        dispatch = dict(plan.dispatch)
        tasks = self.pass_tasks(plan, dims, keep_layers)
        steps: list[Step] = []
        first = 0
        while first < len(tasks):
            choice = dispatch[tasks[first].site.name]
            kernel = self.kernel(choice.kernel)
            last = _fused_end(kernel, tasks, first, dispatch) if kernel.fuses else first + 1
            steps.append(Step(kernel, tuple(divided(task, choice) for task in tasks[first:last])))
            first = last
        return tuple(steps)

    def _placed(self, place: str, dims: Dims, pruned: bool, folded: bool) -> Iterable[Site]:
        """The sites of the phases at one place of the pass, phase by phase."""
        phases = (phase for phase in self.phases if phase.place == place)
        return (replace(site, folded=folded) for phase in phases for site in phase.sites(dims, pruned))

    def _instances(self, dims: Dims, pruned: bool, folded: bool) -> Iterable[tuple[Site, int]]:
        """(site, layer) of every task in pass order."""
        before, layers, after = (tuple(self._placed(place, dims, pruned, folded)) for place in PLACES)
        yield from ((site, 0) for site in before)
        for layer in range(dims.layers):
            yield from ((site, layer) for site in layers if site.layers[0] <= layer < site.layers[1])
        yield from ((site, 0) for site in after)


def divided(task: Task, choice: KernelChoice) -> Task:
    """The task as the chosen kernel is given it."""
    return task if choice.splits is None else replace(task, splits=choice.splits)


def _by_name(kind: str, name: str, table: dict[str, T]) -> T:
    if name not in table:
        raise unknown_name(kind, name, table)
    return table[name]


def _fused_end(
    kernel: Kernel, tasks: tuple[Task, ...], first: int, dispatch: Mapping[str, KernelChoice]
) -> int:
    """Return the end of the run of tasks that a fusing kernel takes from `first` on."""
    end = first
    while end < len(tasks) and dispatch[tasks[end].site.name].kernel == kernel.name:
        end += 1
        closes = tasks[end - 1].site.phase == kernel.covers[-1]
        if closes and (end == len(tasks) or tasks[end].site.phase != kernel.covers[-1]):
            break
    taken = tuple(dict.fromkeys(task.site.phase for task in tasks[first:end]))
    if taken != kernel.covers:
        raise UsageError(
            f"{kernel.name} computes {' and '.join(kernel.covers)} in one launch, but this plan gives it "
            f"{' and '.join(taken)} alone: dispatch all of them to it, or none."
        )
    return end
