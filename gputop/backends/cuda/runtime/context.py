"""The one owner of what the process holds on a device: stream, memory, modules, mapped host memory."""

from __future__ import annotations

import ctypes
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from gputop.backends.cuda.compiler.nvrtc import Cubin, arch_of, compile_source, read_text
from gputop.backends.cuda.runtime.status_codes import check, explained
from gputop.util.errors import DeviceLost, UsageError

DEADLINE_S = 15.0
"""What a kernel has that is no part of a plan. One that is still running then never ends."""
SLOWEST_FLOPS = 1e11
"""Per second, of the slowest kernels on the slowest cards: a few times below what the naive product does."""

_MAPPED = 2
_NOT_READY = 600


class Function:
    """A kernel entry on the device."""

    def __init__(self, handle: Any, name: str, cubin: Cubin) -> None:
        self.handle = handle
        self.name = name
        self.cubin = cubin
        self.facts = cubin.functions[name]
        self._smem_bytes = 0

    def allow_smem(self, smem_bytes: int) -> None:
        """Raise the limit on dynamic shared memory; UsageError when the device has less."""
        from cuda.bindings import driver

        if smem_bytes > self._smem_bytes:
            limit = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            what = f"{smem_bytes} B of shared memory for kernel {self.name}"
            check(driver.cuFuncSetAttribute(self.handle, limit, smem_bytes), what)
            self._smem_bytes = smem_bytes

    def allow_cluster(self, blocks: int) -> None:
        """Clusters above 8 blocks must be asked for."""
        from cuda.bindings import driver

        if blocks > 8:
            wide = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            check(driver.cuFuncSetAttribute(self.handle, wide, 1), f"a cluster of {blocks} for {self.name}")

    def blocks_per_sm(self, threads: int, smem_bytes: int) -> int:
        """Resident blocks by the driver's own occupancy calculation."""
        from cuda.bindings import driver

        result = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(self.handle, threads, smem_bytes)
        return int(check(result, f"the occupancy of kernel {self.name}"))


class Context:
    """A device made current, with one stream; everything taken through it is given back by `close`."""

    def __init__(self, index: int) -> None:
        import cupy

        self._cupy = cupy
        self.index = index
        with explained(f"device {index}"):
            self.device = cupy.cuda.Device(index)
            self.device.use()
            # Also creates the context, which module loading needs.
            self.properties: dict[str, Any] = cupy.cuda.runtime.getDeviceProperties(index)
            self.stream = cupy.cuda.Stream(non_blocking=True)
            self.stream.use()
        self.arch = f"{self.properties['major']}{self.properties['minor']}"
        self.sm_count = int(self.properties["multiProcessorCount"])
        self.l2_bytes = int(self.properties["l2CacheSize"])
        self.smem_optin_bytes = int(self.properties["sharedMemPerBlockOptin"])
        """Most shared memory of a block that asks for it."""
        self._modules: dict[tuple[str, tuple[str, ...]], tuple[Any, Cubin]] = {}
        self._functions: dict[tuple[str, str, tuple[str, ...]], Function] = {}
        self._mapped: list[int] = []
        self._pass_s = 0.0
        self.closed = False
        self.hung: DeviceLost | None = None
        """What was raised for a kernel that does not end."""

    def array(self, shape: tuple[int, ...], dtype: Any, what: str) -> Any:
        """An uninitialised CuPy array with memory of its own, outside any pool: dropped is freed.

        UsageError when the device has not enough memory for `what`.
        """
        import numpy as np

        count = 1
        for extent in shape:
            count *= extent
        with explained(what):
            memory = self._cupy.cuda.Memory(max(1, count * np.dtype(dtype).itemsize))
            return self._cupy.ndarray(shape, dtype, memptr=self._cupy.cuda.MemoryPointer(memory, 0))

    def mapped(self, count: int, ctype: Any) -> tuple[Any, int]:
        """`count` elements of host memory that the device shares: (ctypes array, device address)."""
        with explained("mapped host memory"):
            size = max(1, count) * ctypes.sizeof(ctype)
            pointer = self._cupy.cuda.runtime.hostAlloc(size, _MAPPED)
        self._mapped.append(pointer)
        array = (ctype * count).from_address(pointer)
        ctypes.memset(pointer, 0, size)
        return array, pointer

    def unmap(self, pointer: int) -> None:
        """Give mapped host memory back; twice is harmless, and so is a context that is lost."""
        if pointer in self._mapped and self.hung is None:
            self._mapped.remove(pointer)
            # What lost the context is on its way up already, or is said by the next who asks it for anything.
            with suppress(self._cupy.cuda.runtime.CUDARuntimeError):
                self._cupy.cuda.runtime.freeHost(pointer)

    def function(
        self, source: Path, name: str, entry: str, kernel_dirs: tuple[Path, ...], macros: tuple[str, ...] = ()
    ) -> Function:
        """The entry of a source, compiled, loaded and ready; the same object every time."""
        key = (str(source), entry, macros)
        if key not in self._functions:
            module, cubin = self._module(source, name, kernel_dirs, macros)
            if entry not in cubin.functions:
                raise UsageError(
                    f"{name} has no kernel {entry!r}; it has: {', '.join(sorted(cubin.functions))}."
                )
            self._functions[key] = self._load_function(module, cubin, entry)
        return self._functions[key]

    def forget(self, folder: Path) -> None:
        """Unload what was compiled from sources below a folder: the next who asks has it compiled again.

        No call that launches any of it may be left.
        """
        from cuda.bindings import driver

        self._functions = {
            key: function
            for key, function in self._functions.items()
            if not Path(key[0]).is_relative_to(folder)
        }
        for key in [key for key in self._modules if Path(key[0]).is_relative_to(folder)]:
            module, cubin = self._modules.pop(key)
            check(driver.cuModuleUnload(module), f"unloading {cubin.source}")

    def expect(self, flops: float) -> None:
        """Have every wait allow for a pass of so much work."""
        self._pass_s = max(self._pass_s, flops / SLOWEST_FLOPS)

    def synchronize(self, what: str, deadline_s: float | None = None) -> None:
        """Wait for the stream: unless said otherwise `DEADLINE_S`, and as long as a slow pass may take.

        DeviceLost, naming `what`, for a fault or when it does not end in time.
        """
        deadline_s = DEADLINE_S + self._pass_s if deadline_s is None else deadline_s
        begun = time.perf_counter()
        event = self._cupy.cuda.Event(disable_timing=True)
        with explained(what):
            event.record(self.stream)
            while not self._done(event):
                waited = time.perf_counter() - begun
                if waited > deadline_s:
                    why = f"{what} was still running after {deadline_s:.0f} s; its context is given up."
                    # Kept, with the frames of its traceback: freeing anything would wait for the kernel.
                    self.hung = DeviceLost(why)
                    raise self.hung
                if waited > 0.002:
                    time.sleep(0.0002)

    def copy_in(self, array: Any, host: Any) -> None:
        """Host values into a device array of the same shape and dtype, done when it returns."""
        with explained("a copy to the device"):
            array.set(host, stream=self.stream)
            self.stream.synchronize()

    def copy_out(self, array: Any) -> Any:
        """A device array as a NumPy array, complete when it returns."""
        with explained("a copy from the device"):
            host = array.get(stream=self.stream)
            self.stream.synchronize()
            return host

    def copy_async(self, target: int, source: int, size: int, kind: int) -> None:
        """Enqueue a copy between addresses; `kind` as in cudaMemcpyKind."""
        self._cupy.cuda.runtime.memcpyAsync(target, source, size, kind, self.stream.ptr)

    def free_bytes(self) -> int:
        with explained("a memory query"):
            return int(self._cupy.cuda.runtime.memGetInfo()[0])

    def close(self) -> None:
        """Unload and free; after a lost context nothing can be freed and nothing needs to be."""
        from cuda.bindings import driver

        if self.closed or self.hung is not None:
            return
        self.closed = True
        self._functions.clear()
        try:
            self.stream.synchronize()
            # Nobody finds a stream that is closed as the thread's current one.
            self._cupy.cuda.Stream.null.use()
            for module, _ in self._modules.values():
                driver.cuModuleUnload(module)
            for pointer in self._mapped:
                self._cupy.cuda.runtime.freeHost(pointer)
            self._cupy.get_default_memory_pool().free_all_blocks()
        except self._cupy.cuda.runtime.CUDARuntimeError:
            return
        finally:
            self._modules.clear()
            self._mapped.clear()

    def _done(self, event: Any) -> bool:
        """CuPy hands the query's status back unraised, and its `done` takes a fault for `not yet`."""
        runtime = self._cupy.cuda.runtime
        status = runtime.eventQuery(event.ptr)
        if status in (0, _NOT_READY):
            return bool(status == 0)
        raise runtime.CUDARuntimeError(status)

    def _module(
        self, source: Path, name: str, kernel_dirs: tuple[Path, ...], macros: tuple[str, ...]
    ) -> tuple[Any, Cubin]:
        from cuda.bindings import driver

        key = (str(source), macros)
        if key not in self._modules:
            arch = arch_of(read_text(source), self.arch)
            if arch is None:
                raise UsageError(f"{name} does not run on sm_{self.arch}.")
            cubin = compile_source(source, name, arch, kernel_dirs, macros)
            module = check(driver.cuModuleLoadData(cubin.code), f"loading {name}")
            self._modules[key] = (module, cubin)
        return self._modules[key]

    def _load_function(self, module: Any, cubin: Cubin, entry: str) -> Function:
        from cuda.bindings import driver

        what = f"loading kernel {entry} of {cubin.source}"
        handle = check(driver.cuModuleGetFunction(module, entry.encode()), what)
        # Lazy loading would otherwise happen at the first launch, inside a measurement.
        check(driver.cuFuncLoad(handle), what)
        return Function(handle, entry, cubin)
