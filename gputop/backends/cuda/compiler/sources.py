"""Where the CUDA sources lie that a backend compiles."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gputop.model.activation_functions import FUNCTIONS
from gputop.plan.types import Activation
from gputop.util import paths
from gputop.util.errors import UsageError

OF_PLANS = ("measure/fill.cu", "measure/row_determinism.cu")
"""What draws a plan's weights and tries its products, and so belongs to plans: all else there measures."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Where kernels lie: `folders` in the order in which they are searched; what is defined for them."""

    folders: tuple[Path, ...]
    macros: tuple[str, ...] = ()

    @classmethod
    def before_ours(cls, folder: Path | None = None, activation: Activation = "relu") -> Sources:
        """A user's folder, where there is one, and then our own, compiled for an activation function."""
        ours = paths.kernels_dir()
        macro = FUNCTIONS[activation].macro
        return cls((folder, ours) if folder and folder != ours else (ours,), (macro,) if macro else ())

    def find(self, name: str) -> Path:
        """UsageError when no folder has it."""
        for folder in self.folders:
            if (folder / name).is_file():
                return folder / name
        raise UsageError(f"Kernel source {name} is not below {' or '.join(map(str, self.folders))}.")


def is_replaceable(name: str) -> bool:
    """Return whether a user's own source may replace ours: those that measure ceilings are always ours."""
    return not name.startswith("measure/") or name in OF_PLANS
