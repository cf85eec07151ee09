"""What machine code says of our kernels where none is loaded: a forecast, and a recording read again.

The file of an architecture is written by `python -m docs.write_kernel_facts`, and tests/compile holds it to
what NVRTC compiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from gputop.perf.gpu_specs import SM_LIMITS, arch_name
from gputop.perf.loop_mix import LoopMix
from gputop.plan.launch_shape import CodeFacts
from gputop.util.paths import PACKAGE

FOLDER = PACKAGE / "_data" / "kernel_facts"


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """Of one entry."""

    registers: int
    """Of a thread."""
    smem_bytes: int
    """Static shared memory of a block."""
    spill_bytes: int
    """Of a thread."""
    instructions: int
    """Of the whole kernel."""
    source: str
    """`kernels/gemm/11_warpgroup.cu:118`."""
    cubin: str
    """Digest of the machine code, as in the phase table."""
    code: CodeFacts
    loops: tuple[LoopMix, ...] = ()
    """Those with most multiply-adds first, then the longest."""


@dataclass(frozen=True, slots=True)
class KnownKernels:
    """Of all entries, by one compiler."""

    arch: str
    compiler: str
    """`NVRTC 13.0`: other versions make other code of the same source."""
    entries: Mapping[str, KernelFacts]
    kernels: Mapping[str, tuple[str, ...]]
    """The entries of each kernel of the registry."""


def file_of(arch: str) -> Path:
    """The file of an architecture (`sm_90`), whether there is one or not."""
    return FOLDER / f"{arch}.json"


@cache
def known_kernels(arch: str) -> KnownKernels:
    """Return what the file of an architecture (`sm_90`, `sm_90a`) holds; nothing where there is none."""
    name = arch_name(arch)
    file = file_of(name)
    if name not in SM_LIMITS or not file.is_file():
        return KnownKernels(name, "", {}, {})
    return msgspec.json.decode(file.read_bytes(), type=KnownKernels)
