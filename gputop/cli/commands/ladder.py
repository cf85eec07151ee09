"""`gputop ladder`: several rungs, or one at several batches, in one window; which kernel suits each site."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from gputop.cli.batch_sweep import at_batches, batch_list
from gputop.cli.command import Command
from gputop.cli.exit_code import exit_code_of
from gputop.cli.options import (
    add_measuring_options,
    add_output_options,
    add_plan_options,
    request_of,
    with_changes,
)
from gputop.util.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gputop.cli.output import Output
    from gputop.cli.worker_session import WorkerSession
    from gputop.plan.choices import RungView
    from gputop.plan.types import PlanRequest
    from gputop.results.ladder import Ladder


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--rungs", metavar="A,B,C", help="these rungs (default: all that are ready within seconds here)"
    )
    which.add_argument(
        "--attribute",
        metavar="FROM..TO",
        help="the rungs from one to another: what each change saved, the sum, and the peers' margins",
    )
    which.add_argument(
        "--batches", type=batch_list, metavar="1,2,4", help="one rung at these batches (which: --rung)"
    )
    which.add_argument(
        "--replay",
        nargs="+",
        metavar="FILE|NAME",
        help="measure nothing: pool the ladders of recordings, one of each card",
    )
    parser.add_argument(
        "--routing",
        action="store_true",
        help="then, for the last rung, every kernel at every site; --csv and --json hold that table",
    )
    add_plan_options(parser)
    add_measuring_options(parser, windows=False)
    add_output_options(parser)


def _run(options: argparse.Namespace) -> int:
    from gputop.cli.output import Output
    from gputop.cli.worker_session import WorkerSession

    _check(options)
    output = Output.of(options)
    if options.replay:
        return _pool_recorded(options.replay, output)
    with WorkerSession(options) as session:
        if session.opened.device.recording:
            _check_recorded(session.opened.device.recording, options)
        requests = _requests(session, options)
        ladder = session.retry_once(
            lambda: session.client.measure_ladder(
                requests,
                seconds=options.seconds,
                check_phases=output.exports and not options.routing,
                on_progress=session.narrator.progress,
            )
        )
        _show(ladder, options, output)
        if options.routing:
            _route(session, _last(ladder, requests), output)
        elif options.batches is None and not session.opened.device.recording and (own := _timed(ladder)):
            session.narrator.note(f"add --routing to learn which kernel suits each site of {own[-1]}")
    return exit_code_of(entry.gate for entry in ladder.entries if entry.gate.status != "unchecked")


def _pool_recorded(names: Sequence[str], output: Output) -> int:
    """Show the ladders of several cards beside each other, and what they say together."""
    from gputop.cli.recorded_ladders import recorded_ladders
    from gputop.cli.tables.fleet_lines import fleet_lines
    from gputop.cli.terminal import Terminal, print_data
    from gputop.results import export
    from gputop.results.fleet_pooling import ladder_rows

    ladders = recorded_ladders(names)
    rows = ladder_rows(ladders)
    if output.shows_table:
        print_data(*fleet_lines(rows, Terminal.of(sys.stdout)))
    output.write(export.fleet_csv(rows), export.fleet_json(rows))
    return exit_code_of(
        entry.gate
        for placed in ladders
        for entry in placed.result.entries
        if entry.gate.status != "unchecked"
    )


def _check(options: argparse.Namespace) -> None:
    if options.replay and options.routing:
        raise UsageError("--replay measures nothing: leave --routing out.")
    if options.rung and options.batches is None:
        raise UsageError("--rung names the plan of --batches; a ladder's rungs are named by --rungs A,B,C.")
    if options.batches is not None:
        from gputop.plan.plan_string import parse_word

        of_rung = parse_word(options.rung).sets if options.rung else ()
        if options.batch is not None or "batch" in dict((*options.sets, *of_rung)):
            raise UsageError("--batches lists the batches: leave --batch and every batch=N out.")


def _check_recorded(label: str, options: argparse.Namespace) -> None:
    """UsageError for what would have to be measured."""
    if options.routing:
        raise UsageError(f"A {label} holds no other kernels: leave --routing out.")
    if options.batches is not None:
        shown = f"`gputop replay {options.device}` shows them"
        raise UsageError(f"A {label} holds the batches that were recorded, if any: {shown}.")


def _requests(session: WorkerSession, options: argparse.Namespace) -> list[PlanRequest]:
    """Return the plans to measure, in the order in which they are shown."""
    from gputop.plan.types import PlanRequest

    rungs = session.opened.rungs
    if options.batches is not None:
        request = request_of(options, session.opened.default_rung)
        _known(request.rung, rungs)
        return at_batches(request, options.batches)
    requests = [
        with_changes(PlanRequest(rung), options) for rung in chosen(rungs, options.rungs, options.attribute)
    ]
    return requests + (_peers(session, requests[-1]) if options.attribute else [])


def _peers(session: WorkerSession, last: PlanRequest) -> list[PlanRequest]:
    """Every peer that can run here, in the math and batch of the last rung: its margin is to the best."""
    from gputop.plan.types import PlanRequest

    rungs = session.opened.rungs
    peers = [rung.id for rung in rungs if rung.kind == "peer" and not rung.refused and not rung.on_request]
    if not peers:
        return []
    view = session.client.resolve(last)
    sets = (("math", view.math), ("batch", str(view.batch)))
    return [PlanRequest(peer, sets) for peer in peers]


def _show(ladder: Ladder, options: argparse.Namespace, output: Output) -> None:
    from gputop.cli.batch_sweep import batch_lines
    from gputop.cli.tables.attribution import attribution_lines
    from gputop.cli.tables.ladder_lines import ladder_lines
    from gputop.cli.terminal import Terminal, print_data
    from gputop.results import export

    terminal = Terminal.of(sys.stdout)
    if output.shows_table:
        print_data(*(batch_lines if options.batches is not None else ladder_lines)(ladder, terminal))
        if options.attribute:
            print_data("", *attribution_lines(ladder, terminal))
    if not options.routing:
        output.write(export.ladder_csv(ladder), export.ladder_json(ladder))


def _last(ladder: Ladder, requests: Sequence[PlanRequest]) -> PlanRequest:
    """The last plan of ours that has a time. UsageError where none has."""
    timed = set(_timed(ladder))
    # A ladder's entries stand in the order in which its plans were asked for.
    own = [request for request, entry in zip(requests, ladder.entries, strict=True) if entry.rung in timed]
    if not own:
        raise UsageError("No rung of this ladder has a time: there is nothing to route.")
    return own[-1]


def _timed(ladder: Ladder) -> list[str]:
    """Words of the plans of ours that have a time."""
    return [entry.rung for entry in ladder.entries if entry.device_s and entry.kind != "peer"]


def _route(session: WorkerSession, request: PlanRequest, output: Output) -> None:
    from gputop.cli.kernel_sweep import Router
    from gputop.cli.tables.kernel_selection_lines import routing_lines
    from gputop.cli.terminal import Terminal, print_data
    from gputop.results import export

    routing = Router(session, request).measure()
    if output.shows_table:
        print_data("", *routing_lines(routing, Terminal.of(sys.stdout)))
    output.write(export.routing_csv(routing), export.routing_json(routing))


def chosen(rungs: Sequence[RungView], listed: str | None, span: str | None) -> list[str]:
    """Ids of the rungs to measure. UsageError for a name that is not here, or a span that is none."""
    if listed is not None:
        names = [name for name in listed.split(",") if name]
        if not names:
            raise UsageError("--rungs needs names: --rungs A,B,C.")
        return list(dict.fromkeys(_known(name, rungs) for name in names))
    if span is not None:
        return _path(span, [rung for rung in rungs if rung.kind == "ladder"])
    return [rung.id for rung in rungs if not rung.refused and not rung.on_request]


def _path(span: str, steps: Sequence[RungView]) -> list[str]:
    """Return the rungs from one to another that builds on it; each changes the one before."""
    first, dots, last = span.partition("..")
    if not (first and dots and last):
        raise UsageError(f"{span!r} is no span of rungs: --attribute FROM..TO.")
    start, end = _known(first, steps), _known(last, steps)
    before = {rung.id: rung.before for rung in steps}
    path = [end]
    while path[0] != start and (below := before.get(path[0])) is not None:
        path.insert(0, below)
    if path[0] != start or len(path) < 2:
        raise UsageError(f"{end} does not build on {start}, but on {' -> '.join(path[:-1]) or 'nothing'}.")
    for name in path:
        _known(name, steps)
    return path


def _known(name: str, rungs: Sequence[RungView]) -> str:
    found = next((rung for rung in rungs if rung.id == name), None)
    if found is None:
        raise unknown_name("rung", name, (rung.id for rung in rungs))
    if found.refused:
        raise UsageError(f"{name} can't run here: {found.refused}")
    return name


COMMAND = Command(
    name="ladder",
    summary="several rungs in one window, predicted against measured",
    examples=(
        "gputop ladder --rungs cpu-loops,cpu-blas,cpu-pruned --backend cpu",
        "gputop ladder --attribute cpu-blas..cpu-pruned",
        "gputop ladder --rungs cpu-pruned --routing",
        "gputop ladder --batches 1,2,4,8 --rung cpu-pruned",
        "gputop ladder --replay h200 h200-copy-engine",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
