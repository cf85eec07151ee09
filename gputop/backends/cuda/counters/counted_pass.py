"""The process that ncu profiles: python -m gputop.backends.cuda.counters.counted_pass REQUEST MANIFEST

Each plan's pass is run once, outside of a graph, in order and with the weights in DRAM as in use. The
profiler is switched on for a site's first launch of each kernel and shape alone: layers repeat them. What was
run under it is written to MANIFEST, so that a line of ncu's report can be told from the next.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from gputop.backends.cuda.availability import open_backend
from gputop.backends.cuda.bind import BoundStep, Call
from gputop.backends.cuda.prepared import CudaPrepared
from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.graph import kernel_nodes
from gputop.backends.cuda.runtime.launch import KernelLaunch
from gputop.backends.cuda.runtime.status_codes import check
from gputop.plan.types import Plan
from gputop.planner.resolver import Resolver, plan_dims
from gputop.results.counters import CountedLaunch, CountRequest
from gputop.util.errors import GputopError, UsageError

_requests = msgspec.json.Decoder(CountRequest)


def main(request_file: str, manifest_file: str) -> int:
    """Run every plan. Return the exit code of what went wrong, which stderr names."""
    request = _requests.decode(Path(request_file).read_bytes())
    try:
        launches = [launch for plan in request.plans for launch in _run(request, plan)]
    except GputopError as error:
        print(f"gputop: {error}", file=sys.stderr)
        return error.exit_code
    Path(manifest_file).write_bytes(msgspec.json.encode(launches))
    return 0


def _run(request: CountRequest, plan: Plan) -> Iterator[CountedLaunch]:
    """Each plan has the device for itself: a library's state in one context would reach the next plan."""
    if plan.peer:
        raise UsageError(f"{plan.word} is a framework's pass: its kernels belong to no site of ours.")
    resolver = Resolver.load(Path(request.kernels_dir))
    backend = open_backend(request.workload, request.device, lambda _: None, resolver)
    try:
        steps = resolver.steps(plan, plan_dims(request.workload, plan))
        prepared = backend.prepare_here(plan, steps, lambda _: None)
        assert isinstance(prepared, CudaPrepared)
        yield from counted_pass(backend.context, plan.word, prepared.bound)
        prepared.close()
    finally:
        backend.close()


def counted_pass(context: Context, plan: str, bound: tuple[BoundStep, ...]) -> Iterator[CountedLaunch]:
    """Run a pass, profiled where a kernel or its shape is new; yield what was profiled."""
    seen = set()
    for step in bound:
        for call in step.calls:
            launches = _launches(context, plan, step, call)
            if launches in seen:
                call()
                continue
            seen.add(launches)
            with _profiled(context):
                call()
            yield from launches
    context.synchronize(f"the counted pass of {plan}")


def _launches(context: Context, plan: str, step: BoundStep, call: Call) -> tuple[CountedLaunch, ...]:
    """Return the kernels that a call launches; a library's may be several, found by capturing it."""
    site = step.step.site
    if isinstance(call, KernelLaunch):
        geometry, function = call.geometry, call.function
        return (
            CountedLaunch(plan, site, function.name, geometry.grid, geometry.block, function.cubin.digest),
        )
    nodes = kernel_nodes(context, (call,), step.label)
    return tuple(CountedLaunch(plan, site, node.name, node.grid, node.block) for node in nodes)


@contextmanager
def _profiled(context: Context) -> Iterator[None]:
    from cuda.bindings import driver

    context.synchronize("what comes before a counted kernel")
    check(driver.cuProfilerStart(), "the profiler")
    yield
    context.synchronize("a counted kernel")
    check(driver.cuProfilerStop(), "the profiler")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
