"""`gputop list`: every name that other commands take, and what it stands for."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from gputop import backends
from gputop.cli.command import Command
from gputop.cli.options import add_plan_options, kernels_dir_of, one_of, request_of, workload_of
from gputop.util import units
from gputop.util.errors import UsageError

if TYPE_CHECKING:
    from gputop.planner.resolver import Resolver

Lines = tuple[Sequence[str], Iterable[Sequence[str]]]
"""Headings and rows."""


def _rungs(options: argparse.Namespace) -> Lines:
    from gputop.planner.saved_rungs import read_all

    rows: list[Sequence[str]] = [
        (str(rung.number), rung.id, rung.backend, rung.kind, _prediction(rung.prediction), rung.idea)
        for backend in _backends(options)
        for rung in _catalog(options).rungs_of(backend)
    ]
    saved, _ = read_all()
    rows += [
        ("", rung.name, rung.backend, "saved", "", rung.idea)
        for _, rung in saved
        if rung.backend in _backends(options)
    ]
    return ("#", "rung", "backend", "kind", "predicted", "idea"), rows


def _toggles(options: argparse.Namespace) -> Lines:
    rows = (
        (toggle.name, "|".join(toggle.values) or "N", " ".join(toggle.backends), toggle.doc)
        for toggle in _catalog(options).toggles
        if set(toggle.backends) & set(_backends(options))
    )
    return ("toggle", "values", "backends", "what it does"), rows


def _kernels(options: argparse.Namespace) -> Lines:
    from gputop.planner.kernel_checks import broken_kernels

    broken = broken_kernels(_catalog(options))
    rows = [
        (kernel.name, " ".join(map(str, kernel.splits)), kernel.backend,
         "+".join(kernel.covers) if kernel.fuses else " ".join(kernel.covers),
         " ".join(kernel.maths), kernel.source or kernel.library,
         f"BROKEN: {broken[kernel.name]}" if kernel.name in broken else kernel.idea)
        for kernel in _catalog(options).kernels.values()
        if kernel.backend in _backends(options)
    ]  # fmt: skip
    rows += [("", "", "", "", "", file, f"BROKEN: {broken[file]}") for file in _catalog(options).unread]
    return ("kernel", "/splits", "backend", "phases", "math", "source", "idea"), rows


def _sites(options: argparse.Namespace) -> Lines:
    from gputop.planner.resolver import plan_dims

    workload, catalog = workload_of(options), _catalog(options)
    measuring = _backends(options)
    request = request_of(options, catalog.rungs_of(measuring[-1])[0].id)
    backend = catalog.rung(request.rung).backend
    plan = catalog.resolve(request, workload.dims, backend if backend in measuring else measuring[-1])
    dispatch = dict(plan.dispatch)
    rows = (
        (site.name, site.phase, str(site.count), str(site.rows), str(site.columns), str(site.inner or ""),
         plan.peer or str(dispatch[site.name]))
        for site in catalog.sites(plan_dims(workload, plan), plan.prune)
    )  # fmt: skip
    return ("site", "phase", "n", "rows", "columns", "inner", f"kernel of {plan.word}"), rows


def _phases(options: argparse.Namespace) -> Lines:
    workload, catalog = workload_of(options), _catalog(options)
    rows = []
    for phase in catalog.phases:
        works = [
            phase.work(site, workload.dims).times(site.count) for site in phase.sites(workload.dims, False)
        ]
        flops, weights = sum(work.flops for work in works), sum(work.weight_bytes for work in works)
        kernels = str(sum(phase.name in kernel.covers for kernel in catalog.kernels.values()))
        rows.append((phase.name, units.flop(flops), units.size_bytes(weights), kernels, phase.title))
    return ("phase", f"FLOPs of {workload.name}", "weights", "kernels", "what it is"), rows


def _workloads(options: argparse.Namespace) -> Lines:
    from gputop.model.activation_functions import FUNCTIONS
    from gputop.model.weights import parameter_count, weight_bytes
    from gputop.model.workloads import WORKLOADS

    rows = (
        (w.name, str(d.layers), str(d.d_model), str(d.heads), str(d.d_ff), str(d.seq), str(d.vocab),
         FUNCTIONS[d.activation].title, "embedding" if d.tied_head else "own",
         f"{parameter_count(d) / 1e6:.1f} M", units.size_bytes(weight_bytes(d)))
        for w in WORKLOADS
        for d in (w.dims,)
    )  # fmt: skip
    return (
        "workload",
        "layers",
        "d_model",
        "heads",
        "d_ff",
        "seq",
        "vocab",
        "activation",
        "head",
        "parameters",
        "weights",
    ), rows


def _list_backends(options: argparse.Namespace) -> Lines:
    from gputop.results.recording import shipped

    rows = [(name, backends.load(name).available() or "usable here") for name in backends.MODULES]
    rows.append(("replay", f"usable here; recordings shipped: {', '.join(shipped()) or 'none'}"))
    return ("backend", "state"), rows


def _devices(options: argparse.Namespace) -> Lines:
    from gputop.backends.cpu.machine import processor
    from gputop.cli.doctor_findings import Absent
    from gputop.cli.gpu_listing import cuda_devices
    from gputop.results.host_words import cores_words
    from gputop.results.recording import label, read_header, shipped
    from gputop.util.host_cpu import usable_cores

    rows = [("cpu", "", processor(), "", cores_words(usable_cores()))]
    try:
        rows += [
            ("cuda", str(d.index), d.name, d.uuid, units.size_bytes(d.memory_bytes)) for d in cuda_devices()
        ]
    except Absent as absent:
        rows.append(("cuda", "", f"none: {absent}", "", ""))
    for name, path in shipped().items():
        header = read_header(path)
        size = units.size_bytes(header.device.memory_bytes)
        rows.append(("replay", name, label(header), "", size))
    return ("backend", "index", "device", "uuid", "size"), rows


def _columns(options: argparse.Namespace) -> Lines:
    from gputop.results.schemas import SCHEMAS

    rows = ((schema.name, c.key, c.unit, c.doc) for schema in SCHEMAS for c in schema.columns)
    return ("schema", "column", "unit", "what it holds"), rows


def _loops(options: argparse.Namespace) -> Lines:
    from gputop.cli import sass_loops

    catalog = _catalog(options)
    request = request_of(options, catalog.rungs_of("cuda")[0].id)
    return sass_loops.TITLES, sass_loops.rows(catalog, workload_of(options), request)


LISTS: Mapping[str, Callable[[argparse.Namespace], Lines]] = {
    "rungs": _rungs,
    "toggles": _toggles,
    "kernels": _kernels,
    "sites": _sites,
    "phases": _phases,
    "workloads": _workloads,
    "backends": _list_backends,
    "devices": _devices,
    "columns": _columns,
    "loops": _loops,
}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", type=one_of("list", LISTS), metavar="WHAT", help=" | ".join(LISTS))
    parser.add_argument(
        "--template", metavar="SITE", help="with kernels: write a kernel of your own for SITE to begin with"
    )
    parser.add_argument("-o", "--output", metavar="DIR", help="where it goes (default: my-kernels)")
    add_plan_options(parser)


def _run(options: argparse.Namespace) -> int:
    from gputop.cli.tables.text_table import Heading, table
    from gputop.cli.terminal import Terminal, print_data

    if options.template is not None or options.output is not None:
        return _template(options)
    titles, rows = LISTS[options.what](options)
    terminal = Terminal.of(sys.stdout)
    lines = table([Heading(title) for title in titles], rows, terminal.width)
    print_data(terminal.paint(lines[0], "strong"), *lines[1:])
    return 0


def _template(options: argparse.Namespace) -> int:
    from gputop.cli.kernel_template import write_template

    if options.what != "kernels" or options.template is None:
        raise UsageError("-o and --template belong together: gputop list kernels --template w1 -o DIR.")
    _backends(options)
    return write_template(options, _catalog(options))


def _catalog(options: argparse.Namespace) -> Resolver:
    from pathlib import Path

    from gputop.planner.resolver import Resolver

    folder = kernels_dir_of(options)
    return Resolver.load(Path(folder) if folder else None)


def _backends(options: argparse.Namespace) -> tuple[str, ...]:
    """The one asked for, or all that measure."""
    if options.backend == "replay":
        raise UsageError("A recording has its own names: `gputop replay FILE` shows them.")
    return tuple(backends.MODULES) if options.backend == "auto" else (options.backend,)


def _prediction(prediction: object) -> str:
    from gputop.plan.rungs import Prediction

    if not isinstance(prediction, Prediction):
        return ""
    return f"{units.ratio(prediction.gain)} ({prediction.source})"


COMMAND = Command(
    name="list",
    summary="names that other commands take: rungs, toggles, kernels, sites, phases, columns; kernels' loops",
    examples=(
        "gputop list rungs --backend cpu",
        "gputop list sites --rung cpu-pruned",
        "gputop list columns",
        "gputop list kernels --template w1 -o my-kernels",
        "gputop list loops --rung wmma",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
