"""What clusters of blocks cost, by size: to launch, to wait for each other, to read each other's memory.

See kernels/measure/cluster.cu.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import partial

import numpy as np

from gputop.backends.cuda.ceilings.steps import ProbeStep
from gputop.backends.cuda.ceilings.stopwatch import Stamp, Stopwatch
from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.graph import capture
from gputop.backends.cuda.runtime.launch import FIRST_WITH_PDL, Geometry, KernelLaunch
from gputop.backends.cuda.runtime.nvml import Nvml
from gputop.backends.cuda.runtime.utility_kernels import Tools
from gputop.backends.cuda.timing.events import Timer
from gputop.results.records import Ceiling

SIZES = (2, 4, 8)
THREADS = 256
LAUNCHES = 60
RUNS = 7
SMEM_BYTES = 70 << 10
"""Of a block in the chain: about what our cluster kernels have."""
BARRIERS = 400
TILE_BYTES = 32 << 10
"""In each block's shared memory: a partial tile of about 128 x 64."""
READS = 64


class ClusterProbes:
    """Costs in seconds, and the rate at which one SM reads from the others of its cluster."""

    def __init__(self, context: Context, tools: Tools, timer: Timer, nvml: Nvml) -> None:
        self._context = context
        self._tools = tools
        self._timer = timer
        self._stamp = Stamp(context)
        self._stopwatch = Stopwatch(context, timer, nvml, self._stamp)
        self._sink = context.array((4,), np.float32, "a probe")

    @property
    def offered(self) -> bool:
        return int(self._context.arch) >= FIRST_WITH_PDL

    def steps(self) -> Iterator[ProbeStep]:
        return (ProbeStep(f"clusters of {size}", partial(self._of_size, size)) for size in SIZES)

    def _launch_s(self, size: int) -> float:
        """Device seconds of one empty launch in a graph of them, in clusters of `size`."""
        call = self._launch("clustered", size, SMEM_BYTES, repeats=0)
        graph = capture(self._context, [call] * LAUNCHES, "the cluster probe")

        def launch() -> None:
            graph.launch(self._context.stream)

        return min(self._timer.whole([launch])[0] for _ in range(RUNS)) / LAUNCHES

    def _of_size(self, size: int) -> list[Ceiling]:
        blocks = self._blocks(size)
        launch_s = self._launch_s(size)
        barrier_s = self._per_repeat("cluster_barriers", size, BARRIERS)
        read_s = self._per_repeat("dsmem_read", size, READS)
        shape = f"{blocks} blocks of {THREADS} in clusters of {size}"
        empty = f"{LAUNCHES} empty launches of {shape}, {SMEM_BYTES >> 10} KiB each"
        return [
            Ceiling(f"launch_cluster_{size}", launch_s, "s", empty),
            Ceiling(f"cluster_barrier_{size}", barrier_s, "s", f"mean of {BARRIERS}, {shape}"),
            Ceiling(
                f"dsmem_read_{size}",
                TILE_BYTES / read_s,
                "B/s",
                f"each block of {shape} reads its share of all tiles of {TILE_BYTES >> 10} KiB",
            ),
        ]

    def _per_repeat(self, entry: str, size: int, repeats: int) -> float:
        """Device seconds of one repeat: many, less none."""
        smem_bytes = TILE_BYTES if entry == "dsmem_read" else 0
        many, none = (
            self._stopwatch.burst(self._launch(entry, size, smem_bytes, count)).seconds
            for count in (repeats, 0)
        )
        return (many - none) / repeats

    def _blocks(self, size: int) -> int:
        return self._context.sm_count // size * size

    def _launch(self, entry: str, size: int, smem_bytes: int, repeats: int) -> KernelLaunch:
        """Launch as many clusters as are resident at once with one block an SM, so that none waits for
        another.
        """
        geometry = Geometry((self._blocks(size), 1, 1), (THREADS, 1, 1), smem_bytes, cluster=size)
        arguments = struct.pack(
            "<QQiii4x", self._sink.data.ptr, self._stamp.address, repeats, TILE_BYTES // 16, size
        )
        launch = self._tools.launch("cluster.cu", entry, geometry, arguments)
        resident = launch.clustered_blocks()
        if resident is None or resident >= geometry.blocks:
            return launch
        geometry = Geometry((resident, 1, 1), (THREADS, 1, 1), smem_bytes, cluster=size)
        return self._tools.launch("cluster.cu", entry, geometry, arguments)
