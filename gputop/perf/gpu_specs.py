"""What is fixed by an architecture or a card: SM limits, arithmetic width, datasheet figures.

Nothing here is measured. A figure that no vendor document states is None.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gputop.util.errors import UsageError, unknown_name

KIB = 1024
MIB = 1024 * KIB
GB_S = 1e9
TFLOPS = 1e12


@dataclass(frozen=True, slots=True)
class SmLimits:
    """What one streaming multiprocessor of a compute capability can hold (CUDA programming guide)."""

    arch: str
    warps_per_sm: int
    blocks_per_sm: int
    smem_per_sm_bytes: int
    smem_per_block_optin_bytes: int
    """Largest a block can have after opting in."""
    barriers_per_sm: int | None
    """Named barriers to share out among blocks; None where they don't limit occupancy."""
    max_cluster: int
    """Blocks; above 8 only with the non-portable attribute. 1: the architecture has no clusters."""
    warp_size: int = 32
    threads_per_block: int = 1024
    registers_per_sm: int = 65536
    registers_per_block: int = 65536
    registers_per_thread: int = 255
    register_unit: int = 256
    """A warp's registers are rounded up to a multiple of it."""
    warp_unit: int = 4
    """A block's warps are rounded up to a multiple of it when its register need is checked."""
    smem_unit_bytes: int = 128
    smem_reserved_bytes: int = 1 * KIB
    """The driver's own share of every block's shared memory."""
    schedulers: int = 4
    """Warp instructions that an SM can issue in a cycle, and partitions of its register file."""


SM_LIMITS: Mapping[str, SmLimits] = {
    record.arch: record
    for record in (
        #        arch    warps blocks smem per SM  opt-in  barriers cluster
        SmLimits("sm_80", 64, 32, 164 * KIB, 163 * KIB, None, 1),
        SmLimits("sm_86", 48, 16, 100 * KIB, 99 * KIB, None, 1),
        SmLimits("sm_87", 48, 16, 164 * KIB, 163 * KIB, None, 1),
        SmLimits("sm_89", 48, 24, 100 * KIB, 99 * KIB, None, 1),
        SmLimits("sm_90", 64, 32, 228 * KIB, 227 * KIB, 64, 16),
        SmLimits("sm_100", 64, 32, 228 * KIB, 227 * KIB, 64, 16),
        SmLimits("sm_103", 64, 32, 228 * KIB, 227 * KIB, 32, 8),
        SmLimits("sm_120", 48, 24, 100 * KIB, 99 * KIB, 24, 8),
    )
}


def arch_name(arch: str | int) -> str:
    """`sm_90` from 90, `sm_90`, `sm_90a`, `compute_90` or `9.0`; anything else comes back as text."""
    text = str(arch).strip().lower()
    if match := re.fullmatch(r"(?:sm_|compute_)?(\d{2,3})[af]?", text):
        return f"sm_{match[1]}"
    if match := re.fullmatch(r"(\d{1,2})\.(\d)", text):
        return f"sm_{match[1]}{match[2]}"
    return text


def limits(arch: str | int) -> SmLimits:
    """SM limits of a compute capability; UsageError names the ones that are known."""
    name = arch_name(arch)
    if name not in SM_LIMITS:
        raise UsageError(f"The limits of architecture {arch!r} are not known. Known: {', '.join(SM_LIMITS)}.")
    return SM_LIMITS[name]


FLOPS_PER_SM_CLOCK: Mapping[str, Mapping[str, int]] = {
    "sm_80": {"fp32": 128, "tf32_mma": 1024, "bf16_mma": 2048},
    "sm_86": {"fp32": 256, "tf32_mma": 512, "bf16_mma": 1024},
    "sm_87": {"fp32": 256},
    "sm_89": {"fp32": 256, "tf32_mma": 512, "bf16_mma": 1024},
    "sm_90": {"fp32": 256, "tf32_mma": 2048, "bf16_mma": 4096, "tf32_wgmma": 2048, "bf16_wgmma": 4096},
    "sm_100": {"fp32": 256, "tf32_tcgen05": 4096, "bf16_tcgen05": 8192},
    "sm_103": {"fp32": 256, "tf32_tcgen05": 4096, "bf16_tcgen05": 8192},
    "sm_120": {"fp32": 256, "tf32_mma": 512, "bf16_mma": 1024},
}
"""FLOPs (a multiply-add is two) that one SM retires in a cycle, dense, fp32 accumulate, by pipe."""

SANE_SHARE = 0.9
"""A probe that works reaches this share of what the hardware's width allows at its clock."""

SANE_SHARE_BELOW: Mapping[tuple[str, str], float] = {
    ("sm_90", "tf32_mma"): 0.55,
    ("sm_90", "bf16_mma"): 0.55,
}
"""Paths that can't fill their pipe: on sm_90 mma.sync reaches some 60 % of what wgmma does."""

ABOVE_WIDTH = 1.02
"""Clock readings are this exact; a probe beyond it did less than it counted."""

BYTES_PER_SM_CLOCK = 256
"""No SM moves more in a cycle: what its L1 gives a warp, 128 bytes, and as many out."""


def gated_tensor_rate(device_name: str) -> bool:
    """Return whether tensor cores run at half rate with fp32 accumulate, as on every GeForce card."""
    return "geforce" in device_name.lower()


def flops_per_sm_clock(arch: str | int, pipe: str, *, gated: bool = False) -> int | None:
    """FLOPs an SM retires in one cycle on `pipe`; None where the pipe or its width is not known.

    `gated` halves the tensor pipes: see `gated_tensor_rate`.
    """
    rate = FLOPS_PER_SM_CLOCK.get(arch_name(arch), {}).get(pipe)
    if rate is not None and gated and pipe != "fp32":
        return rate // 2
    return rate


def pipe_limit(
    arch: str | int, pipe: str, sm_count: int, clock_hz: float | None, device_name: str = ""
) -> float | None:
    """FLOP/s that SMs x width x clock allow; None where width or clock is unknown."""
    rate = flops_per_sm_clock(arch, pipe, gated=gated_tensor_rate(device_name))
    return None if rate is None or clock_hz is None else sm_count * rate * clock_hz


def ceiling_status(value: float, limit: float | None, arch: str | int, pipe: str) -> str:
    """`ok`, or why a measured FLOP/s is not to be trusted beside `pipe_limit`.

    `ok: ` and the share for a path that is known to reach no more of its pipe.
    """
    if limit is None:
        return "unchecked: the pipe's width or its clock is not known"
    share = value / limit
    least = SANE_SHARE_BELOW.get((arch_name(arch), pipe), SANE_SHARE)
    if share > ABOVE_WIDTH:
        return f"above the hardware: {share:.0%} of SMs x rate x clock, so clock or FLOP count is wrong"
    if share < least:
        return f"low: {share:.0%} of SMs x rate x clock, a working probe reaches {least:.0%}"
    if share < SANE_SHARE:
        return f"ok: {share:.0%} of SMs x rate x clock, which this path can't fill on {arch_name(arch)}"
    return "ok"


@dataclass(frozen=True, slots=True)
class GpuModel:
    """A card as its vendor describes it. `get` answers like measured ceilings do, from the datasheet."""

    name: str
    device_names: tuple[str, ...]
    """As the driver reports it, without the leading `NVIDIA`."""
    arch: str
    sm_count: int
    boost_hz: float | None
    dram_bytes_per_s: float
    l2_bytes: int | None
    fp32_flops: float
    tf32_flops: float | None
    """Dense, as are all tensor figures."""
    bf16_flops: float | None
    """With fp32 accumulate."""
    source: str

    @property
    def spellings(self) -> frozenset[str]:
        """Return all its names, case folded."""
        return frozenset(name.casefold() for name in (self.name, *self.device_names))

    def get(self, ceiling: str) -> float | None:
        """The datasheet's figure for a ceiling (`dram_read`, `fp32`, `tf32_mma`, ...), B/s or FLOP/s.

        Tensor figures stand for the fastest instruction path the architecture has.
        """
        figures = {"dram_read": self.dram_bytes_per_s, "fp32": self.fp32_flops}
        path = TENSOR_PATH[self.arch]
        figures |= {
            f"{math}_{path}": flops
            for math, flops in (("tf32", self.tf32_flops), ("bf16", self.bf16_flops))
            if flops is not None
        }
        return figures.get(ceiling)


TENSOR_PATH: Mapping[str, str] = {
    "sm_80": "mma",
    "sm_86": "mma",
    "sm_89": "mma",
    "sm_90": "wgmma",
    "sm_100": "tcgen05",
    "sm_120": "mma",
}
"""The instruction family whose rate a datasheet quotes."""

_A100 = "NVIDIA A100 datasheet"
_GA102 = "NVIDIA Ampere GA102 whitepaper"
_H100 = "NVIDIA H100 datasheet"
_H200 = "NVIDIA H200 datasheet; L2 as the driver reports it"

# fmt: off
MODELS: tuple[GpuModel, ...] = (
    # name, driver's names, architecture, SMs, boost clock, DRAM,
    # L2, fp32, TF32, bf16, source
    GpuModel("A100-40GB", ("A100-SXM4-40GB", "A100-PCIE-40GB"), "sm_80", 108, 1.410e9, 1555 * GB_S,
             40 * MIB, 19.5 * TFLOPS, 156 * TFLOPS, 312 * TFLOPS, _A100),
    GpuModel("A100-80GB-SXM", ("A100-SXM4-80GB",), "sm_80", 108, 1.410e9, 2039 * GB_S,
             40 * MIB, 19.5 * TFLOPS, 156 * TFLOPS, 312 * TFLOPS, _A100),
    GpuModel("A100-80GB-PCIe", ("A100 80GB PCIe",), "sm_80", 108, 1.410e9, 1935 * GB_S,
             40 * MIB, 19.5 * TFLOPS, 156 * TFLOPS, 312 * TFLOPS, _A100),
    GpuModel("A10", ("A10",), "sm_86", 72, 1.695e9, 600 * GB_S,
             6 * MIB, 31.2 * TFLOPS, 62.5 * TFLOPS, 125 * TFLOPS, "NVIDIA A10 datasheet"),
    GpuModel("RTX-3080-Ti", ("GeForce RTX 3080 Ti",), "sm_86", 80, 1.665e9, 912 * GB_S,
             6 * MIB, 34.1 * TFLOPS, 34.1 * TFLOPS, 68.2 * TFLOPS,
             f"{_GA102} (rates), 80 SMs at the card's boost clock"),
    GpuModel("RTX-3090", ("GeForce RTX 3090",), "sm_86", 82, 1.695e9, 936 * GB_S,
             6 * MIB, 35.6 * TFLOPS, 35.6 * TFLOPS, 71 * TFLOPS, _GA102),
    GpuModel("RTX-4090", ("GeForce RTX 4090",), "sm_89", 128, 2.520e9, 1008 * GB_S,
             72 * MIB, 82.6 * TFLOPS, 82.6 * TFLOPS, 165.2 * TFLOPS, "NVIDIA Ada AD102 whitepaper"),
    GpuModel("L4", ("L4",), "sm_89", 58, 2.040e9, 300 * GB_S,
             48 * MIB, 30.3 * TFLOPS, 60 * TFLOPS, 121 * TFLOPS, "NVIDIA L4 datasheet"),
    GpuModel("L40S", ("L40S",), "sm_89", 142, 2.520e9, 864 * GB_S,
             96 * MIB, 91.6 * TFLOPS, 183 * TFLOPS, 362 * TFLOPS, "NVIDIA L40S datasheet"),
    GpuModel("H100-SXM", ("H100 80GB HBM3",), "sm_90", 132, 1.980e9, 3350 * GB_S,
             50 * MIB, 67 * TFLOPS, 495 * TFLOPS, 990 * TFLOPS, _H100),
    GpuModel("H100-PCIe", ("H100 PCIe",), "sm_90", 114, 1.755e9, 2000 * GB_S,
             50 * MIB, 51 * TFLOPS, 378 * TFLOPS, 756 * TFLOPS, _H100),
    GpuModel("H200", ("H200",), "sm_90", 132, 1.980e9, 4800 * GB_S,
             60 * MIB, 67 * TFLOPS, 495 * TFLOPS, 990 * TFLOPS, _H200),
    GpuModel("B200", ("B200",), "sm_100", 148, None, 8000 * GB_S,
             None, 75 * TFLOPS, 1125 * TFLOPS, 2250 * TFLOPS, "NVIDIA HGX B200 datasheet / 8"),
    GpuModel("RTX-5090", ("GeForce RTX 5090",), "sm_120", 170, 2.407e9, 1792 * GB_S,
             96 * MIB, 104.8 * TFLOPS, 104.8 * TFLOPS, 209.5 * TFLOPS, "NVIDIA RTX Blackwell whitepaper"),
)
# fmt: on


def find_model(device_name: str) -> GpuModel | None:
    """The datasheet of the card the driver calls `device_name`; None where it is not in the table.

    Whole names only: a `RTX 4090 Laptop GPU` or an `RTX 3090 Ti` is another chip than its namesake.
    """
    wanted = device_name.strip().casefold().removeprefix("nvidia ")
    return next((entry for entry in MODELS if wanted in entry.spellings), None)


def model(name: str) -> GpuModel:
    """Return the model as `find_model` does; UsageError with the nearest name and the list if unknown."""
    found = find_model(name)
    if found is None:
        raise unknown_name("device model", name, (entry.name for entry in MODELS))
    return found
