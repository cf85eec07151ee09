"""Backends by name. Each is loaded only when chosen, so that none is imported by another's user."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from gputop.errors import unknown_name

if TYPE_CHECKING:
    from gputop.backends.base import BackendModule

MODULES = {
    "cuda": "gputop.backends.cuda",
    "cpu": "gputop.backends.cpu",
}


def load(name: str) -> BackendModule:
    """The module of the backend `name`; BadInput for an unknown name."""
    if name not in MODULES:
        raise unknown_name("backend", name, ("auto", *MODULES))
    module: BackendModule = importlib.import_module(MODULES[name])
    return module
