"""Why a plan can't run on this device with what is installed, known before anything is prepared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gputop.backends.cuda.compiler.nvrtc import arch_of, read_text
from gputop.backends.cuda.compiler.sources import Sources
from gputop.backends.cuda.packages import NVMATH, TORCH, Package
from gputop.backends.cuda.runtime.launch import FIRST_WITH_PDL
from gputop.plan.types import Kernel, Plan

PEER_PACKAGES: Mapping[str, Package] = {
    "torch-eager": TORCH,
    "torch-compile": TORCH,
    "torch-max-autotune": TORCH,
}
LIBRARY_PACKAGES: Mapping[str, Package] = {"cublaslt": NVMATH}


def refusal(plan: Plan, kernels: Iterable[Kernel], arch: str, sources: Sources) -> str | None:
    """Return why a plan of these kernels can't run on compute capability `arch` (`90`); None if it can."""
    if plan.peer in PEER_PACKAGES:
        return PEER_PACKAGES[plan.peer].missing()
    if plan.pdl and int(arch) < FIRST_WITH_PDL:
        return (
            f"pdl=on: programmatic dependent launch exists from sm_{FIRST_WITH_PDL} on, and this device is "
            f"sm_{arch}; pdl=off runs here."
        )
    for kernel in kernels:
        why = _of_kernel(kernel, arch, sources)
        if why is not None:
            return why
    return None


def _of_kernel(kernel: Kernel, arch: str, sources: Sources) -> str | None:
    if kernel.library in LIBRARY_PACKAGES:
        return LIBRARY_PACKAGES[kernel.library].missing()
    if kernel.source and arch_of(read_text(sources.find(kernel.source)), arch) is None:
        return f"Kernel {kernel.name} ({kernel.source}) is written for another architecture than sm_{arch}."
    return None
