"""What the measuring process and the process of a separate plan tell each other, pickled over one pipe."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gputop.plan.types import Plan, View, Workload


@dataclass(frozen=True, slots=True)
class Prepare:
    """The first request: open the device and prepare the plan there."""

    workload: Workload
    device: str | None
    kernels_dir: Path
    plan: Plan


@dataclass(frozen=True, slots=True)
class Call:
    """Call a method of the prepared plan (`backends.base.Prepared`) with these arguments."""

    method: str
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Read:
    """Read a view of the newest trace."""

    view: View


@dataclass(frozen=True, slots=True)
class Said:
    """What a long step is doing; more answers follow."""

    text: str


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a request. Of a trace: its logits, the buffers stay where they are."""

    value: Any = None


@dataclass(frozen=True, slots=True)
class Failed:
    """A request failed; `error` is one that gputop explains itself."""

    error: Exception


Request = Prepare | Call | Read
Answer = Said | Done | Failed
