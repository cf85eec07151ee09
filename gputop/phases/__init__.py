"""The bridge to the phases: one file each, in the checkout's `phases/`, beside this file in a wheel.

The files are real submodules `gputop.phases.*` either way.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from gputop.plan.types import Phase, Rung, Toggle
from gputop.util.paths import checkout

_root = checkout()
if _root is not None:
    __path__.append(str(_root / "phases"))


@cache
def phases() -> tuple[Phase, ...]:
    """The `PHASE` of every module that has one, in pass order."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    modules = (import_module(f"{__name__}.{name}") for name in names)
    found: list[Phase] = [module.PHASE for module in modules if hasattr(module, "PHASE")]
    return tuple(sorted(found, key=lambda phase: phase.order))


def rungs() -> tuple[Rung, ...]:
    """The ladder, each rung after the one it changes."""
    found: tuple[Rung, ...] = import_module(f"{__name__}.ladder").RUNGS
    return found


def toggles() -> tuple[Toggle, ...]:
    """The plan's fields that can be flipped by name."""
    found: tuple[Toggle, ...] = import_module(f"{__name__}.ladder").TOGGLES
    return found
