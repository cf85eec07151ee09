"""How a plan stores numbers: as float32, or with `math=bf16` activations and products' weights as bf16.

bf16 is the upper half of a float32: 8 significant bits. Vectors (biases, gains, shifts), the tables that
tokens are looked up in, and the logits are float32 in every plan: they are few, and each is read once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gputop.model.activations import BY_NAME
from gputop.model.weights import GEMM_WEIGHTS
from gputop.plan.types import STORED_MATHS, Math

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

Format = Literal["int32", "float32", "bf16"]

DTYPES: dict[Format, Any] = {
    "int32": np.dtype(np.int32),
    "float32": np.dtype(np.float32),
    "bf16": np.dtype(np.uint16),
}
"""NumPy has no bf16: arrays of it hold its bits."""
RESULT = "logits"
"""The buffer that a pass is asked for."""


def of_buffer(name: str, math: Math) -> Format:
    """How a plan of this math stores an activation buffer."""
    declared = BY_NAME[name].dtype
    return "bf16" if math in STORED_MATHS and declared == "float32" and name != RESULT else declared


def of_weight(tensor: str, math: Math) -> Format:
    """How a plan of this math stores a weight tensor."""
    return "bf16" if math in STORED_MATHS and tensor in GEMM_WEIGHTS else "float32"


def nearest_bf16(values: Floats) -> Floats:
    """Finite float32 rounded to the nearest bf16, ties to even, as float32."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = bits + 0x7FFF + (bits >> np.uint32(16) & np.uint32(1))
    return (rounded & np.uint32(0xFFFF0000)).view(np.float32)


def widened(bits: NDArray[np.uint16]) -> Floats:
    """bf16 as float32, from its bits."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
