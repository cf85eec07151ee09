"""The bridge to the phases: one file each, in the checkout's `phases/`, beside this file in a wheel.

The files are real submodules `gputop.phases.*` either way. A file of kernels' records that can't be loaded
costs its own kernels; without that of a phase there is no pass.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType

from gputop.plan.rungs import Rung, Toggle
from gputop.plan.types import Kernel, Phase
from gputop.util.errors import UsageError
from gputop.util.paths import checkout

OF_KERNELS = re.compile(r".*_(cpu|cuda)(_.*)?")
"""How a file is named that holds kernels' records, and no phase."""

_root = checkout()
if _root is not None:
    __path__.append(str(_root / "phases"))


@dataclass(frozen=True, slots=True)
class _Found:
    phases: tuple[Phase, ...]
    kernels: tuple[Kernel, ...]
    unread: Mapping[str, str]


def phases() -> tuple[Phase, ...]:
    """The `PHASE` of every module that has one, in pass order. UsageError if one can't be loaded."""
    return _found().phases


def kernels() -> tuple[Kernel, ...]:
    """The `KERNELS` of every module that has them, those of the first phases first."""
    return _found().kernels


def unread() -> Mapping[str, str]:
    """File of kernels that could not be loaded -> why."""
    return _found().unread


def rungs() -> tuple[Rung, ...]:
    """The ladder, each rung after the one it changes."""
    found: tuple[Rung, ...] = import_module(f"{__name__}.ladder").RUNGS
    return found


def toggles() -> tuple[Toggle, ...]:
    """The plan's fields that can be flipped by name."""
    found: tuple[Toggle, ...] = import_module(f"{__name__}.ladder").TOGGLES
    return found


@cache
def _found() -> _Found:
    phases: list[Phase] = []
    kernels: list[Kernel] = []
    unread: dict[str, str] = {}
    for name in sorted(module.name for module in pkgutil.iter_modules(__path__)):
        try:
            module = import_module(f"{__name__}.{name}")
            kernels += _kernels_of(module)
        except Exception as error:
            if OF_KERNELS.fullmatch(name):
                unread[f"phases/{name}.py"] = first_line(error)
                continue
            if isinstance(error, ModuleNotFoundError):
                # A package that gputop needs: whoever asks says how it is installed.
                raise
            raise UsageError(f"phases/{name}.py can't be loaded: {first_line(error)}.") from error
        if isinstance(phase := getattr(module, "PHASE", None), Phase):
            phases.append(phase)
    phases.sort(key=lambda phase: phase.order)
    places = {phase.name: place for place, phase in enumerate(phases)}
    kernels.sort(key=lambda kernel: min((places.get(name, len(places)) for name in kernel.covers), default=0))
    return _Found(tuple(phases), tuple(kernels), unread)


def _kernels_of(module: ModuleType) -> Iterator[Kernel]:
    for kernel in getattr(module, "KERNELS", ()):
        if not isinstance(kernel, Kernel):
            raise TypeError(f"KERNELS holds {kernel!r}, which is no Kernel")
        yield kernel


def first_line(error: BaseException) -> str:
    """`KeyError: 'gemm_new'`: an exception in a line."""
    text = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
