"""Backends by name. Each is loaded only when chosen, so that none is imported by another's user."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from gputop.util.errors import UsageError, unknown_name

if TYPE_CHECKING:
    from gputop.backends.base import BackendModule
    from gputop.plan.types import Workload
    from gputop.planner.own_kernels.folder import OwnFolder

MODULES = {
    "cuda": "gputop.backends.cuda.availability",
    "cpu": "gputop.backends.cpu.backend",
}
COMPILES = "cuda"
"""The backend that compiles CUDA sources."""
MOST_TOLD = 3
"""Broken records that one sentence names."""


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


def check_sources(name: str, folder: str | None) -> None:
    """Raise UsageError if nothing in a folder of kernels would be used by a backend; `auto` is any."""
    if folder is None:
        return
    if name == "replay":
        raise UsageError(
            f"--kernels {folder} would change nothing: a recording was measured already. Leave it out."
        )
    from gputop import phases
    from gputop.backends.cuda.compiler.sources import is_replaceable
    from gputop.planner.own_kernels.folder import read_folder

    own = read_folder(Path(folder), phases.kernels())
    backends = {kernel.backend for kernel in own.kernels}
    if any(map(is_replaceable, own.replaced)):
        backends.add(COMPILES)
    if name in backends or (name == "auto" and backends):
        return
    why = f"The {name} backend runs no CUDA" if backends else _nothing_in(own)
    other = f", or measure with --backend {' or '.join(sorted(backends))}" if backends else ""
    raise UsageError(f"--kernels {folder} would change nothing: {why}. Leave it out{other}.")


def _nothing_in(own: OwnFolder) -> str:
    """Why no kernel of a folder can be used."""
    if own.broken:
        told = "; ".join(f"{file}: {why}" for file, why in list(own.broken.items())[:MOST_TOLD])
        more = f"; and {len(own.broken) - MOST_TOLD} more" if len(own.broken) > MOST_TOLD else ""
        return f"{told}{more}"
    if own.replaced:
        return "it holds none but kernels that measure, and those are gputop's own always"
    return "it holds no record of a kernel (.toml), and nothing at a path of ours, as gemm/01_naive.cu"


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
