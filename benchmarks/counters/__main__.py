"""python -m benchmarks.counters FILE [RUNG...]: what was counted goes into FILE."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

import gputop
from benchmarks.counters.counted_file import CountedFile, keep_counted_file
from gputop.backends.cuda.counters.ncu import count, find_ncu
from gputop.model.workloads import parse_workload
from gputop.plan.types import PlanRequest
from gputop.planner.resolver import Resolver
from gputop.results.counters import CountRequest
from gputop.session.session import Session
from gputop.util.errors import GputopError

BACKEND = "cuda"


def main(argv: Sequence[str]) -> int:
    """Return the exit code; a fault is told on stderr."""
    options = _parser().parse_args(argv)
    try:
        return _run(options)
    except GputopError as error:
        print(f"counters: {error}", file=sys.stderr)
        return error.exit_code


def _run(options: argparse.Namespace) -> int:
    ncu = find_ncu()
    workload = parse_workload(options.workload)
    session = Session.open(BACKEND, workload, options.device)
    facts = session.facts
    ready = tuple(
        view.id
        for view in session.rung_views()
        if not view.refused and not view.on_request and view.kind == "ladder"
    )
    session.close()
    resolver = Resolver.load(None)
    plans = tuple(
        resolver.resolve(PlanRequest(rung), workload.dims, BACKEND) for rung in options.rungs or ready
    )
    begun = perf_counter()
    counted = count(ncu, CountRequest(workload, facts.uuid, str(resolver.kernels_dir), plans))
    seconds = perf_counter() - begun
    kept = CountedFile(
        device=facts.name,
        driver=facts.driver,
        versions=facts.versions or "",
        gputop=gputop.__version__,
        workload=workload.name,
        time_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=seconds,
        counted=counted,
    )
    keep_counted_file(options.file, kept)
    print(f"{len(counted)} launches of {len(plans)} plans counted in {seconds:.0f} s")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.counters", description="Count our kernels with Nsight Compute (ncu)."
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="what was counted, as JSON")
    parser.add_argument("rungs", nargs="*", metavar="RUNG", help="default: all of ours that can run here")
    parser.add_argument("--device")
    parser.add_argument("--workload", default="gpt2-small")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
