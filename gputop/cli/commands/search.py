"""`gputop search`: the dispatch table of a plan found by measurement."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gputop.cli.command import Command
from gputop.cli.options import (
    add_measuring_options,
    add_output_options,
    add_plan_options,
    request_of,
    whole_number,
    with_changes,
)
from gputop.util.errors import GputopError, UsageError, unknown_name

if TYPE_CHECKING:
    from gputop.cli.output import Output
    from gputop.cli.search_bench import SearchBench
    from gputop.cli.terminal import Terminal
    from gputop.plan.choices import RungView
    from gputop.search.closing import Closing
    from gputop.search.journal import Begun, Journal
    from gputop.search.loop import Search
    from gputop.search.menu import Menu
    from gputop.search.score import Stopped, StopRules

STARTS: Mapping[str, str] = {"cuda": "algebra", "cpu": "cpu-loops"}
"""Backend -> the rung whose table is searched for if none is named: the last before any table was chosen."""
CHAMPIONS: Mapping[str, str] = {"cuda": "attention-tma", "cpu": "cpu-pruned"}
"""Backend -> the rung at the end of the way that rewrites and kernels went together."""
REFERENCES: Mapping[str, str] = {"cuda": "dispatch", "cpu": "cpu-blas"}
"""Backend -> the rung whose table was chosen by hand."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--budget",
        type=whole_number,
        default=40,
        metavar="N",
        help="paired measurements (default 40)",
    )
    parser.add_argument(
        "--efficiency", type=_share, default=0.95, metavar="E",
        help="stop where the pass takes no more than its sites' reach / E (default 0.95)",
    )  # fmt: skip
    parser.add_argument(
        "--together", type=whole_number, default=4, metavar="N",
        help="sites that may change in one window (default 4): more are quicker, fewer learn more from each",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="what orders equal candidates")
    parser.add_argument(
        "--against", metavar="RUNG", help="a rung to pair the found table with at the end (default: by hand)"
    )
    parser.add_argument(
        "--ablate", type=_count, default=2, metavar="N",
        help="windows in which each accepted cell is taken out of the table and paired with it (default 2)",
    )  # fmt: skip
    parser.add_argument("--save", metavar="NAME", help="keep the found table as a rung of this device")
    parser.add_argument("--journal", metavar="FILE", help="where every measurement is kept as it is made")
    parser.add_argument("--resume", action="store_true", help="go on with the search that was stopped last")
    add_plan_options(parser)
    parser.add_argument(
        "--scheduler", metavar="ADDRESS",
        help="measure on the devices of a Dask scheduler, a pair within one each: tcp://node1:8786",
    )  # fmt: skip
    add_measuring_options(parser, windows=False)
    add_output_options(parser)


def _run(options: argparse.Namespace) -> int:
    from gputop.cli.output import Output
    from gputop.cli.search_bench import search_bench
    from gputop.cli.search_journal import check_new, open_journal
    from gputop.cli.tables.search_lines import menu_lines
    from gputop.cli.terminal import Terminal, print_data
    from gputop.phases import rungs
    from gputop.planner.saved_rungs import check_name
    from gputop.search import prediction
    from gputop.search.loop import Search
    from gputop.search.menu import menu_of
    from gputop.search.progress import Progress

    output, terminal = Output.of(options), Terminal.of(sys.stdout)
    if options.save:
        check_name(options.save, [rung.id for rung in rungs()])
    if options.journal and not options.resume:
        check_new(options.journal)
    with search_bench(options) as bench:
        backend = bench.opened.device.backend
        if options.against:
            _check_known(options.against, bench.opened.rungs)
        request = request_of(options, STARTS[backend])
        space = bench.space(request)
        menu = menu_of(space, bench.opened.device.sm_count if backend == "cuda" else None)
        if not menu.cells():
            raise UsageError(f"No site of {menu.plan} can take another kernel: there is nothing to search.")
        if output.shows_table:
            print_data(*menu_lines(menu, terminal), "")
        prediction.load()
        kept = open_journal(options.journal, options.resume, menu, bench.opened)
        with kept.journal as journal:
            progress = Progress(menu)
            progress.take_all(kept.lines)
            journal.add(_begun(options, bench, menu))
            bench.narrator.note(f"the journal is {journal.path}")
            search = Search(
                menu, bench.measurer(menu), journal, _rules(options),
                seed=options.seed, together=options.together, progress=progress, say=bench.narrator.note,
            )  # fmt: skip
            _search(search, journal, options, bench, output, terminal)
    return 0


def _search(
    search: Search,
    journal: Journal,
    options: argparse.Namespace,
    bench: SearchBench,
    output: Output,
    terminal: Terminal,
) -> None:
    from gputop.cli.search_journal import progress_of
    from gputop.cli.tables.search_lines import ablation_lines
    from gputop.cli.terminal import print_data
    from gputop.search.ablation import ablate
    from gputop.search.closing import closing_check, pair_finalists

    stop: Stopped | None = None
    checks: list[Closing] = []
    try:
        stop = search.run()
        bench.narrator.note("the finalists paired again")
        pair_finalists(search)
        bench.narrator.note("the closing check: the found table beside the plan's own")
        checks = closing_check(search)
    except (KeyboardInterrupt, GputopError):
        # An interrupt may have come between a line's way to the disk and its way into what is known.
        search.progress = progress_of(journal.path, search.menu)
        _show(search, stop, checks, bench, output, terminal)
        bench.narrator.note("stopped: what was measured is in the journal, and --resume goes on with it")
        raise
    _show(search, stop, checks, bench, output, terminal)
    if options.save:
        _save(search, options.save, bench)
    if options.ablate and search.progress.changed:
        bench.narrator.note("the ablation: each accepted cell taken out of the table")
        ablations = ablate(search, options.ablate)
        if output.shows_table:
            print_data("", *ablation_lines(ablations, terminal))
    if output.shows_table:
        _compare(search, options, bench, terminal)
        _credit(search, checks, options, bench, terminal)


def _show(
    search: Search,
    stop: Stopped | None,
    checks: list[Closing],
    bench: SearchBench,
    output: Output,
    terminal: Terminal,
) -> None:
    from datetime import UTC, datetime

    from gputop.cli.tables.search_lines import found_lines, measured_lines, residual_lines, stop_lines
    from gputop.cli.terminal import print_data
    from gputop.model.workloads import label
    from gputop.results import export
    from gputop.search.report import search_result
    from gputop.search.residual import residuals

    opened, progress, now = bench.opened, search.progress, search.now()
    result = search_result(
        progress, checks, opened.device, label(opened.workload),
        seed=search.seed, time_utc=datetime.now(UTC).isoformat(timespec="seconds"),
    )  # fmt: skip
    if output.shows_table:
        print_data(*measured_lines(result, terminal), "")
        print_data(*stop_lines(now, stop, progress), "")
        print_data(*found_lines(progress, checks, now, terminal), "")
        print_data(*residual_lines(residuals(progress.menu, progress.cells_s), terminal))
    output.write(export.search_csv(result), export.search_json(result))


def _compare(search: Search, options: argparse.Namespace, bench: SearchBench, terminal: Terminal) -> None:
    """The found table beside the one that was chosen by hand: cell by cell, and paired in one window."""
    from gputop.cli.tables.search_lines import diff_lines
    from gputop.cli.terminal import print_data
    from gputop.plan.types import PlanRequest

    name = options.against or REFERENCES[bench.opened.device.backend]
    found = search.menu.asking(search.progress.table)
    try:
        reference = bench.resolve(with_changes(PlanRequest(name), _without_uses(options)))
        window = bench.pair(found, reference.request)
    except UsageError as error:
        if options.against:
            raise
        bench.narrator.note(f"not paired with {name}: {error}")
        return
    print_data("", *diff_lines(search.progress.table, dict(reference.plan.dispatch), name, terminal))
    print_data(window.verdict)


def _credit(
    search: Search,
    checks: Sequence[Closing],
    options: argparse.Namespace,
    bench: SearchBench,
    terminal: Terminal,
) -> None:
    """How far the table went of the way to the backend's champion, and what is left to rewrites."""
    from gputop.cli.tables.search_lines import rewrite_lines
    from gputop.cli.terminal import print_data
    from gputop.plan.types import PlanRequest
    from gputop.search.rewrites import Owned

    name = CHAMPIONS[bench.opened.device.backend]
    try:
        champion = bench.resolve(with_changes(PlanRequest(name), _without_uses(options)))
        start = bench.resolve(search.menu.request)
        window = bench.pair(champion.request, start.request)
    except UsageError as error:
        bench.narrator.note(f"no way to {name} is shared out: {error}")
        return
    delta = window.comparison.get("device") if window.comparison else None
    whole = checks[-1].whole if checks else None
    if delta is None or delta.ratio is None:
        return
    before = {toggle.name: toggle.value for toggle in start.toggles}
    differing = [f"{one.name}={one.value}" for one in champion.toggles if one.value != before[one.name]]
    found = whole.ratio if whole is not None and whole.ratio else 1.0
    print_data("", *rewrite_lines(Owned(found, delta.ratio), name, differing, terminal))


def _save(search: Search, name: str, bench: SearchBench) -> None:
    from datetime import UTC, datetime

    from gputop.model.workloads import label
    from gputop.planner.saved_rungs import SavedRung, save

    device, request = bench.opened.device, search.menu.request
    file = save(
        SavedRung(
            name=name,
            backend=device.backend,
            device=device.name,
            workload=label(bench.opened.workload),
            time_utc=datetime.now(UTC).isoformat(timespec="seconds"),
            before=request.rung,
            sets=dict(request.sets),
            uses={site: str(choice) for site, choice in search.progress.table.items()},
        )
    )
    bench.narrator.note(f"saved as {file}: `gputop run --rung {name}` runs it on {device.name}")


def _check_known(name: str, rungs: Sequence[RungView]) -> None:
    """UsageError for a rung that is not here: it would be missed only at the end."""
    found = next((rung for rung in rungs if rung.id == name), None)
    if found is None:
        raise unknown_name("rung", name, (rung.id for rung in rungs))
    if found.refused:
        raise UsageError(f"{name} can't run here: {found.refused}")


def _rules(options: argparse.Namespace) -> StopRules:
    from gputop.search.score import StopRules

    return StopRules(efficiency=options.efficiency, budget=options.budget)


def _begun(options: argparse.Namespace, bench: SearchBench, menu: Menu) -> Begun:
    from datetime import UTC, datetime

    from gputop import __version__
    from gputop.model.workloads import label
    from gputop.search.journal import Begun

    opened, rules = bench.opened, _rules(options)
    return Begun(
        version=__version__,
        time_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        device=opened.device.name,
        driver=opened.device.driver,
        workload=label(opened.workload),
        plan=menu.plan,
        menu=menu.digest,
        seed=options.seed,
        budget=rules.budget,
        efficiency=rules.efficiency,
        least_gain=rules.least_gain,
        together=options.together,
    )


def _without_uses(options: argparse.Namespace) -> argparse.Namespace:
    """The options of a plan whose kernels stay as its rung has them."""
    return argparse.Namespace(**{**vars(options), "uses": []})


def _count(text: str) -> int:
    """A whole number from 0 up."""
    return 0 if text == "0" else whole_number(text)


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is no efficiency: above 0, at most 1")
    return value


COMMAND = Command(
    name="search",
    summary="find a plan's dispatch table by measurement: each candidate paired with the incumbent",
    examples=(
        "gputop search --backend cpu --workload tiny --budget 12",
        "gputop search --rung algebra --budget 40 --save mine",
        "gputop search --rung algebra --budget 200 --resume",
        "gputop search --backend cpu --workload tiny --budget 12 --csv search.csv",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
