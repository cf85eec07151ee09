"""`gputop inspect`: one phase of a plan, or one kernel, taken apart."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from gputop.cli.command import Command
from gputop.cli.exit_code import exit_code_of
from gputop.cli.options import (
    add_measuring_options,
    add_plan_options,
    add_replay_option,
    kernels_dir_of,
    with_changes,
)
from gputop.util.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from gputop.cli.inspected_plan import InspectedPlan
    from gputop.cli.kernel_code import CodeReader
    from gputop.cli.output import Output
    from gputop.plan.types import Kernel
    from gputop.planner.resolver import Resolver

DEFAULT_ARCH = "sm_90"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "plan", metavar="PLAN|KERNEL", help="RUNG[,TOGGLE=VALUE...][,SITE:KERNEL...], or the name of a kernel"
    )
    parser.add_argument(
        "--site", metavar="SITE|all",
        help="which phase of the plan (default: the one with the largest excess over its floor)",
    )  # fmt: skip
    parser.add_argument(
        "--arch", metavar="sm_NN",
        help=f"compile kernels for that architecture (default: the device's; without a GPU {DEFAULT_ARCH})",
    )  # fmt: skip
    parser.add_argument(
        "--counters", action="store_true",
        help="count each kernel and shape with Nsight Compute (ncu), and show that beside what is declared",
    )  # fmt: skip
    add_plan_options(parser, rung=False)
    add_replay_option(parser)
    add_measuring_options(parser, windows=False)
    parser.add_argument_group("output").add_argument(
        "--json", metavar="FILE|-", help="write JSON to FILE, or to stdout in the text's place"
    )


def _run(options: argparse.Namespace) -> int:
    from pathlib import Path

    from gputop.cli.output import Output
    from gputop.planner.resolver import Resolver

    output = Output.of(argparse.Namespace(csv=None, json=options.json))
    folder = kernels_dir_of(options)
    resolver = Resolver.load(Path(folder) if folder else None)
    is_rung = options.plan.split(",")[0] in {rung.id for rung in resolver.rungs}
    if options.plan in resolver.kernels and not is_rung:
        return _inspect_kernel(resolver.kernels[options.plan], resolver, options, output)
    if not is_rung and _recording(options) is None:
        names = (*(rung.id for rung in resolver.rungs), *resolver.kernels)
        raise unknown_name("rung or kernel", options.plan.split(",")[0], names)
    return _inspect_plan(resolver, options, output)


def _inspect_kernel(kernel: Kernel, resolver: Resolver, options: argparse.Namespace, output: Output) -> int:
    """Without a plan a kernel has no launch and no time: only its code can be looked at."""
    from gputop.cli.tables.inspection_lines import kernel_lines
    from gputop.cli.terminal import Terminal, print_data
    from gputop.results import export

    if options.site or options.backend == "replay" or options.counters:
        raise UsageError("--site, --replay and --counters belong to a plan: name a rung, or leave them out.")
    code = _reader(resolver, options.arch or DEFAULT_ARCH).of_kernel(kernel)
    if output.shows_table:
        print_data(*kernel_lines(kernel, code, Terminal.of(sys.stdout)))
    output.write("", export.code_json(code))
    return 0


def _inspect_plan(resolver: Resolver, options: argparse.Namespace, output: Output) -> int:
    from gputop.cli.inspected_plan import count_plan, measured_plan, recorded_plan
    from gputop.cli.tables.inspection_lines import inspection_lines
    from gputop.cli.terminal import Terminal, print_data, print_message
    from gputop.plan.plan_string import parse_word
    from gputop.results import export

    request = with_changes(parse_word(options.plan), options)
    recording = _recording(options)
    subject = measured_plan(options, request) if recording is None else recorded_plan(recording, request)
    code = exit_code_of([subject.lane.gate])
    if options.counters:
        if options.remote:
            raise UsageError("--counters runs ncu on this machine: leave --remote out, or log in there.")
        print_message("counting with ncu: the pass is run once for each group of counters")
        count_plan(subject, resolver.kernels_dir)
    reader = _reader(resolver, options.arch or _arch_of(subject))
    found = [subject.inspect(row, resolver, reader) for row in subject.rows(options.site)]
    if output.shows_table:
        terminal = Terminal.of(sys.stdout)
        for number, inspection in enumerate(found):
            print_data(*([""] if number else []), *inspection_lines(inspection, terminal))
    output.write("", export.inspect_json(found))
    return code


def _recording(options: argparse.Namespace) -> str | None:
    """Return the recording that is asked for, or None where the plan is to be measured."""
    return options.device if options.backend == "replay" else None


def _arch_of(subject: InspectedPlan) -> str:
    arch = subject.device.arch or ""
    return arch if arch.startswith("sm_") else DEFAULT_ARCH


def _reader(resolver: Resolver, arch: str) -> CodeReader:
    from gputop.backends.cuda.compiler.sources import Sources
    from gputop.cli.kernel_code import CodeReader

    return CodeReader(Sources.before_ours(resolver.kernels_dir), arch)


COMMAND = Command(
    name="inspect",
    summary="one phase of a plan taken apart: terms, launch, occupancy, rates, machine code",
    examples=(
        "gputop inspect graph --replay h200",
        "gputop inspect graph --replay h200 --site w2 --json -",
        "gputop inspect hopper --site w2 --counters",
        "gputop inspect cpu-blas --workload tiny --site all",
        "gputop inspect gemm_warpgroup_56 --arch sm_90",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
