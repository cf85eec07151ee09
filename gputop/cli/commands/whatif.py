"""`gputop whatif`: a recorded plan with something changed, by the model and the occupancy rules; no GPU."""

from __future__ import annotations

import argparse
import sys
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
    from gputop.plan.types import Plan, PlanRequest
    from gputop.session.replay import Replay
    from gputop.session.whatif import Setting, SiteChange

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
    from gputop.results import export, phase_facts
    from gputop.session.replay import Replay
    from gputop.session.whatif import what_if, whatif_record

    output = Output.of(argparse.Namespace(csv=None, json=options.json))
    replay = Replay.open(options.replay)
    request = _request(options)
    lane = next(lane for lane in replay.first_window(request).lanes if lane.role == "current")
    row = phase_facts.chosen_phase(lane, options.site)
    site = options.site or (row.phase if row else "")
    before, after, source = _settings(replay, request, site, options)
    found = what_if(before, after, lane, source)
    change = _turned(found.site(site), options)
    devices = before.machine.facts, after.machine.facts
    if output.shows_table:
        print_data(*whatif_lines(found, change, devices, Terminal.of(sys.stdout)))
    output.write("", export.nested_json("gputop.whatif/1", [whatif_record(found, change)]))
    return 0


def _request(options: argparse.Namespace) -> PlanRequest:
    from gputop.plan.plan_string import parse_word

    return parse_word(options.plan)


def _settings(
    replay: Replay, request: PlanRequest, site: str, options: argparse.Namespace
) -> tuple[Setting, Setting, str]:
    """Return the recorded plan, the changed one, and where another device's figures come from."""
    from dataclasses import replace
    from pathlib import Path

    from gputop.perf import gpu_specs
    from gputop.planner.resolver import Resolver
    from gputop.results.kindred_ceilings import completed
    from gputop.session.cost_model import Machine
    from gputop.session.whatif import Setting, datasheet_machine

    folder = kernels_dir_of(options)
    resolver = Resolver.load(Path(folder) if folder else None)
    clock_hz = replay.first_window(request).health.sm_clock_hz
    here = Machine(replay.facts, completed(replay.calibrate()), clock_hz)
    if not (here.facts.arch or "").startswith("sm_"):
        raise UsageError("This recording is of a CPU: it has no occupancy, and nothing to turn.")
    plan, dims = replay.view(request).plan, replay.workload.dims
    before = Setting.recorded(resolver, plan, dims, here)
    model = gpu_specs.model(options.device) if options.device else None
    asked = _asked(plan, site, options)
    if asked == plan.request and options.seq is None and model is None:
        return before, before, ""
    sizes = replace(dims, seq=options.seq or dims.seq)
    after = Setting.of(resolver, asked, sizes, datasheet_machine(model) if model else here)
    return before, after, model.source if model else ""


def _asked(plan: Plan, site: str, options: argparse.Namespace) -> PlanRequest:
    """Return the recorded plan with what the options change about it."""
    from gputop.plan.types import KernelChoice

    request = plan.request
    if options.math is not None:
        request = request.with_set("math", options.math)
    if options.split is not None:
        dispatch = dict(plan.dispatch)
        if site not in dispatch:
            raise unknown_name("site", site, dispatch)
        options.uses = [*options.uses, (site, KernelChoice(dispatch[site].kernel, options.split))]
    return with_changes(request, options)


def _turned(change: SiteChange, options: argparse.Namespace) -> SiteChange:
    """Return a site whose changed shape has the registers, shared memory, block and grid asked for."""
    from dataclasses import replace

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
