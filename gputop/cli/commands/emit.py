"""`gputop emit`: a plan as one source file that needs nothing of gputop."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gputop.cli.command import Command
from gputop.cli.options import (
    add_batch_option,
    add_change_options,
    add_workload_option,
    kernels_dir_of,
    with_changes,
    workload_of,
)
from gputop.cli.terminal import print_message
from gputop.util.output_file import STDOUT, open_target

if TYPE_CHECKING:
    from gputop.plan.types import Plan, Workload
    from gputop.planner.resolver import Resolver

DEFAULT_ARCH = "sm_90"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", metavar="PLAN", help="RUNG[,TOGGLE=VALUE...][,SITE:KERNEL...]")
    parser.add_argument(
        "-o", "--output", default=STDOUT, metavar="FILE|-", help="where the program goes (default: stdout)"
    )
    parser.add_argument(
        "--arch", default=DEFAULT_ARCH, metavar="sm_NN",
        help=f"the GPU's architecture, which decides what kernels can be chosen (default {DEFAULT_ARCH})",
    )  # fmt: skip
    add_workload_option(parser)
    add_batch_option(parser)
    add_change_options(parser)
    # Nothing is measured, here or elsewhere.
    parser.set_defaults(remote=None)


def _run(options: argparse.Namespace) -> int:
    from gputop import backends
    from gputop.emission.cuda_program import device_arch
    from gputop.plan.plan_string import parse_word
    from gputop.planner.resolver import Resolver
    from gputop.util.errors import UsageError

    target = open_target(options.output)
    workload = workload_of(options)
    if workload.weights is not None:
        raise UsageError(
            "A program draws its weights from a seed, so that it is one file: leave --weights out."
        )
    request = with_changes(parse_word(options.plan), options)
    resolver = Resolver.load().on(device_arch(options.arch))
    options.backend = resolver.rung(request.rung).backend
    kernels_dir = kernels_dir_of(options)
    if kernels_dir is not None:
        resolver = Resolver.load(Path(kernels_dir)).on(resolver.arch)
    plan = resolver.resolve(request, workload.dims, options.backend)
    if options.backend == backends.COMPILES:
        text, build = _cuda(workload, plan, resolver, kernels_dir, options.output)
    else:
        text, build = _c(workload, plan, options.output)
    target.write(text)
    if build:
        print_message(f"build it: {build}")
    return 0


def _cuda(
    workload: Workload, plan: Plan, resolver: Resolver, kernels_dir: str | None, file: str
) -> tuple[str, str]:
    """The program, and the command that builds `file`; empty for a name that nvcc would not know."""
    from gputop.backends.cuda.compiler.sources import Sources
    from gputop.emission.cuda_program import SUFFIX, cuda_program
    from gputop.planner.resolver import plan_dims

    folder = Path(kernels_dir) if kernels_dir else None
    sources = Sources.before_ours(folder, workload.dims.activation)
    steps = resolver.steps(plan, plan_dims(workload, plan))
    program = cuda_program(workload, plan, steps, sources, resolver.arch or DEFAULT_ARCH)
    return program.text, program.build.command(file) if file.endswith(SUFFIX) else ""


def _c(workload: Workload, plan: Plan, file: str) -> tuple[str, str]:
    """Return the compiler's command, as `_cuda` does for nvcc."""
    from gputop.emission.c_program import SUFFIX, build_command, c_program

    return c_program(workload, plan), build_command(file) if file.endswith(SUFFIX) else ""


COMMAND = Command(
    name="emit",
    summary="one plan as a program of its own: CUDA C++, or C for cpu-loops",
    examples=(
        "gputop emit hopper -o hopper.cu",
        "gputop emit sass-fp32,graph=on --arch sm_80 -o sass.cu",
        "gputop emit cpu-loops -o cpu-loops.c",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
