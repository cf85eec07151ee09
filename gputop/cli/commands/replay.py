"""`gputop replay`: a recording on the screen, or as tables; no GPU needed."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from gputop.cli.command import Command
from gputop.cli.exit_code import exit_code_of
from gputop.cli.options import add_output_options, add_theme_option
from gputop.cli.terminal import print_message, why_no_screen

if TYPE_CHECKING:
    from gputop.cli.output import Output
    from gputop.session.replay import Replay


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "recording", metavar="FILE|NAME", help="a file, or the name of one shipped with gputop: h200"
    )
    parser.add_argument("--rung", metavar="ID", help="the rung whose phases are shown")
    add_output_options(parser)
    add_theme_option(parser)


def _run(options: argparse.Namespace) -> int:
    from gputop.cli.output import Output
    from gputop.plan.types import PlanRequest
    from gputop.session.replay import Replay

    output = Output.of(options)
    replay = Replay.open(options.recording)
    request = PlanRequest(options.rung or replay.default_rung)
    replay.view(request)
    why_not = why_no_screen()
    if why_not and not output.exports and sys.stdout.isatty():
        print_message(f"{why_not}, so it is printed.")
    if not output.exports and not why_not:
        from gputop.ipc.connection import Connection
        from gputop.tui.options import Options
        from gputop.tui.start import run_tui

        return run_tui(
            Options(
                backend="replay",
                workload=replay.workload,
                device=options.recording,
                request=request if options.rung else None,
                theme=options.theme,
            ),
            Connection(read_ahead=replay),
        )
    return _print(replay, request.rung, output)


def _print(replay: Replay, rung: str, output: Output) -> int:
    """The ladder, then the rung's phases in the window that pairs it with the rung before."""
    from gputop.cli.batch_sweep import batch_lines
    from gputop.cli.tables.ladder_lines import ladder_lines
    from gputop.cli.tables.window_lines import window_lines
    from gputop.cli.terminal import Terminal, print_data
    from gputop.plan.types import PlanRequest
    from gputop.results import export

    window = replay.first_window(PlanRequest(rung))
    rows = [row for lane in window.lanes for row in lane.rows]
    if output.shows_table:
        terminal = Terminal.of(sys.stdout)
        why_not = replay.why_no_ladder
        ladder = [why_not] if why_not else ladder_lines(replay.measure_ladder(()), terminal)
        batches = ["", *batch_lines(replay.batches, terminal)] if replay.batches else []
        print_data(*ladder, *batches, "", *window_lines(window, terminal))
    output.write(export.phase_csv(rows), export.phase_json(rows))
    return exit_code_of(lane.gate for lane in window.lanes)


COMMAND = Command(
    name="replay",
    summary="show a recording, no GPU needed: on the screen, or as tables without a terminal",
    examples=(
        "gputop replay h200",
        "gputop replay ladder.jsonl --rung coalesced --csv -",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
