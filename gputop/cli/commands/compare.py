"""`gputop compare`: two plans paired, or one plan against a copy of itself."""

from __future__ import annotations

import argparse
import sys

from gputop.cli.command import Command
from gputop.cli.exit_code import exit_code_of
from gputop.cli.options import (
    add_measuring_options,
    add_output_options,
    add_plan_options,
    add_replay_option,
    with_changes,
)
from gputop.cli.requirements import require_verdict, verdict_requirement
from gputop.util.errors import UsageError


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    word = "RUNG[,TOGGLE=VALUE...][,SITE:KERNEL[/SPLITS]...]"
    parser.add_argument("a", metavar="A", help=f"the plan to compare with: {word}")
    parser.add_argument("b", metavar="B", nargs="?", help="the plan to judge")
    parser.add_argument(
        "--aa", action="store_true", help="pair A with an independently prepared copy of itself"
    )
    parser.add_argument(
        "--require",
        type=verdict_requirement,
        metavar="faster|not-slower",
        help="exit 1 if B is not faster than A (or is slower), 5 if that stays undecided",
    )
    add_plan_options(parser, rung=False)
    add_replay_option(parser)
    add_measuring_options(parser)
    add_output_options(parser)


def _run(options: argparse.Namespace) -> int:
    if options.aa and options.b is not None:
        raise UsageError("--aa pairs one plan with itself: give one plan, or leave --aa out.")
    if not options.aa and options.b is None:
        raise UsageError("compare needs two plans, or one and --aa for its noise floor.")
    if options.aa and options.require:
        raise UsageError("--require judges plan B against plan A: --aa has one plan only.")

    from gputop.cli.output import Output
    from gputop.cli.tables.breakdown_lines import compared_lines
    from gputop.cli.tables.window_lines import comparison_lines, copies_line
    from gputop.cli.terminal import Terminal, print_data
    from gputop.cli.worker_session import WorkerSession
    from gputop.plan.plan_string import parse_word
    from gputop.results import export
    from gputop.results.launch_state import of_one_state
    from gputop.results.meta_analysis import pool
    from gputop.results.pooled_words import extent_words, pooled_words

    output = Output.of(options)
    a = with_changes(parse_word(options.a), options)
    b = a if options.aa else with_changes(parse_word(options.b), options)
    windows = []
    with WorkerSession(options) as session:
        for number in range(options.windows):
            if options.windows > 1:
                session.narrator.note(f"window {number + 1} of {options.windows}")
            pinned = None if options.aa else a
            windows.append(session.measure(b, pinned, aa=options.aa, check_phases=output.exports))
    exit_code_of(lane.gate for window in windows for lane in window.lanes)
    pooled = of_one_state(windows)
    if len(pooled) < len(windows):
        left_out = len(windows) - len(pooled)
        session.narrator.note(
            f"{left_out} of {len(windows)} windows left out: launches cost another amount there"
        )
    comparisons = [window.comparison for window in pooled if window.comparison is not None]
    if not comparisons:
        raise UsageError(windows[-1].verdict)
    comparison = pool(comparisons)
    if output.shows_table:
        terminal = Terminal.of(sys.stdout)
        print_data(*comparison_lines(windows[-1], comparison, terminal))
        print_data(*compared_lines(windows[-1], comparison, terminal))
        print_data(f"the intervals above: {extent_words(comparison)}")
        if words := pooled_words(windows[-1].pooled):
            print_data(f"with earlier windows of this pair: {words}")
        if options.aa:
            print_data(copies_line(comparison))
    output.write(export.compare_csv(comparison), export.compare_json(comparison))
    if options.require:
        require_verdict(options.require, comparison)
    return 0


COMMAND = Command(
    name="compare",
    summary="two plans paired: per phase and whole, verdict; with one plan and --aa its noise floor",
    examples=(
        "gputop compare cpu-loops cpu-blas --backend cpu --workload tiny --csv -",
        "gputop compare cpu-blas cpu-blas,fold=on,w2:cpu_loops_gemm",
        "gputop compare cpu-blas --aa",
        "gputop compare graph torch-compile",
        "gputop compare cpu-blas cpu-fused --windows 3 --require not-slower",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
