"""Phases, kernels, rungs and toggles by name, and the tasks and steps that make a pass of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from functools import cached_property, reduce
from operator import add
from pathlib import Path
from typing import Self, TypeVar

from gputop import phases as bridge
from gputop.plan.traffic import NOTHING, Work
from gputop.plan.types import Dims, Kernel, Launch, Phase, Plan, Rung, Site, Step, Task, Toggle
from gputop.util import paths
from gputop.util.errors import UsageError, unknown_name

K = TypeVar("K")
T = TypeVar("T")

MEASURING = "measure/"
"""Sources that measure the device and compute no phase: theirs is the cuda backend."""
MOST_FORMS = 64
"""Passes of which something is remembered, which differ in more than their kernels."""


def memoize_bounded(known: dict[K, T], key: K, make: Callable[[], T]) -> T:
    """What is known under a key, made where it is not; all is forgotten once there are `MOST_FORMS`.

    A screen asks for thousands of plans that differ in one entry.
    """
    if key not in known:
        if len(known) == MOST_FORMS:
            known.clear()
        known[key] = make()
    return known[key]


@dataclass(frozen=True)
class Registry:
    """All that a plan is made of, by name."""

    phases: tuple[Phase, ...]
    """In pass order."""
    rungs: tuple[Rung, ...]
    toggles: tuple[Toggle, ...]
    kernels_dir: Path
    """Folder of the CUDA sources."""

    @classmethod
    def load(cls, kernels_dir: Path | None = None) -> Self:
        """What this installation carries; `kernels_dir` in place of its own folder of CUDA sources."""
        return cls(bridge.phases(), bridge.rungs(), bridge.toggles(), kernels_dir or paths.kernels_dir())

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """Name -> record, in the order of the phases that they serve."""
        return {kernel.name: kernel for phase in self.phases for kernel in phase.kernels}

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
        known = self._kernels_for
        if (phase, backend) not in known:
            known[phase, backend] = tuple(k for k in self.phase(phase).kernels if k.backend == backend)
        return known[phase, backend]

    def sites(self, dims: Dims, pruned: bool, folded: bool = False) -> tuple[Site, ...]:
        """Every site of a pass, in the order in which they first run."""
        return tuple(dict.fromkeys(site for site, _ in self._instances(dims, pruned, folded)))

    def work(self, sites: Iterable[Site], dims: Dims) -> Work:
        """Of all instances of the sites."""
        works = (self.phase(site.phase).work(site, dims).times(site.count) for site in sites)
        return reduce(add, works, NOTHING)

    def pass_tasks(self, plan: Plan, dims: Dims, keep_layers: bool) -> tuple[Task, ...]:
        """Every task of a pass in order. `keep_layers`: each layer writes its own slots.

        Which kernels the plan chooses is nothing to a task, and not told to it.
        """
        form = plan.change(rung="", word="", dispatch=())

        def made() -> tuple[Task, ...]:
            by_name = {phase.name: phase for phase in self.phases}
            return tuple(
                by_name[site.phase].task(site, layer, form, dims, keep_layers)
                for site, layer in self._instances(dims, plan.prune, plan.fold)
            )

        return memoize_bounded(self._tasks, (form, dims, keep_layers), made)

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
            kernel = self.kernel(dispatch[tasks[first].site.name])
            last = _fused_end(kernel, tasks, first, dispatch) if kernel.fuses else first + 1
            steps.append(Step(kernel, tasks[first:last]))
            first = last
        return tuple(steps)

    @cached_property
    def _kernels_for(self) -> dict[tuple[str, str], tuple[Kernel, ...]]:
        """What `kernels_for` has found: a screen asks it for thousands of plans."""
        return {}

    @cached_property
    def _tasks(self) -> dict[tuple[Plan, Dims, bool], tuple[Task, ...]]:
        """What `pass_tasks` has found, likewise."""
        return {}

    @cached_property
    def _placed(self) -> dict[tuple[Dims, bool, bool], tuple[tuple[Site, int], ...]]:
        """What `_instances` has found, likewise."""
        return {}

    def _instances(self, dims: Dims, pruned: bool, folded: bool) -> tuple[tuple[Site, int], ...]:
        """(site, layer) of every task in pass order."""
        form = dims, pruned, folded
        if form not in self._placed:
            self._placed[form] = tuple(self._place(*form))
        return self._placed[form]

    def _place(self, dims: Dims, pruned: bool, folded: bool) -> Iterable[tuple[Site, int]]:
        placed: dict[str, list[Site]] = {"before": [], "layer": [], "after": []}
        for phase in self.phases:
            placed[phase.place] += (replace(site, folded=folded) for site in phase.sites(dims, pruned))
        yield from ((site, 0) for site in placed["before"])
        for layer in range(dims.layers):
            for site in placed["layer"]:
                if site.layers[0] <= layer < site.layers[1]:
                    yield site, layer
        yield from ((site, 0) for site in placed["after"])

    def faults(self, launches: Iterable[tuple[Kernel, Launch]] = ()) -> tuple[str, ...]:
        """What keeps the registry from being total, a sentence each; empty when nothing does.

        Every .cu outside `measure/` has a record or is used by one of `launches`, every source and
        entry named exists, and no name stands twice.
        """
        launched = [
            (kernel.name, launch.source or kernel.source, launch.entry)
            for kernel, launch in launches
            if not launch.library
        ]
        recorded = [
            (k.name, k.source, entry) for k in self.kernels.values() if k.source for entry in k.entries
        ]
        return (*self._name_faults(), *self._source_faults(dict.fromkeys((*recorded, *launched))))

    def _name_faults(self) -> Iterable[str]:
        records = {kernel for phase in self.phases for kernel in phase.kernels}
        names = {
            "phase": [phase.name for phase in self.phases],
            "kernel": [kernel.name for kernel in records],
            "rung": [rung.id for rung in self.rungs],
            "toggle": [toggle.name for toggle in self.toggles],
        }
        for kind, all_names in names.items():
            yield from (f"{kind} {name} stands twice" for name, n in Counter(all_names).items() if n > 1)
        plan_fields = {field.name for field in fields(Plan)}
        for toggle in self.toggles:
            if toggle.field not in plan_fields:
                yield f"toggle {toggle.name} flips {toggle.field}, which is no field of a plan"
        for phase in self.phases:
            for kernel in phase.kernels:
                if phase.name not in kernel.covers:
                    yield f"kernel {kernel.name} stands in phase {phase.name}, which it does not cover"

    def _source_faults(self, named: Iterable[tuple[str, str, str]]) -> Iterable[str]:
        """`named`: (kernel, source, entry) for each function that something calls."""
        texts = {
            path.relative_to(self.kernels_dir).as_posix(): path.read_text(encoding="utf-8")
            for path in sorted(self.kernels_dir.rglob("*.cu"))
        }
        unused = {source for source in texts if not source.startswith(MEASURING)}
        for kernel, source, entry in named:
            unused.discard(source)
            if source not in texts:
                yield f"kernel {kernel} names {source}, which does not exist"
            elif not re.search(rf"\b{re.escape(entry)}\b", texts[source]):
                yield f"kernel {kernel} names entry {entry}, which is not in {source}"
        yield from (f"{source} has no record" for source in sorted(unused))


def _by_name(kind: str, name: str, table: dict[str, T]) -> T:
    if name not in table:
        raise unknown_name(kind, name, table)
    return table[name]


def _fused_end(kernel: Kernel, tasks: tuple[Task, ...], first: int, dispatch: dict[str, str]) -> int:
    """Where the run of tasks that a fusing kernel takes from `first` on ends."""
    end = first
    while end < len(tasks) and dispatch[tasks[end].site.name] == kernel.name:
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
