"""Tensor maps: what the copy engine (TMA, from sm_90 on) must know of a tensor to copy boxes of it."""

from __future__ import annotations

from gputop.backends.cuda.runtime.status_codes import check
from gputop.plan.types import WORD_BYTES, TensorMap

MAP_ALIGNMENT = 64
"""Of a map in a kernel's parameters, and so of their struct."""
FORMATS = {
    "tf32": ("CU_TENSOR_MAP_DATA_TYPE_TFLOAT32", WORD_BYTES),
    "bf16": ("CU_TENSOR_MAP_DATA_TYPE_BFLOAT16", WORD_BYTES // 2),
}
"""The driver's name of a map's format, and the bytes of an element."""


def encode_tensor_map(tensor_map: TensorMap, address: int) -> bytes:
    """The 128 bytes that describe the tensor at this device address. UsageError where the driver refuses."""
    from cuda.bindings import driver

    rank = len(tensor_map.sizes)
    format_name, element_bytes = FORMATS[tensor_map.format]
    result = driver.cuTensorMapEncodeTiled(
        getattr(driver.CUtensorMapDataType, format_name),
        rank,
        address,
        [driver.cuuint64_t(size) for size in tensor_map.sizes],
        [driver.cuuint64_t(stride * element_bytes) for stride in tensor_map.strides],
        [driver.cuuint32_t(extent) for extent in tensor_map.box],
        [driver.cuuint32_t(1)] * rank,
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    words = check(result, f"a tensor map of {tensor_map}").opaque
    return b"".join(int(word).to_bytes(8, "little") for word in words)
