"""`gputop fleet record|ladder|calibrate`: the same on many devices at once, through Dask."""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gputop.cli.batch_sweep import batch_list
from gputop.cli.command import Command
from gputop.cli.options import (
    add_backend_option,
    add_batch_option,
    add_change_options,
    add_measuring_options,
    add_output_options,
    add_workload_option,
    one_of,
    whole_number,
    with_changes,
)
from gputop.util.errors import GputopError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gputop.cli.output import Output
    from gputop.cli.terminal import Narrator
    from gputop.fleet.fleet import Fleet, FleetDevice, Outcome
    from gputop.fleet.jobs import Opening
    from gputop.plan.choices import RungView
    from gputop.results.fleet_pooling import Placed
    from gputop.results.fleet_row import FleetRow
    from gputop.results.records import Gate

WHAT = ("record", "ladder", "calibrate")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="|".join(WHAT), type=one_of("kind of fleet work", WHAT))
    parser.add_argument(
        "folder", metavar="FOLDER", nargs="?", help="of record: where each device's recording goes"
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--scheduler", metavar="ADDRESS", help="a Dask scheduler whose workers have gputop: tcp://node1:8786"
    )
    where.add_argument(
        "--local", type=whole_number, metavar="N", help="start a scheduler and N workers here instead"
    )
    parser.add_argument("--rungs", metavar="A,B,C", help="these rungs (default: as of record and ladder)")
    parser.add_argument(
        "--batches", type=batch_list, metavar="1,2,4", help="of record: one rung at these batches too"
    )
    parser.add_argument("--force", action="store_true", help="of calibrate: measure again what is kept")
    group = parser.add_argument_group("plan")
    add_backend_option(group)
    add_workload_option(group)
    add_batch_option(group)
    add_change_options(group)
    add_measuring_options(parser)
    add_output_options(parser)


def _run(options: argparse.Namespace) -> int:
    from gputop.cli.fleet_bench import opening_of
    from gputop.cli.output import Output
    from gputop.cli.terminal import Narrator
    from gputop.fleet.dask_library import distributed

    _check(options)
    output = Output.of(options)
    distributed()
    opening = opening_of(options)
    narrator = Narrator()
    with contextlib.ExitStack() as stack:
        fleet = stack.enter_context(_fleet(options, opening, narrator, stack))
        stack.callback(narrator.clear)
        return RUNS[options.what](options, fleet, output, narrator)


def _check(options: argparse.Namespace) -> None:
    """Raise UsageError for options that do not go together."""
    if (options.what == "record") != (options.folder is not None):
        raise UsageError(
            "fleet record needs a FOLDER for the recordings: gputop fleet record FOLDER --local 2."
            if options.folder is None
            else f"fleet {options.what} writes no recordings: leave {options.folder!r} out."
        )
    if options.backend == "replay":
        raise UsageError(
            "A fleet measures, and a recording was measured already: leave --backend replay out."
        )
    for option, given, what in (
        ("--batches", options.batches is not None, "record"),
        ("--force", options.force, "calibrate"),
    ):
        if given and options.what != what:
            raise UsageError(f"{option} is of fleet {what}: leave it out of fleet {options.what}.")


def _fleet(
    options: argparse.Namespace, opening: Opening, narrator: Narrator, stack: contextlib.ExitStack
) -> Fleet:
    from gputop import backends
    from gputop.fleet.fleet import Fleet
    from gputop.fleet.local import SHARES, LocalFleet

    address, workers = options.scheduler, 1
    if options.local is not None:
        backend, note = backends.choose(options.backend)
        if note:
            narrator.note(note)
        local = stack.enter_context(LocalFleet(SHARES[backend](options.local)))
        address, workers = local.address, options.local
    return Fleet(address, opening, note=narrator.note, progress=narrator.progress, workers=workers)


def _ladder(options: argparse.Namespace, fleet: Fleet, output: Output, narrator: Narrator) -> int:
    from gputop.fleet.jobs import LadderJob
    from gputop.plan.types import PlanRequest
    from gputop.results.fleet_pooling import ladder_rows

    jobs = {}
    for device in fleet.devices:
        rungs = _rungs(options, device.met.opened.rungs, device, narrator)
        requests = tuple(with_changes(PlanRequest(rung), options) for rung in rungs)
        if requests:
            jobs[device] = LadderJob(requests, options.seconds, output.exports)
    placed, errors = _collected(fleet.each(jobs), narrator)
    _show(ladder_rows(placed), options, output)
    gates = [entry.gate for one in placed for entry in one.result.entries]
    return _outcome([gate for gate in gates if gate.status != "unchecked"], errors)


def _calibrate(options: argparse.Namespace, fleet: Fleet, output: Output, narrator: Narrator) -> int:
    from gputop.fleet.jobs import CalibrateJob
    from gputop.results.fleet_pooling import ceiling_rows

    jobs = {device: CalibrateJob(options.force) for device in fleet.devices}
    placed, errors = _collected(fleet.each(jobs), narrator)
    _show(ceiling_rows(placed), options, output)
    return _outcome([], errors)


def _record(options: argparse.Namespace, fleet: Fleet, output: Output, narrator: Narrator) -> int:
    from gputop.fleet.jobs import RecordJob
    from gputop.ipc.recorder import RecordingSettings
    from gputop.plan.types import PlanRequest
    from gputop.results import recording
    from gputop.results.fleet_pooling import Placed, recording_rows
    from gputop.util.output_file import LineFile

    settings = RecordingSettings(
        with_changes(PlanRequest(""), options), options.windows, tuple(options.batches or ())
    )
    files: dict[FleetDevice, LineFile] = {}
    jobs = {}
    for device in fleet.devices:
        rungs = _rungs(options, device.met.opened.rungs, device, narrator)
        jobs[device] = RecordJob(settings, tuple(rungs), options.seconds)
        files[device] = LineFile(str(_path(options.folder, device)))
    finished: list[Placed[Any]] = []
    gates: list[Gate] = []
    errors: list[GputopError] = []
    try:
        for outcome in fleet.each(jobs, lambda device, line: files[device].add(line)):
            if outcome.error is not None:
                errors.append(_told(outcome, narrator))
                continue
            gates += outcome.result or ()
            files[outcome.device].finish()
            path = _path(options.folder, outcome.device)
            narrator.note(f"{outcome.device.name} is recorded in {path}")
            found = recording.read(path)
            finished.append(
                Placed(outcome.device.number, outcome.device.met.host, outcome.device.facts, found)
            )
    finally:
        for file in files.values():
            if file.left:
                narrator.note(f"not whole: {file.left}")
    _show(recording_rows(finished), options, output)
    return _outcome(gates, errors)


RUNS = {"record": _record, "ladder": _ladder, "calibrate": _calibrate}


def _path(folder: str, device: FleetDevice) -> Path:
    """`FOLDER/2-nvidia-h200.jsonl`; the folder is made if it is not there."""
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"Can't make the folder {folder!r}: {error.strerror}.") from error
    name = re.sub(r"[^a-z0-9]+", "-", device.facts.name.lower()).strip("-")
    return path / f"{device.number}-{name}.jsonl"


def _rungs(
    options: argparse.Namespace, rungs: Sequence[RungView], device: FleetDevice, narrator: Narrator
) -> list[str]:
    """Ids of the rungs to measure on a device; says which of those that are named it can't run.

    Raise UsageError for a name that is no rung.
    """
    from gputop.cli.commands.record import chosen

    asked = [rung for rung in chosen(rungs, options.rungs) if options.rungs or not rung.refused]
    for rung in asked:
        if rung.refused:
            narrator.note(f"{rung.id} can't run on {device.name}: {rung.refused}")
    return [rung.id for rung in asked if options.what == "record" or not rung.refused]


def _collected(
    outcomes: Iterator[Outcome[Any]], narrator: Narrator
) -> tuple[list[Placed[Any]], list[GputopError]]:
    """Results by device, in the order of their numbers, and what kept the others from one."""
    from gputop.results.fleet_pooling import Placed

    placed, errors = [], []
    for outcome in outcomes:
        device = outcome.device
        if outcome.error is not None:
            errors.append(_told(outcome, narrator))
        elif outcome.result is not None:
            narrator.note(f"{device.name} is done")
            placed.append(Placed(device.number, device.met.host, device.facts, outcome.result))
    return sorted(placed, key=lambda one: one.number), errors


def _told(outcome: Outcome[Any], narrator: Narrator) -> GputopError:
    assert outcome.error is not None
    narrator.note(str(outcome.error))
    return outcome.error


def _show(rows: tuple[FleetRow, ...], options: argparse.Namespace, output: Output) -> None:
    from gputop.cli.tables.fleet_lines import fleet_lines
    from gputop.cli.terminal import Terminal, print_data
    from gputop.results import export

    if not rows:
        return
    if output.shows_table:
        print_data(*fleet_lines(rows, Terminal.of(sys.stdout)))
    output.write(export.fleet_csv(rows), export.fleet_json(rows))


def _outcome(gates: Sequence[Gate], errors: Sequence[GputopError]) -> int:
    """Raise GateFailed for a gate that failed, else what kept a device from its results."""
    from gputop.cli.exit_code import exit_code_of

    code = exit_code_of(gates)
    if errors:
        raise type(errors[0])(f"{len(errors)} of the fleet's devices gave no result. First: {errors[0]}")
    return code


COMMAND = Command(
    name="fleet",
    summary="record, ladder or calibrate on many GPUs at once, through Dask",
    examples=(
        "gputop fleet ladder --local 2 --backend cpu --workload tiny",
        "gputop fleet calibrate --scheduler tcp://node1:8786 --backend cuda --csv ceilings.csv",
        "gputop fleet record recordings --scheduler tcp://node1:8786 --backend cuda",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
