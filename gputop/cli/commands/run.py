"""`gputop run`: one plan, window by window."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from gputop.cli.command import Command
from gputop.cli.exit_code import exit_code_of
from gputop.cli.options import (
    add_measuring_options,
    add_output_options,
    add_plan_options,
    add_replay_option,
    request_of,
)
from gputop.cli.requirements import require_share, share_requirement

if TYPE_CHECKING:
    from gputop.plan.choices import PlanView
    from gputop.plan.types import Workload
    from gputop.results.records import Gate, PlanResult, Row, Window


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--require",
        type=share_requirement,
        metavar="floor=SHARE|reach=SHARE",
        help="exit 1 if the pass takes more than 1/SHARE of that bound, 5 if the bound is unknown",
    )
    add_plan_options(parser)
    add_replay_option(parser)
    add_measuring_options(parser)
    add_output_options(parser)


def _run(options: argparse.Namespace) -> int:
    from gputop.cli.output import Output
    from gputop.cli.tables.window_lines import window_lines
    from gputop.cli.terminal import Terminal, print_data
    from gputop.cli.worker_session import WorkerSession
    from gputop.results import export

    output = Output.of(options)
    rows: list[Row] = []
    gates: list[Gate] = []
    with WorkerSession(options) as session:
        request = request_of(options, session.opened.default_rung)
        for number in range(options.windows):
            window = session.measure(request, check_phases=output.exports)
            for lane in window.lanes:
                rows += lane.rows or [
                    _untimed(window, lane, session.client.resolve(request), session.opened.workload)
                ]
                gates.append(lane.gate)
            if output.shows_table:
                if number:
                    print_data("")
                print_data(*window_lines(window, Terminal.of(sys.stdout)))
            if not gates[-1].ok:
                break
    output.write(export.phase_csv(rows), export.phase_json(rows))
    code = exit_code_of(gates)
    if options.require:
        require_share(options.require, rows)
    return code


def _untimed(window: Window, lane: PlanResult, view: PlanView, workload: Workload) -> Row:
    """The one row of a plan whose gate failed: why it has no time."""
    from gputop.results.records import SCHEMA_PHASES, Row

    return Row(
        schema=SCHEMA_PHASES,
        time_utc=window.time_utc,
        window=window.number,
        samples=0,
        backend=window.device.backend,
        device=window.device.name,
        driver=window.device.driver,
        workload=window.workload,
        batch=view.batch,
        seq=workload.dims.seq,
        rung=lane.rung,
        plan=lane.plan,
        phase="device",
        math=view.math,
        gate=lane.gate.status,
        gate_error=lane.gate.pass_error,
        versions=window.device.versions,
        status=lane.gate.where,
    )


COMMAND = Command(
    name="run",
    summary="measure one plan: windows, gate, phase table",
    examples=(
        "gputop run --backend cpu --workload tiny --rung cpu-blas",
        "gputop run --rung graph --use w2=cublas --windows 3 --csv w2.csv",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
