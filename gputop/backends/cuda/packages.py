"""The packages that some plans need besides the backend's own, and what to say where one is missing."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

from gputop.util import install_hints


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
        """What is so without it, and the command that mends it."""
        return f"{self.wanting}; {install_hints.extra(self.extra)}."

    def missing(self) -> str | None:
        """The sentence, or None where the package is here; it is not imported for that."""
        return self.sentence if importlib.util.find_spec(self.module) is None else None


TORCH = Package("torch", "PyTorch is not installed", "torch")
NVMATH = Package("nvmath", "cuBLASLt needs nvmath", "blaslt")
