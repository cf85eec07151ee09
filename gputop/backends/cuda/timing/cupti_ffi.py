"""CUPTI's library, by the few of its calls that recording kernels takes.

By ctypes rather than by cupti-python, which makes an object of each record and takes 60 to 100 us over it: a
pass is dozens of kernels of a few microseconds each, and the time for records would set how often a pass can
be sampled.
"""

from __future__ import annotations

import atexit
import ctypes
from contextlib import suppress
from functools import cache
from typing import Any

from gputop.backends.cuda.timing.spans import Span
from gputop.util.errors import Unavailable

NAME = "cupti"
CONCURRENT_KERNEL = 10
"""CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: records kernels without keeping them from overlapping."""
FLUSH_FORCED = 1
BUFFER_BYTES = 8 << 20
"""Records are about 200 bytes."""


class KernelRecord(ctypes.Structure):
    """What is read of a kernel's record.

    Its begin is laid out alike from CUpti_ActivityKernel4 (CUDA 9) to CUpti_ActivityKernel13 (CUDA 13.4);
    later forms only add to its end (cupti_activity.h, cupti_activity_deprecated.h).
    """

    _fields_ = (
        ("kind", ctypes.c_uint32),
        ("of_the_launch", ctypes.c_uint8 * 12),
        ("start", ctypes.c_uint64),
        ("end", ctypes.c_uint64),
        ("of_its_place", ctypes.c_uint8 * 72),
        ("name", ctypes.c_char_p),
    )


_REQUESTED = ctypes.CFUNCTYPE(
    None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t)
)
_COMPLETED = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t
)


class Cupti:
    """The library, and the kernel records that it hands to this process."""

    def __init__(self, path: str) -> None:
        """OSError when it can't be loaded. Nothing of it runs before `attach`."""
        self.path = path
        self._library = ctypes.CDLL(path)
        self._library.cuptiActivityGetNextRecord.argtypes = (
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.POINTER(ctypes.c_void_p),
        )
        self._buffers: dict[int, ctypes.Array[ctypes.c_char]] = {}
        self._idle: list[int] = []
        self._spans: list[Span] = []
        # The library keeps calling them: they must live as long as it may.
        self._requested, self._completed = _REQUESTED(self._lend), _COMPLETED(self._take_back)
        self._attached = False

    def attach(self) -> None:
        """Have records handed to this process. Unavailable when CUPTI lets nobody."""
        if self._attached:
            return
        self._check(self._library.cuptiActivityRegisterCallbacks(self._requested, self._completed))
        # It hands buffers back at a process's end, to a Python that is gone by then: it is let go before.
        atexit.register(self._detach)
        self._attached = True

    def start(self) -> None:
        """Record kernels from here on. Unavailable when another profiler is attached, or none may be."""
        # What a recording that failed left behind is not of this one.
        self.flush()
        self._check(self._library.cuptiActivityEnable(CONCURRENT_KERNEL))

    def stop(self) -> None:
        """Record no more. Unavailable when that can't be had."""
        self._check(self._library.cuptiActivityDisable(CONCURRENT_KERNEL))

    def flush(self) -> list[Span]:
        """The kernels recorded since the last flush, all of which must have ended."""
        self._check(self._library.cuptiActivityFlushAll(FLUSH_FORCED))
        spans, self._spans = self._spans, []
        return spans

    def read(self, buffer: int, used_bytes: int) -> list[Span]:
        """The kernels whose records lie in `used_bytes` from the address `buffer` on, but those untimed."""
        found: list[Span] = []
        at = ctypes.c_void_p()
        following, where = self._library.cuptiActivityGetNextRecord, ctypes.byref(at)
        while following(buffer, used_bytes, where) == 0 and at.value:
            record = KernelRecord.from_address(at.value)
            # Zeros stand for times that could not be had.
            if record.kind == CONCURRENT_KERNEL and record.end:
                found.append(Span(record.start, record.end, (record.name or b"").decode(errors="replace")))
        return found

    def _lend(self, buffer: Any, size: Any, most_records: Any) -> None:
        """Called by CUPTI for room to write records into, as many as fit."""
        if not self._idle:
            fresh = ctypes.create_string_buffer(BUFFER_BYTES)
            self._buffers[ctypes.addressof(fresh)] = fresh
            self._idle.append(ctypes.addressof(fresh))
        buffer[0], size[0], most_records[0] = self._idle.pop(), BUFFER_BYTES, 0

    def _take_back(self, _context: int, _stream: int, buffer: int, _size: int, used_bytes: int) -> None:
        """Called by CUPTI with a buffer that it is done with, at the latest in a flush."""
        # Read first: this may be a thread of CUPTI's own, while `flush` takes the list away.
        spans = self.read(buffer, used_bytes)
        self._spans.extend(spans)
        self._idle.append(buffer)

    def _detach(self) -> None:
        with suppress(Unavailable):
            self.flush()
            self._check(self._library.cuptiFinalize())

    def _check(self, result: int) -> None:
        if result:
            name = ctypes.c_char_p()
            self._library.cuptiGetResultString(result, ctypes.byref(name))
            said = name.value.decode() if name.value else f"error {result}"
            raise Unavailable(f"CUPTI can't be used here ({said}).")


@cache
def load() -> Cupti | None:
    """The one of this process; None where none is installed. OSError when one is and can't be loaded."""
    try:
        from cuda import pathfinder
    except ImportError:
        return None
    # Before 1.4.1 it does not know where this library lies.
    if NAME not in pathfinder.SUPPORTED_NVIDIA_LIBNAMES:
        return None
    try:
        return Cupti(pathfinder.load_nvidia_dynamic_lib(NAME).abs_path)
    except pathfinder.DynamicLibNotFoundError:
        return None
    except RuntimeError as error:
        raise OSError(str(error)) from error
