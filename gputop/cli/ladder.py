"""`gputop ladder`: several rungs in one window, measured against predicted."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from gputop.cli.command import Command
from gputop.cli.options import add_measuring_options, add_output_options, add_plan_options, with_changes
from gputop.cli.outcome import outcome
from gputop.errors import BadInput, unknown_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gputop.results import RungView


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--rungs", metavar="A,B,C", help="these rungs (default: all that can run here)")
    which.add_argument(
        "--attribute", metavar="FROM..TO", help="the rungs between two: what each change banked, and the sum"
    )
    add_plan_options(parser, rung=False)
    add_measuring_options(parser, windows=False)
    add_output_options(parser)


def _run(options: argparse.Namespace) -> int:
    from gputop import export
    from gputop.cli.attribution import attribution_lines
    from gputop.cli.bench import Bench
    from gputop.cli.output import Output
    from gputop.cli.render import ladder_lines
    from gputop.cli.terminal import Terminal, print_data
    from gputop.spec import PlanRequest

    output = Output.of(options)
    with Bench(options) as bench:
        rungs = chosen(bench.opened.rungs, options.rungs, options.attribute)
        requests = [with_changes(PlanRequest(rung), options) for rung in rungs]
        ladder = bench.survive(
            lambda: bench.client.measure_ladder(
                requests, seconds=options.seconds, on_progress=bench.narrator.progress
            )
        )
    if output.shows_table:
        terminal = Terminal.of(sys.stdout)
        print_data(*ladder_lines(ladder, terminal))
        if options.attribute:
            print_data("", *attribution_lines(ladder, terminal))
    output.write(export.ladder_csv(ladder), export.ladder_json(ladder))
    return outcome(entry.gate for entry in ladder.entries)


def chosen(rungs: Sequence[RungView], listed: str | None, span: str | None) -> list[str]:
    """Ids of the rungs to measure. BadInput for a name that is not here, or a span that is none."""
    steps = [rung for rung in rungs if rung.kind == "ladder"]
    if listed is not None:
        names = [name for name in listed.split(",") if name]
        if not names:
            raise BadInput("--rungs needs names: --rungs A,B,C.")
        return list(dict.fromkeys(_known(name, rungs) for name in names))
    if span is not None:
        first, dots, last = span.partition("..")
        if not (first and dots and last):
            raise BadInput(f"{span!r} is no span of rungs: --attribute FROM..TO.")
        ids = [rung.id for rung in steps]
        start, end = ids.index(_known(first, steps)), ids.index(_known(last, steps))
        if start >= end:
            raise BadInput(f"{first} does not come before {last} on the ladder: {', '.join(ids)}.")
        return ids[start : end + 1]
    return [rung.id for rung in steps if not rung.refused]


def _known(name: str, rungs: Sequence[RungView]) -> str:
    found = next((rung for rung in rungs if rung.id == name), None)
    if found is None:
        raise unknown_name("rung", name, (rung.id for rung in rungs))
    if found.refused:
        raise BadInput(f"{name} can't run here: {found.refused}")
    return name


COMMAND = Command(
    name="ladder",
    summary="several rungs in one window, predicted against measured",
    examples=(
        "gputop ladder --rungs cpu-loops,cpu-blas,cpu-pruned --backend cpu",
        "gputop ladder --attribute cpu-blas..cpu-pruned",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
