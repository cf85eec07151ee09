"""`gputop` alone: the live screen."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from gputop.cli.command import Command
from gputop.cli.options import (
    add_measuring_options,
    add_output_options,
    add_plan_options,
    add_theme_option,
    kernels_dir_of,
    request_of,
    workload_of,
)
from gputop.util.errors import UsageError

if TYPE_CHECKING:
    from gputop.plan.types import PlanRequest, Workload


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_plan_options(parser)
    add_measuring_options(parser)
    add_output_options(parser)
    add_theme_option(parser)
    # So that one who asks for a number is told from one who does not.
    parser.set_defaults(windows=None, require=None)


def _run(options: argparse.Namespace) -> int:
    if options.csv is not None or options.json is not None:
        raise UsageError(
            "--csv and --json belong to a command: gputop run --csv FILE. The screen exports by a key."
        )
    if options.windows is not None:
        raise UsageError(
            "--windows belongs to a command: gputop run --windows N. The screen measures until it is stopped."
        )
    chosen = options.rung is not None or options.sets or options.uses
    request = request_of(options, "") if chosen else None
    workload = workload_of(options)
    if request is not None and request.rung:
        _require(request, workload, options)

    from gputop.tui.options import Options
    from gputop.tui.start import run_tui

    return run_tui(
        Options(
            backend=options.backend,
            workload=workload,
            device=options.device,
            batch=options.batch,
            request=request,
            kernels_dir=kernels_dir_of(options),
            seconds=options.seconds,
            remote=options.remote,
            theme=options.theme,
        )
    )


def _require(request: PlanRequest, workload: Workload, options: argparse.Namespace) -> None:
    """UsageError for a plan that no device can run, before a screen opens for it.

    What a recording has, and another host, the worker alone knows.
    """
    if options.backend == "replay" or options.remote is not None:
        return
    from pathlib import Path

    from gputop.planner.resolver import Resolver

    folder = kernels_dir_of(options)
    catalog = Resolver.load(Path(folder) if folder else None)
    own = catalog.rung(request.rung).backend
    catalog.resolve(request, workload.dims, own if options.backend == "auto" else options.backend)


COMMAND = Command(
    name="",
    summary="the live screen: where a pass spends its time, how far from physics, what binds it",
    examples=("gputop --workload tiny", "gputop --backend cpu --rung cpu-blas", "gputop --remote gpu-server"),
    add_arguments=_add_arguments,
    run=_run,
)
