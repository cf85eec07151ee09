"""Why a plan can't run on this device with what is installed, known before anything is prepared."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass

from gputop.backends.cuda.bind import Sources
from gputop.backends.cuda.compile import arch_of, read_text
from gputop.spec import Kernel, Plan, Step


@dataclass(frozen=True, slots=True)
class Package:
    """What must be importable, and what to say and do where it is not."""

    module: str
    """Top level: of a submodule Python would import the whole package to answer."""
    sentence: str


TORCH = Package("torch", "PyTorch is not installed; pip install 'gputop-roofline[torch]'.")
PEER_PACKAGES: Mapping[str, Package] = {"torch-eager": TORCH, "torch-compile": TORCH}
LIBRARY_PACKAGES: Mapping[str, Package] = {
    "cublaslt": Package("nvmath", "cuBLASLt needs nvmath; pip install 'gputop-roofline[blaslt]'."),
}


def refusal(plan: Plan, steps: tuple[Step, ...], arch: str, sources: Sources) -> str | None:
    """None when it can run on a device of compute capability `arch` (`90`)."""
    if plan.peer in PEER_PACKAGES:
        return _missing(PEER_PACKAGES[plan.peer])
    for kernel in {step.kernel.name: step.kernel for step in steps}.values():
        why = _of_kernel(kernel, arch, sources)
        if why is not None:
            return why
    return None


def _of_kernel(kernel: Kernel, arch: str, sources: Sources) -> str | None:
    if kernel.library in LIBRARY_PACKAGES:
        return _missing(LIBRARY_PACKAGES[kernel.library])
    if int(arch) < kernel.min_arch:
        return f"Kernel {kernel.name} needs sm_{kernel.min_arch} or later; this device is sm_{arch}."
    if kernel.source and arch_of(read_text(sources.find(kernel.source), kernel.source), arch) is None:
        return f"Kernel {kernel.name} ({kernel.source}) is written for another architecture than sm_{arch}."
    return None


def _missing(package: Package) -> str | None:
    return package.sentence if importlib.util.find_spec(package.module) is None else None
