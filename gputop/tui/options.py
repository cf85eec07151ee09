"""What the screen is started with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gputop.plan.types import PlanRequest, Workload


@dataclass(frozen=True, slots=True)
class Options:
    """The plan and measuring options of the command line, as the screen needs them."""

    backend: str
    workload: Workload
    device: str | None = None
    batch: int | None = None
    """None: the workload's own."""
    request: PlanRequest | None = None
    """The plan to open on; None: the backend's default rung."""
    kernels_dir: str | None = None
    seconds: float | None = None
    """Budget of one window; None: the worker's own."""
    remote: str | None = None
    """Host whose worker measures; None: this machine."""

    theme: Literal["dark", "light"] | None = None
    """None: the theme of the last time."""

    @property
    def names_plan(self) -> bool:
        """Return whether the user named a plan, which no other may replace."""
        return self.request is not None or self.batch is not None
