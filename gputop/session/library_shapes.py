"""What a library's launches at a site ask for: read from the kernels that it was seen to launch."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from gputop.perf import library_kernels
from gputop.phases.gemm_cuda_shapes import STORE, store_shape
from gputop.plan.launch_shape import LaunchFacts, LaunchShape
from gputop.plan.types import Task
from gputop.plan.work import Work


def library_shapes(task: Task, each: Sequence[LaunchFacts]) -> tuple[LaunchShape, ...]:
    """Of each launch in order; empty where one of them is not to be read.

    Where q, k and v are products of their own, each has its share of the columns.
    """
    products = [facts for facts in each if not _follows(facts)]
    if not products:
        return ()
    rows, columns, inner = task.output.rows, task.site.columns // len(products), task.site.inner
    found: list[LaunchShape] = []
    splits = 1
    for facts in each:
        if facts.name == STORE:
            found.append(store_shape(prod(facts.grid or (1,)), prod(facts.block or (1,))))
        elif library_kernels.adds_parts(facts.name):
            found.append(library_kernels.sum_shape(facts, rows, columns, splits))
        else:
            shape = library_kernels.product_shape(facts, rows, columns, inner)
            if shape is None:
                return ()
            splits = shape.splits
            found.append(shape)
    return tuple(found)


def least_shape(work: Work, sm_count: int, pipe: str | None) -> LaunchShape:
    """What any kernel asks for that does some work: each byte and each FLOP once, on every SM alike."""
    asked = work.weight_bytes + work.in_bytes
    return LaunchShape(
        blocks=sm_count,
        threads=128,
        stages=2,
        pipe=pipe,
        flops=work.flops,
        read_bytes=asked / sm_count,
        distinct_bytes=asked,
        written_bytes=work.out_bytes,
        from_dram=True,
        has_main_loop=False,
    )


def _follows(facts: LaunchFacts) -> bool:
    return facts.name == STORE or library_kernels.adds_parts(facts.name)
