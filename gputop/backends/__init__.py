"""Backends by name. Each is loaded only when chosen, so that none is imported by another's user."""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING

from gputop.util.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from gputop.backends.base import BackendModule
    from gputop.plan.types import Workload

MODULES = {
    "cuda": "gputop.backends.cuda",
    "cpu": "gputop.backends.cpu",
}
COMPILES = "cuda"
"""The backend that compiles CUDA sources."""


def load(name: str) -> BackendModule:
    """The module of the backend `name`; UsageError for an unknown name."""
    if name not in MODULES:
        raise unknown_name("backend", name, ("auto", *MODULES))
    module: BackendModule = importlib.import_module(MODULES[name])
    return module


def choose(name: str) -> tuple[str, str]:
    """The backend that `name` stands for: `auto` is cuda where it is usable, else cpu.

    With it a sentence where a GPU is passed over, what it lacks and the command that mends it; else nothing.
    """
    if name != "auto":
        return name, ""
    lacking = load("cuda").available()
    if lacking is None:
        return "cuda", ""
    device = importlib.import_module("gputop.backends.cuda.runtime.driver").first_device()
    return "cpu", f"{device} is here and is not used: {lacking}" if device else ""


def check_sources(name: str, folder: object) -> None:
    """Raise UsageError if a folder of CUDA sources is given to a backend that compiles none."""
    if folder is not None and name != COMPILES:
        what = "A recording was measured already" if name == "replay" else f"The {name} backend runs no CUDA"
        raise UsageError(
            f"--kernels {folder} would change nothing: {what}. Leave it out, or measure with --backend cuda."
        )


def warm_up(name: str, workload: Workload, device: str | None) -> None:
    """Begin what opening a backend is going to wait for, while the rest of a session is loaded.

    A guess: where it is wrong, or what it needs is not here, the opening says so and nothing is lost.
    """
    if name == "auto":
        name = "cuda" if _installed("cupy") else "cpu"
    if name == "cuda":
        importlib.import_module("gputop.backends.cuda.runtime.device_warmup").begin(device)
    elif name == "cpu":
        importlib.import_module("gputop.backends.cpu.warmup").begin(workload)


def _installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None
