"""One pass of each named plan on the small workload, for compute-sanitizer.

python -m tests.gpu.sanitize [--kernels FOLDER] [--own] [--probes] [PLAN...]

A plan is a word as `gputop compare` takes it. Without one: every rung but the peers. `--own`: the rungs whose
code is all ours, and ours of the others, since a tool that looks at a library's code says nothing of ours.
`--probes`: the kernels that measure peaks, instead of any plan.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from gputop.backends.cuda.availability import open_backend
from gputop.backends.cuda.backend import CudaBackend
from gputop.backends.cuda.runtime import context
from gputop.model import rng
from gputop.plan.plan_string import parse_word
from gputop.plan.types import Dims, Plan, PlanRequest
from gputop.planner.resolver import Resolver, plan_dims
from gputop.util.errors import GputopError, Unavailable, UsageError
from tests.gpu.plans import STANDARD

PATIENCE_S = 600.0
"""A sanitizer makes a kernel a thousand times slower."""
POISON = 1e30
MOST_BATCH = 2
"""Sequences show what there is to see; more of them only take longer."""
OF_MIXED_RUNGS = (
    "coalesced,attention:attention_flash",
    "wmma,attention:attention_flash_tensor",
    "wmma,attention:attention_flash_head",
    "oracle-tf32,layout=row,qkv:gemm_tma_wide_pingpong,wo:gemm_tma_wide_together,"
    "w1:gemm_tma_wide_pingpong,w2:gemm_tma_wide_together",
    "wmma,layout=row,qkv:gemm_k_major_tall_2,wo:gemm_k_major_short_2,w1:gemm_k_major_short_1,"
    "w2:gemm_k_major_short_8,head:gemm_one_row_k_major",
    "naive,fused_qkv=on,qkv:gemm_fp32_k_major_8x8_2,wo:gemm_fp32_k_major_half_4,"
    "w1:gemm_fp32_cluster_8x8_2,w2:gemm_fp32_cluster_8x4_8,attention:attention_flash_warps",
    "naive,fused_qkv=on,qkv:gemm_fp32_slices_36_1,wo:gemm_fp32_slices_24_2,w1:gemm_fp32_slices_48_1,"
    "w2:gemm_fp32_slices_52_4",
)
"""Our kernels with shared memory in rungs that call a library too."""


def main(argv: Sequence[str]) -> int:
    """1 where a plan that can run here fails to; 3 where none can."""
    parser = argparse.ArgumentParser(prog="tests.gpu.sanitize")
    parser.add_argument("--kernels", type=Path, help="searched before our own")
    parser.add_argument("--own", action="store_true", help="leave out the libraries' code")
    parser.add_argument("--probes", action="store_true", help="the kernels that measure peaks")
    parser.add_argument("plans", nargs="*")
    options = parser.parse_args(argv)
    context.DEADLINE_S = PATIENCE_S
    catalog = Resolver.load(options.kernels)
    try:
        backend = open_backend(STANDARD["mini"], None, print, catalog)
    except GputopError as error:
        print(error)
        return error.exit_code
    words = options.plans or _words(catalog, backend.workload.dims, options.own)
    try:
        if options.probes:
            backend.ceilings(True, print)
            return 0
        return max(_passed(backend, catalog, word) for word in words)
    finally:
        backend.close()


def _words(catalog: Resolver, dims: Dims, own: bool) -> list[str]:
    rungs = [rung.id for rung in catalog.rungs_of("cuda") if rung.kind != "peer"]
    if not own:
        return rungs
    return [*(rung for rung in rungs if not _libraries(catalog, dims, rung)), *OF_MIXED_RUNGS]


def _libraries(catalog: Resolver, dims: Dims, rung: str) -> set[str]:
    try:
        plan = catalog.resolve(PlanRequest(rung), dims, "cuda")
    except UsageError:
        # Said when its turn comes.
        return set()
    return {catalog.kernel(choice.kernel).library for _, choice in plan.dispatch} - {""}


def _passed(backend: CudaBackend, catalog: Resolver, word: str) -> int:
    """0 for a plan that ran, or that is refused beforehand; 1 for whatever goes wrong from `prepare` on."""
    try:
        plan = _resolved(backend, catalog, word)
    except (UsageError, Unavailable) as error:
        print(f"{word}: left out: {error}")
        return 0
    try:
        _run(backend, catalog, plan)
    except Exception:
        # The next plan's kernels are still to be looked at.
        print(f"{word}: failed")
        traceback.print_exc()
        return 1
    return 0


def _resolved(backend: CudaBackend, catalog: Resolver, word: str) -> Plan:
    """UsageError or Unavailable for a plan that can't run here."""
    dims = backend.workload.dims
    plan = catalog.resolve(parse_word(word), dims, "cuda")
    if plan.batch > MOST_BATCH:
        plan = catalog.resolve(parse_word(f"{word},batch={MOST_BATCH}"), dims, "cuda")
    if why := backend.refuses(plan):
        raise Unavailable(why)
    return plan


def _run(backend: CudaBackend, catalog: Resolver, plan: Plan) -> None:
    prepared = backend.prepare(plan, catalog.steps(plan, plan_dims(backend.workload, plan)), print)
    try:
        logits = prepared.run(rng.tokens(backend.workload, 1, plan.batch), POISON)
        print(f"{plan.word}: {logits[0, 0]:.6f} {logits[0, 1]:.6f}")
    finally:
        prepared.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
