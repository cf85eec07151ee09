"""Bytes that our products ask of L2, against their kernels' loads walked one by one: block, turn, thread.

Of a word that several threads of a block load L2 is asked once, by the first; the rest L1 serves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import ceil

import pytest

from gputop.perf.roofline.peaks import STORED_SHARE
from gputop.plan.plan_string import parse_choice
from gputop.plan.types import (
    WORD_BYTES,
    Dims,
    Kernel,
    Plan,
    PlanRequest,
    Site,
    Task,
    View,
    WeightView,
)
from gputop.plan.work import Work
from gputop.planner.registry import divided
from gputop.planner.resolver import Resolver

CATALOG = Resolver.load()
DIMS = Dims(layers=1, d_model=40, heads=2, d_ff=80, seq=8, vocab=40)
PLAN = Plan("cuda", PlanRequest("naive"), ())

Word = tuple[str, int, int]
"""Of `a`, `w`, `c` or `partial`: row and column of the operand as it is stored."""
Asked = Iterator[tuple[object, Word]]
"""The block that asks, or where a thing goes to memory and back, whoever does, and the word."""


def product(rows: int, columns: int, inner: int) -> Task:
    """With nothing to add: what is asked for is panels and results."""
    site = Site("head", "head", rows, columns, inner, (0, 1))
    operands = (("a", View("xnf", 0, rows, inner, inner)), ("w", WeightView("whead", 0, 0, columns)))
    return Task(site, 0, operands, View("logits", 0, rows, columns, columns))


def blocks(task: Task, rows: int, columns: int) -> Iterator[tuple[int, int]]:
    """First row and column of each tile."""
    for row in range(0, task.site.rows, rows):
        for column in range(0, task.site.columns, columns):
            yield row, column


def thread_an_output(task: Task) -> Asked:
    """kernels/gemm/01_naive.cu, 02_coalesced.cu: threads beyond an edge leave."""
    site = task.site
    for block in blocks(task, 8, 32):
        for thread in range(8 * 32):
            row, column = block[0] + thread // 32, block[1] + thread % 32
            if row >= site.rows or column >= site.columns:
                continue
            for k in range(site.inner):
                yield block, ("a", row, k)
                yield block, ("w", k, column)
            yield block, ("c", row, column)


def tiled(task: Task) -> Asked:
    """kernels/gemm/03_tiled.cu: what lies beyond an edge is staged as a zero."""
    site = task.site
    for block in blocks(task, 16, 16):
        for thread in range(16 * 16):
            ty, tx = divmod(thread, 16)
            row, column = block[0] + ty, block[1] + tx
            for k0 in range(0, site.inner, 16):
                if row < site.rows and k0 + tx < site.inner:
                    yield block, ("a", row, k0 + tx)
                if column < site.columns and k0 + ty < site.inner:
                    yield block, ("w", k0 + ty, column)
            if row < site.rows and column < site.columns:
                yield block, ("c", row, column)


def register_tiled(columns: int, splits: int = 1) -> Callable[[Task], Asked]:
    """kernels/include/register_tile.cuh in tiles of 32 rows; parts are written, read and added apart."""
    depth, threads = 16, 2 * columns

    def walk(task: Task) -> Asked:
        site = task.site
        steps = ceil(site.inner / depth)
        for tile in blocks(task, 32, columns):
            for split in range(splits):
                begin, end = (min(steps * (split + i) // splits * depth, site.inner) for i in (0, 1))
                for thread in range(threads):
                    for k0 in range(begin, end, depth):
                        for i in range(thread, 32 * depth, threads):
                            row, k = tile[0] + i // depth, k0 + i % depth
                            if row < site.rows and k < end:
                                yield (tile, split), ("a", row, k)
                        for i in range(thread, columns * depth, threads):
                            column, k = tile[1] + i % columns, k0 + i // columns
                            if column < site.columns and k < end:
                                yield (tile, split), ("w", k, column)
        for row in range(site.rows):
            for column in range(site.columns):
                yield "result", ("c", row, column)
                for split in range(splits if splits > 1 else 0):
                    yield ("part there", split), ("partial", row, column)
                    yield ("and back", split), ("partial", row, column)

    return walk


def one_row(task: Task) -> Asked:
    """kernels/include/one_row.cuh: lanes beyond the last column load the first."""
    site = task.site
    for block in blocks(task, 1, 32):
        for thread in range(1024):
            warp, lane = divmod(thread, 32)
            column = block[1] + lane
            for k in range(warp, site.inner, 32):
                yield block, ("a", block[0], k)
                yield block, ("w", k, column if column < site.columns else 0)
            if warp == 0 and column < site.columns:
                yield block, ("c", block[0], column)


def one_row_k_major(task: Task) -> Asked:
    """kernels/gemm/11_one_row_k_major.cu, a warp a column: one beyond the last loads the first's weights."""
    site = task.site
    for block in blocks(task, 1, 8):
        for thread in range(256):
            warp, lane = divmod(thread, 32)
            column = block[1] + warp
            for k4 in range(lane * 4, site.inner, 128):
                for k in range(k4, k4 + 4):
                    yield block, ("a", block[0], k)
                    yield block, ("w", column if column < site.columns else 0, k)
            if lane == 0 and column < site.columns:
                yield block, ("c", block[0], column)


def warpgroup(task: Task) -> Asked:
    """kernels/gemm/11_warpgroup.cu in tiles of 56 columns, two blocks each: beyond an edge are zeros."""
    site = task.site
    steps = site.inner // 32
    for tile in blocks(task, 128, 56):
        for rank in range(2):
            for step in range(steps * rank // 2, steps * (rank + 1) // 2):
                for thread in range(256):
                    tile_row, chunk = divmod(thread, 8)
                    for word in range(step * 32 + chunk * 4, step * 32 + chunk * 4 + 4):
                        for row in range(tile[0] + tile_row, min(tile[0] + 128, site.rows), 32):
                            yield (tile, rank), ("a", row, word)
                        for column in range(tile[1] + tile_row, min(tile[1] + 56, site.columns), 32):
                            yield (tile, rank), ("w", column, word)
    for row in range(site.rows):
        for column in range(site.columns):
            yield "result", ("c", row, column)


def asked_bytes(asked: Asked, words: int) -> int:
    """In pieces of so many words: 8 are a sector."""
    pieces = {(block, name, row, column // words) for block, (name, row, column) in asked}
    return len(pieces) * words * WORD_BYTES


ODD = [(1, 37, 21), (19, 37, 21), (33, 65, 50), (5, 9, 3)]
WHOLE = [(32, 64, 32), (64, 192, 64)]
SECTORS = [(1, 40, 40), (3, 72, 24), (2, 24, 40)]
"""Columns and inner axis of whole sectors, which lie where they are counted."""
LANES = [(1, 32, 64), (2, 96, 32)]


def declared_bytes(kernel: Kernel, task: Task) -> float:
    assert kernel.shapes is not None
    return sum(shape.l2_bytes for shape in kernel.shapes((task,), PLAN, DIMS))


@pytest.mark.parametrize(
    ("kernel", "walk", "odd", "whole", "words"),
    [
        ("gemm_naive", thread_an_output, ODD, WHOLE, 1),
        ("gemm_coalesced", thread_an_output, ODD, WHOLE, 1),
        ("gemm_tiled", tiled, ODD, WHOLE, 1),
        ("gemm_register_tiled", register_tiled(64), ODD, WHOLE, 1),
        ("gemm_small_tiles", register_tiled(32), ODD, WHOLE, 1),
        ("gemm_split_k/2", register_tiled(64, 2), ODD, WHOLE, 1),
        ("gemm_one_row", one_row, SECTORS, LANES, 8),
        ("gemm_one_row_k_major", one_row_k_major, [(1, 37, 20), (3, 16, 132)], [(2, 8, 128)], 1),
        ("gemm_warpgroup_56/2", warpgroup, [(8, 60, 64), (100, 56, 96)], [(128, 112, 128)], 1),
    ],
)
def test_l2_is_asked_for_what_is_loaded(
    kernel: str,
    walk: Callable[[Task], Asked],
    odd: list[tuple[int, int, int]],
    whole: list[tuple[int, int, int]],
    words: int,
) -> None:
    """Of whole tiles exactly. Else every block counts as the busiest, which has no edge in it: no less."""
    choice = parse_choice(kernel)
    record = CATALOG.kernel(choice.kernel)
    for size in whole:
        task = divided(product(*size), choice)
        assert declared_bytes(record, task) == asked_bytes(walk(task), words), size
    for size in odd:
        task = divided(product(*size), choice)
        assert declared_bytes(record, task) >= asked_bytes(walk(task), words), size


SHAPES = (
    Dims(layers=2, d_model=768, heads=12, d_ff=3072, seq=128, vocab=256),
    Dims(layers=2, d_model=128, heads=2, d_ff=256, seq=64, vocab=50257, batch=3),
    Dims(layers=3, d_model=35, heads=5, d_ff=71, seq=1, vocab=97),
    Dims(layers=2, d_model=90, heads=3, d_ff=131, seq=17, vocab=101, batch=2),
)
FORMS = [
    replace(PLAN, layout=layout, fold=fold, prune=prune, fused_qkv=fused, fused_stores=fused)
    for layout in ("row", "transposed")
    for fold, prune, fused in (
        (False, False, False),
        (True, False, True),
        (True, True, False),
        (False, True, True),
    )
]


def able(task: Task, plan: Plan, dims: Dims) -> Iterator[tuple[Kernel, Task]]:
    """Kernels that can serve the task alone, whatever the math, with the task in each number of parts."""
    for kernel in CATALOG.kernels_for(task.site.phase, "cuda"):
        if kernel.fuses or plan.layout not in kernel.layouts:
            continue
        for given in (replace(task, splits=splits) for splits in kernel.splits or (1,)):
            if not (kernel.limits and kernel.limits(given, plan, dims)):
                yield kernel, given


def uncounted_bytes(task: Task, work: Work) -> float:
    """Of what a record leaves out, a hundredth of a pass: a bias, a residual, gain and shift."""
    matrix = WORD_BYTES * task.site.columns * task.site.inner if task.site.inner else work.weight_bytes
    beside = WORD_BYTES * task.output.rows * task.output.columns if task.operand("residual") else 0
    return (
        0.0 if task.site.phase == "embed" else work.weight_bytes - min(matrix, work.weight_bytes)
    ) + beside


@pytest.mark.parametrize("dims", SHAPES, ids=lambda dims: f"{dims.d_model} by {dims.tokens}")
def test_no_kernel_moves_less_than_its_phase_asks_for(dims: Dims) -> None:
    seen: set[str] = set()
    for form in FORMS:
        plan = replace(form, batch=dims.batch)
        for task in {task.site.name: task for task in CATALOG.pass_tasks(plan, dims, False)}.values():
            work = CATALOG.phase(task.site.phase).work(task.site, dims)
            for kernel, given in able(task, plan, dims):
                if kernel.shapes is None:
                    continue
                moved = sum(shape.l2_bytes for shape in kernel.shapes((given,), plan, dims))
                seen |= {kernel.name}
                asked = work.weight_bytes + work.in_bytes + work.out_bytes - uncounted_bytes(given, work)
                stored = min(STORED_SHARE[math] for math in kernel.maths)
                assert moved >= asked * stored, f"{task.site.name} by {kernel.name} in {plan}"
    assert seen >= {"embed_gather", "attention_parallel", "layernorm_warp_per_row", "gemm_tiled"}
