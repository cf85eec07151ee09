"""`gputop` alone: the live screen."""

from __future__ import annotations

import argparse

from gputop.cli.command import Command
from gputop.cli.options import (
    add_measuring_options,
    add_output_options,
    add_plan_options,
    kernels_dir_of,
    request_of,
    workload_of,
)
from gputop.errors import BadInput


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_plan_options(parser)
    add_measuring_options(parser)
    add_output_options(parser)


def _run(options: argparse.Namespace) -> int:
    if options.csv is not None or options.json is not None:
        raise BadInput(
            "--csv and --json belong to a command: gputop run --csv FILE. The screen exports by a key."
        )

    from gputop.tui.options import Options
    from gputop.tui.start import run_tui

    chosen = options.rung is not None or options.sets or options.uses
    return run_tui(
        Options(
            backend=options.backend,
            workload=workload_of(options),
            device=options.device,
            batch=options.batch,
            request=request_of(options, "") if chosen else None,
            kernels_dir=kernels_dir_of(options),
            seconds=options.seconds,
            remote=options.remote,
        )
    )


COMMAND = Command(
    name="",
    summary="the live screen: where a pass spends its time, how far from physics, what binds it",
    examples=("gputop --workload tiny", "gputop --backend cpu --rung cpu-blas", "gputop --remote gpu-server"),
    add_arguments=_add_arguments,
    run=_run,
)
