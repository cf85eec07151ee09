"""The one way a kernel of ours is launched: everything decided beforehand, then one driver call."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace
from typing import Any

from gputop.backends.cuda.runtime.context import Context, Function
from gputop.backends.cuda.runtime.status_codes import check, explain

FIRST_WITH_PDL = 90
"""Compute capability from which a grid may start before the one ahead of it has ended."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """Shape of a launch and what it asks of the scheduler."""

    grid: tuple[int, int, int]
    """In blocks, also with a cluster."""
    block: tuple[int, int, int]
    smem_bytes: int = 0
    """Dynamic shared memory of a block."""
    cluster: int = 1
    """Blocks of a cluster, along x."""
    cooperative: bool = False
    pdl: bool = False
    """May start while the launch before it drains: the kernel itself waits before it reads."""
    most_smem: bool = False
    """Asks for as much of an SM's memory as shared memory as can be, instead of what this kernel needs. An SM
    that has to divide its memory anew can't keep blocks of the launch before."""

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads(self) -> int:
        """Return the threads of one block."""
        return self.block[0] * self.block[1] * self.block[2]


class KernelLaunch:
    """A kernel with its geometry, stream and arguments; calling it enqueues it once."""

    __slots__ = ("_address", "_config", "_handle", "_launch", "_pointer", "arguments", "function", "geometry")

    def __init__(self, context: Context, function: Function, geometry: Geometry, arguments: bytes) -> None:
        """`arguments`: the bytes of the kernel's one parameter; `self.arguments` stays writable.

        UsageError when the device has not the shared memory or the cluster asked for.
        """
        from cuda.bindings import driver

        function.allow_smem(geometry.smem_bytes)
        function.allow_cluster(geometry.cluster)
        self.function = function
        self.geometry = geometry
        self.arguments = ctypes.create_string_buffer(arguments, len(arguments))
        # The driver wants an array of pointers to parameters, and copies them at each launch.
        self._pointer = (ctypes.c_void_p * 1)(ctypes.addressof(self.arguments))
        self._address = ctypes.addressof(self._pointer)
        self._handle = function.handle
        self._config = _config(geometry, context.stream.ptr)
        self._launch = driver.cuLaunchKernelEx

    def __call__(self) -> None:
        (status,) = self._launch(self._config, self._handle, self._address, 0)
        if status != 0:
            shape = (
                f"grid {self.geometry.grid}, block {self.geometry.block}, {self.geometry.smem_bytes} B shared"
            )
            raise explain(int(status), status.name, f"kernel {self.function.name} ({shape})")

    def clustered_blocks(self) -> int | None:
        """Blocks of the clusters that the device holds at once, by the driver; None without clusters."""
        from cuda.bindings import driver

        if self.geometry.cluster == 1:
            return None
        config = _config(replace(self.geometry, pdl=False, most_smem=False), 0)
        result = driver.cuOccupancyMaxActiveClusters(self._handle, config)
        return self.geometry.cluster * int(check(result, f"the clusters of kernel {self.function.name}"))


def _config(geometry: Geometry, stream: int) -> Any:
    from cuda.bindings import driver

    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = geometry.grid
    config.blockDimX, config.blockDimY, config.blockDimZ = geometry.block
    config.sharedMemBytes = geometry.smem_bytes
    config.hStream = stream
    attributes = []
    if geometry.cooperative:
        attribute = _attribute("COOPERATIVE")
        attribute.value.cooperative = 1
        attributes.append(attribute)
    if geometry.cluster > 1:
        attribute = _attribute("CLUSTER_DIMENSION")
        size = attribute.value.clusterDim
        size.x, size.y, size.z = geometry.cluster, 1, 1
        attributes.append(attribute)
    if geometry.pdl:
        attribute = _attribute("PROGRAMMATIC_STREAM_SERIALIZATION")
        attribute.value.programmaticStreamSerializationAllowed = 1
        attributes.append(attribute)
    if geometry.most_smem:
        attribute = _attribute("PREFERRED_SHARED_MEMORY_CARVEOUT")
        attribute.value.sharedMemCarveout = 100
        attributes.append(attribute)
    if attributes:
        config.attrs = attributes
        config.numAttrs = len(attributes)
    return config


def _attribute(name: str) -> Any:
    from cuda.bindings import driver

    attribute = driver.CUlaunchAttribute()
    attribute.id = getattr(driver.CUlaunchAttributeID, f"CU_LAUNCH_ATTRIBUTE_{name}")
    return attribute
