"""A user's own kernels after a save: read again, compiled, and each with the plan in which it is tried."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

from gputop.backends.base import Say
from gputop.plan.types import Kernel, KernelChoice, Plan, PlanRequest
from gputop.planner.plan_views import kernel_flips
from gputop.planner.registry import Registry
from gputop.results.kernel_report import KernelReport, MachineCode, SourceFault
from gputop.session.context import SessionContext
from gputop.util import paths
from gputop.util.errors import CompileFailed, GputopError, UsageError
from gputop.util.input_file import read_input_text

AROUND = 3
"""Lines of the source shown before and after an error."""
MOST_SOURCE_BYTES = 4 << 20
HEADERS = (".cuh", ".h")


def rebuild(
    bench: SessionContext, request: PlanRequest, site: str | None, changed: Collection[str], say: Say
) -> tuple[KernelReport, ...]:
    """Read the folder again, and return a report on each kernel that a changed file is part of.

    `changed`: files below the folder, empty for all of them; `request`: the plan that is measured; `site`:
    the selected one, at which a kernel is tried if it can serve it. Raise UsageError if the folder can't be
    read.
    """
    if bench.catalog.kernels_dir == paths.kernels_dir():
        raise UsageError("There is no folder of your own kernels: name one with --kernels DIR.")
    read = Registry.load(bench.catalog.kernels_dir)
    known = bench.catalog.kernels
    bench.take_catalog(replace(bench.catalog, records=read.records, unread=read.unread), changed)
    base = _without_own(request, known | bench.catalog.kernels)
    return tuple(_reports(bench, base, site, changed, say))


def _without_own(request: PlanRequest, kernels: dict[str, Kernel]) -> PlanRequest:
    """The plan with the kernels of gputop's own in place of the user's."""
    uses = (use for use in request.uses if use[1].kernel in kernels and not kernels[use[1].kernel].record)
    return replace(request, uses=tuple(uses))


def _reports(
    bench: SessionContext, base: PlanRequest, site: str | None, changed: Collection[str], say: Say
) -> Iterator[KernelReport]:
    folder = bench.catalog.kernels_dir
    plan = bench.resolve(base)
    for file, why in bench.catalog.unread.items():
        if is_part(file, changed):
            yield KernelReport(file, file, SourceFault(f"{file}: {why}", file))
    for kernel in bench.catalog.kernels.values():
        if not kernel.record or kernel.backend != bench.backend.name:
            continue
        if not is_part(kernel.record, changed) and not is_part(kernel.source, changed):
            continue
        say(f"compiling {kernel.source}")
        try:
            yield _trial(bench, kernel, plan, site)
        except GputopError as error:
            yield KernelReport(kernel.name, kernel.source, fault_of(error, folder))


def is_part(file: str, changed: Collection[str]) -> bool:
    """Whether a change of these files is one of `file`: a header may be included by any of them."""
    return not changed or file in changed or any(PurePosixPath(name).suffix in HEADERS for name in changed)


def _trial(bench: SessionContext, kernel: Kernel, plan: Plan, site: str | None) -> KernelReport:
    dims = bench.dims(plan)
    tasks = bench.catalog.site_tasks(plan, dims)
    served = [name for name, task in tasks.items() if task.site.phase in kernel.covers]
    # That site first which the user looks at.
    served.sort(key=lambda name: name != site)
    refusals = []
    for name in served:
        task = tasks[name]
        if why := bench.catalog.refusal(kernel, task, plan, dims):
            refusals.append(f"{kernel.name} can't serve {name} of {plan.word}: {why}")
            continue
        choice = KernelChoice(kernel.name, bench.catalog.default_splits(kernel, task, plan, dims))
        flips = kernel_flips(bench.catalog, plan, dims, name)
        trial = bench.resolve(next(asked for _, offered, asked in flips if offered == choice))
        return KernelReport(
            kernel.name,
            kernel.source,
            site=name,
            base=plan.request,
            trial=trial.request,
            code=_code(bench, trial, name),
            incumbent=_code(bench, plan, name),
        )
    phases = " and ".join(kernel.covers)
    raise UsageError(f"{'; '.join(refusals) or f'{plan.word} has no site of {phases}'}.")


def _code(bench: SessionContext, plan: Plan, site: str) -> MachineCode | None:
    """The machine code of a site's kernel in a plan, of one that stands alone."""
    choice = dict(plan.dispatch)[site]
    kernel = bench.catalog.kernel(choice.kernel)
    if kernel.fuses:
        return None
    dims = bench.dims(plan)
    task = bench.catalog.site_tasks(plan, dims)[site]
    if choice.splits is not None:
        task = replace(task, splits=choice.splits)
    return bench.backend.machine_code(kernel, task, plan, dims)


def fault_of(error: GputopError, folder: Path) -> SourceFault:
    """Return what a compiler or a check said, with the lines of the source around it if one is named."""
    if not isinstance(error, CompileFailed) or error.line is None:
        return SourceFault(str(error))
    return SourceFault(str(error), error.file, error.line, _around(folder / error.file, error.line))


def _around(file: Path, line: int) -> tuple[tuple[int, str], ...]:
    """Numbered lines of a file around one; none if it can't be read."""
    try:
        text = read_input_text(file, "kernel source", MOST_SOURCE_BYTES).splitlines()
    except UsageError:
        return ()
    first, last = max(1, line - AROUND), min(len(text), line + AROUND)
    return tuple((number, text[number - 1]) for number in range(first, last + 1))
