"""`gputop whatif`: a recorded plan with something changed, by the model and the occupancy rules; no GPU."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gputop.cli.command import Command
from gputop.cli.options import (
    add_batch_option,
    add_change_options,
    kernels_dir_of,
    whole_number,
    with_changes,
)
from gputop.util.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from gputop.plan.types import Plan
    from gputop.results.whatif import SiteChange, WhatIfAsked

DEFAULT_RECORDING = "h200"
SHAPE_OPTIONS = (
    ("--registers", "registers", "N", "registers a thread"),
    ("--smem", "smem_bytes", "BYTES", "shared memory of a block"),
    ("--block", "threads", "N", "threads of a block"),
    ("--grid", "blocks", "N", "blocks of the grid"),
)
"""Option, field of the shape, what stands for its value, what it sets."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", metavar="PLAN", help="RUNG[,TOGGLE=VALUE...], a plan that was recorded")
    parser.add_argument("--site", metavar="SITE", help="which phase (default: the largest excess)")
    parser.add_argument(
        "--replay", default=DEFAULT_RECORDING, metavar="FILE|NAME",
        help=f"the recording that has the plan (default {DEFAULT_RECORDING})",
    )  # fmt: skip
    group = parser.add_argument_group("what to change")
    for option, field, value, doc in SHAPE_OPTIONS:
        group.add_argument(option, dest=field, type=whole_number, metavar=value, help=doc)
    group.add_argument("--split", type=whole_number, metavar="N", help="parts of the inner axis at the site")
    add_batch_option(group)
    group.add_argument("--seq", type=whole_number, metavar="N", help="tokens in a sequence")
    group.add_argument("--math", metavar="fp32|tf32|bf16", help="number format of the products")
    group.add_argument("--device", metavar="NAME", help="another card, by its data sheet: H100-PCIe, L4, ...")
    add_change_options(group)
    parser.add_argument_group("output").add_argument(
        "--json", metavar="FILE|-", help="write JSON to FILE, or to stdout in the text's place"
    )
    parser.set_defaults(remote=None, backend="auto")


def _run(options: argparse.Namespace) -> int:
    from gputop.cli.output import Output
    from gputop.cli.tables.whatif_lines import whatif_lines
    from gputop.cli.terminal import Terminal, print_data
    from gputop.perf import gpu_specs
    from gputop.plan.plan_string import parse_word
    from gputop.planner.resolver import Resolver
    from gputop.results import export, phase_facts
    from gputop.results.whatif import whatif_record
    from gputop.session.recorded_whatif import recorded_what_if
    from gputop.session.replay import Replay
    from gputop.session.whatif import datasheet_machine

    output = Output.of(argparse.Namespace(csv=None, json=options.json))
    replay = Replay.open(options.replay)
    request = parse_word(options.plan)
    lane = next(lane for lane in replay.first_window(request).lanes if lane.role == "current")
    row = phase_facts.chosen_phase(lane, options.site)
    site = options.site or (row.phase if row else "")
    folder = kernels_dir_of(options)
    resolver = Resolver.load(Path(folder) if folder else None)
    found = recorded_what_if(replay, _asked(replay.view(request).plan, site, options), resolver)
    change = _turned(found.site(site), options)
    model = gpu_specs.model(options.device) if options.device else None
    devices = replay.facts, datasheet_machine(model).facts if model else replay.facts
    if output.shows_table:
        print_data(*whatif_lines(found, change, devices, Terminal.of(sys.stdout)))
    output.write("", export.nested_json("gputop.whatif/1", [whatif_record(found, change)]))
    return 0


def _asked(plan: Plan, site: str, options: argparse.Namespace) -> WhatIfAsked:
    """Return the recorded plan with what the options change about it."""
    from gputop.plan.types import KernelChoice, PlanRequest
    from gputop.results.whatif import WhatIfAsked

    changes = with_changes(PlanRequest(plan.rung), options)
    if options.math is not None:
        changes = replace(changes, sets=(*changes.sets, ("math", options.math)))
    if options.split is not None:
        dispatch = dict(plan.dispatch)
        if site not in dispatch:
            raise unknown_name("site", site, dispatch)
        split = site, KernelChoice(dispatch[site].kernel, options.split)
        changes = replace(changes, uses=(*changes.uses, split))
    return WhatIfAsked(plan.request, changes.sets, changes.uses, options.seq, options.device)


def _turned(change: SiteChange, options: argparse.Namespace) -> SiteChange:
    """Return a site whose changed shape has the registers, shared memory, block and grid asked for."""
    asked = {field: getattr(options, field) for _, field, _, _ in SHAPE_OPTIONS}
    wanted = {field: value for field, value in asked.items() if value is not None}
    before, after = change.shape
    if not wanted:
        return change
    if after is None:
        raise UsageError(f"The launch of {change.site} is not known there: it has no registers to change.")
    return replace(change, shape=(before, replace(after, **wanted)))


COMMAND = Command(
    name="whatif",
    summary="a recorded plan with something changed: occupancy, floors, and what the model forecasts; no GPU",
    examples=(
        "gputop whatif graph --site w2 --smem 113000",
        "gputop whatif graph --site w2 --split 4",
        "gputop whatif graph --site w2 --batch 8",
        "gputop whatif hopper --device H100-PCIe --json -",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
