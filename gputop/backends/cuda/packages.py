"""The packages that the backend and some plans need, and what to say if one is missing or there are two."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

from gputop.backends.cuda.runtime import driver
from gputop.util import install_hints
from gputop.util.install_hints import requirement_of


@dataclass(frozen=True, slots=True)
class Package:
    """What must be importable, and what to say and do where it is not."""

    module: str
    """Top level: of a submodule Python would import the whole package to answer."""
    wanting: str
    """What is so without it."""
    extra: str

    @property
    def sentence(self) -> str:
        """Return what does not work without the package, and the command that fixes it."""
        return f"{self.wanting}; {install_hints.extra(self.extra)}."

    def missing(self) -> str | None:
        """The sentence, or None where the package is here; it is not imported for that."""
        return self.sentence if importlib.util.find_spec(self.module) is None else None


TORCH = Package("torch", "PyTorch is not installed", "torch")
NVMATH = Package("nvmath", "cuBLASLt needs nvmath", "blaslt")

CUPYS = ("cupy", *(f"cupy-cuda{major}x" for major in range(11, 20)), "cupy-rocm-5-0", "cupy-rocm-7-0")
"""Packages that bring CuPy for a Python that gputop runs on: one for each major CUDA."""


def cupy_distributions() -> tuple[str, ...]:
    """Return the names of the installed packages that bring CuPy.

    Asks for each name: a list of all that is installed would take a quarter of a second to read.
    """
    return tuple(name for name in CUPYS if install_hints.is_recorded(name))


def several_cupys() -> tuple[str, str] | None:
    """Return what is wrong if more than one package brings CuPy, and the command that repairs it.

    They write the same files: the last one installed overwrites the others', and removing one removes what is
    left of all.
    """
    found = cupy_distributions()
    if len(found) < 2:
        return None
    fitting = f"cupy-{cuda_extra()}x"
    what = f"{' and '.join(found)} are installed, and each overwrites the other's files"
    return what, f"{install_hints.uninstall(*found)} && {install_hints.install(requirement_of(fitting))}"


def cupy_fix() -> str:
    """Return the command that makes CuPy importable, whatever is recorded of it."""
    if (several := several_cupys()) is not None:
        return several[1]
    found = cupy_distributions()
    return install_hints.install_again(found[0]) if found else install_hints.extra(cuda_extra())


def cuda_extra() -> str:
    """Return the extra whose packages fit the driver: `cuda13`, or `cuda12` on an older one."""
    return driver.fitting_extra(driver.version())
