"""The packages that some plans need besides the backend's own, and what to say where one is missing."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Package:
    """What must be importable, and what to say and do where it is not."""

    module: str
    """Top level: of a submodule Python would import the whole package to answer."""
    sentence: str

    def missing(self) -> str | None:
        """The sentence, or None where the package is here; it is not imported for that."""
        return self.sentence if importlib.util.find_spec(self.module) is None else None


TORCH = Package("torch", "PyTorch is not installed; pip install 'gputop-roofline[torch]'.")
NVMATH = Package("nvmath", "cuBLASLt needs nvmath; pip install 'gputop-roofline[blaslt]'.")
