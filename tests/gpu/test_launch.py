"""The one launch path: clusters, cooperative grids, dependent launches, large shared memory, captured too."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.graph import capture, kernel_nodes
from gputop.backends.cuda.runtime.launch import Geometry, KernelLaunch
from gputop.backends.cuda.runtime.utility_kernels import Tools
from gputop.util.errors import UsageError
from gputop.util.paths import kernels_dir
from tests.gpu.conftest import KERNELS

SOURCE = "launches.cu"
FIRST_ARCH = 90
LARGE_SMEM = 160 * 1024

Make = Callable[[str, Geometry, int], tuple[KernelLaunch, Any]]


@pytest.fixture
def make(context: Context, tools: Tools) -> Make:
    """(entry, geometry, count) -> a launch of a kernel of tests/gpu/kernels and its zeroed output."""
    if int(context.arch) < FIRST_ARCH:
        pytest.skip(f"needs sm_{FIRST_ARCH}, and the device is sm_{context.arch}")

    def made(entry: str, geometry: Geometry, count: int) -> tuple[KernelLaunch, Any]:
        out = context.array((max(count, geometry.blocks),), np.int32, "a test")
        counter = context.array((1,), np.int32, "a test")
        for array in (out, counter):
            tools.fill_words(array.data.ptr, array.size, 0)()
        function = context.function(KERNELS / SOURCE, SOURCE, entry, (kernels_dir(),))
        arguments = struct.pack("<QQi4x", out.data.ptr, counter.data.ptr, count)
        launch = KernelLaunch(context, function, geometry, arguments)
        launch_and_memory[launch] = counter
        return launch, out

    launch_and_memory: dict[KernelLaunch, Any] = {}
    return made


@pytest.fixture(params=["stream", "graph"])
def run(request: pytest.FixtureRequest, context: Context) -> Callable[[list[KernelLaunch]], None]:
    def enqueue(launches: list[KernelLaunch]) -> None:
        if request.param == "graph":
            capture(context, launches, "a test").launch(context.stream)
        else:
            for launch in launches:
                launch()
        context.synchronize("a test")

    return enqueue


def test_clusters(make: Make, context: Context, run: Callable[[list[KernelLaunch]], None]) -> None:
    launch, out = make("rank_in_cluster", Geometry((8, 1, 1), (32, 1, 1), cluster=4), 8)
    run([launch])
    assert context.copy_out(out).tolist() == [400, 401, 402, 403] * 2
    alone, _ = make("rank_in_cluster", Geometry((8, 1, 1), (32, 1, 1)), 8)
    assert alone.clustered_blocks() is None
    together = launch.clustered_blocks()
    assert together is not None
    assert together % 4 == 0
    assert 0 < together <= context.sm_count * launch.function.blocks_per_sm(32, 0)


def test_a_cooperative_grid_meets(
    make: Make, context: Context, run: Callable[[list[KernelLaunch]], None]
) -> None:
    blocks = context.sm_count
    launch, out = make("meet", Geometry((blocks, 1, 1), (64, 1, 1), cooperative=True), blocks)
    run([launch])
    assert set(context.copy_out(out).tolist()) == {blocks}


def test_a_cooperative_grid_that_cannot_be_resident_is_refused(make: Make, context: Context) -> None:
    blocks = 64 * context.sm_count
    launch, _ = make("meet", Geometry((blocks, 1, 1), (1024, 1, 1), cooperative=True), blocks)
    with pytest.raises(UsageError, match="cooperative grid larger"):
        launch()


def test_dependent_launches_keep_their_order(
    make: Make, context: Context, run: Callable[[list[KernelLaunch]], None]
) -> None:
    count = 1 << 16
    launch, out = make("increment_after", Geometry((count // 256, 1, 1), (256, 1, 1), pdl=True), count)
    run([launch] * 50)
    assert set(context.copy_out(out).tolist()) == {50}


def test_shared_memory_beyond_the_default(
    make: Make, context: Context, run: Callable[[list[KernelLaunch]], None]
) -> None:
    count = LARGE_SMEM // 4
    launch, out = make("through_shared", Geometry((1, 1, 1), (256, 1, 1), LARGE_SMEM), count)
    run([launch])
    assert context.copy_out(out).tolist() == list(range(count))[::-1]


def test_more_shared_memory_than_there_is_is_refused(make: Make) -> None:
    with pytest.raises(UsageError, match="shared memory"):
        make("through_shared", Geometry((1, 1, 1), (256, 1, 1), 1 << 20), 1)


def test_a_graph_tells_what_kernels_it_holds(make: Make, context: Context) -> None:
    launch, _ = make("through_shared", Geometry((1, 1, 1), (256, 1, 1), 4096), 1024)
    first, second = kernel_nodes(context, [launch, launch], "a test")
    assert first == second
    assert (first.name, first.grid, first.block, first.smem_bytes) == (
        "through_shared",
        (1, 1, 1),
        (256, 1, 1),
        4096,
    )
    assert first.registers == launch.function.facts.registers
