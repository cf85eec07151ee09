"""`gputop record`: the ladder as a file that others can replay."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from gputop.cli.batch_sweep import batch_list
from gputop.cli.command import Command
from gputop.cli.exit_code import exit_code_of
from gputop.cli.options import add_measuring_options, add_plan_options, with_changes
from gputop.util.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gputop.plan.choices import RungView
    from gputop.util.output_file import LineFile


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE|-", help="where to; until it is whole the lines are in FILE.partial"
    )
    parser.add_argument(
        "--rungs", metavar="A,B,C", help="these rungs (default: all but those that take minutes)"
    )
    parser.add_argument(
        "--batches", type=batch_list, metavar="1,2,4", help="and the rung that the screen opens on at these"
    )
    add_plan_options(parser, rung=False)
    add_measuring_options(parser)


def _run(options: argparse.Namespace) -> int:
    from gputop.cli.worker_session import WorkerSession
    from gputop.ipc.recorder import Recorder, RecordingSettings
    from gputop.plan.types import PlanRequest
    from gputop.results.recording import WindowLine, encode
    from gputop.util.output_file import LineFile

    settings = RecordingSettings(
        with_changes(PlanRequest(""), options), options.windows, tuple(options.batches or ())
    )
    file = LineFile(options.file)
    windows = 0
    with WorkerSession(options) as session:
        if session.opened.device.recording:
            raise UsageError(f"A {session.opened.device.recording} can't be recorded again: copy its file.")
        recorder = Recorder(session.worker, settings)
        try:
            for line in recorder.lines(chosen(session.opened.rungs, options.rungs)):
                file.add(encode(line))
                windows += isinstance(line, WindowLine)
            if windows:
                file.finish()
        except BaseException:
            session.narrator.note(_left(file, windows))
            raise
    if not windows:
        file.discard()
        raise UsageError("Nothing was recorded: none of these rungs could be measured here, as said above.")
    return exit_code_of(recorder.gates)


def _left(file: LineFile, windows: int) -> str:
    """Return what became of a recording that was stopped.

    Removes one without a window, which can't be shown.
    """
    if not windows:
        file.discard()
        return "stopped before the first window: nothing was recorded"
    if not file.left:
        return "stopped before the end of the recording"
    return f"stopped: what was recorded is in {file.left}, which can be replayed"


def chosen(rungs: Sequence[RungView], listed: str | None) -> list[RungView]:
    """Return the rungs in the ladder's order. Keeps those that can't run here: the recording says why not."""
    if listed is None:
        return [rung for rung in rungs if not rung.on_request]
    by_id = {rung.id: rung for rung in rungs}
    names = {name.strip() for name in listed.split(",")} - {""}
    if not names:
        raise UsageError("--rungs needs names: --rungs A,B,C.")
    for name in sorted(names - set(by_id)):
        raise unknown_name("rung", name, by_id)
    return [rung for rung in rungs if rung.id in names]


COMMAND = Command(
    name="record",
    summary="run the ladder and keep it as a recording, to be replayed where there is no GPU",
    examples=(
        "gputop record h200.jsonl --backend cuda --batches 1,2,4,8,16,32,64,128",
        "gputop record tiny.jsonl --backend cpu --workload tiny --rungs cpu-loops,cpu-blas --seconds 1",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
