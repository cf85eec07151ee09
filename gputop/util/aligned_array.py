"""Arrays that start on a cache line, so that alignment never differs between plans."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALIGN_BYTES = 64
FLOAT32 = np.dtype(np.float32)


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any] = FLOAT32) -> NDArray[Any]:
    """An uninitialised array whose first element lies on a 64-byte boundary."""
    size_bytes = prod(shape) * dtype.itemsize
    raw = np.empty(size_bytes + ALIGN_BYTES, np.uint8)
    start = -raw.ctypes.data % ALIGN_BYTES
    return raw[start : start + size_bytes].view(dtype).reshape(shape)
