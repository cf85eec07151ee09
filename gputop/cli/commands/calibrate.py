"""`gputop calibrate`: this device's ceilings."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime

from gputop.cli.command import Command
from gputop.cli.options import (
    add_backend_option,
    add_output_options,
    add_workload_option,
)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--force", action="store_true", help="measure again what was measured before")
    group = parser.add_argument_group("device")
    add_backend_option(group)
    group.add_argument(
        "--device", metavar="INDEX|UUID|FILE", help="which device, where there are several; which recording"
    )
    add_workload_option(group)
    group.add_argument("--remote", metavar="HOST", help="measure on HOST, through `ssh HOST gputop worker`")
    add_output_options(parser)
    parser.set_defaults(kernels_dir=None, seconds=None)


def _run(options: argparse.Namespace) -> int:
    from gputop.cli.output import Output
    from gputop.cli.tables.window_lines import ceiling_lines
    from gputop.cli.terminal import Terminal, print_data
    from gputop.cli.worker_session import WorkerSession
    from gputop.results import export

    output = Output.of(options)
    begun_utc = datetime.now(UTC).isoformat(timespec="seconds")
    with WorkerSession(options) as session:
        ceilings = session.retry_once(
            lambda: session.client.calibrate(force=options.force, on_progress=session.narrator.progress)
        )
        kept = not (options.force or session.opened.device.recording)
        if kept and ceilings.time_utc < begun_utc:
            session.narrator.note(
                f"measured at {ceilings.time_utc}, by an earlier start; --force measures anew"
            )
    if output.shows_table:
        print_data(*ceiling_lines(ceilings, Terminal.of(sys.stdout)))
    output.write(export.ceilings_csv(ceilings), export.ceilings_json(ceilings))
    return 0


COMMAND = Command(
    name="calibrate",
    summary="measure this device's ceilings, kept for later runs",
    examples=("gputop calibrate --force", "gputop calibrate --backend cpu --json -"),
    add_arguments=_add_arguments,
    run=_run,
)
