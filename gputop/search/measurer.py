"""What a search needs of a device: pairs of tables, each measured in one window on one device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gputop.plan.types import KernelChoice
from gputop.results.records import Delta
from gputop.search.menu import Table


@dataclass(frozen=True, slots=True)
class Trial:
    """One window to measure: the incumbent table, and the same with candidates in some of its cells."""

    number: int
    incumbent: Table
    candidates: Mapping[str, KernelChoice]
    """Site -> kernel. Empty: the incumbent beside a copy of itself."""

    @property
    def table(self) -> dict[str, KernelChoice]:
        """With the candidates in place."""
        return {**self.incumbent, **self.candidates}


@dataclass(frozen=True, slots=True)
class Paired:
    """One window in which both tables passed their gate. Deltas lead from incumbent to candidate."""

    trial: Trial
    time_utc: str
    window: int
    sites: Mapping[str, Delta]
    """Site -> its own delta, of every site that both tables time."""
    whole: Delta | None
    """Of the pass."""
    device: str = ""
    """Which of several devices measured it."""
    gate: str = ""
    """Of the candidate table."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a trial has no times: it does not compile, is wrong, faults or hangs."""

    trial: Trial
    reason: str


class Measurer(Protocol):
    """Measures on one device or on several.

    Both tables of a trial run alternately in one window of one device, each behind its gate. What fails is a
    `Fault`; only what ends the search is raised.
    """

    @property
    def width(self) -> int:
        """Trials that can run at once."""

    def run(self, trials: Sequence[Trial]) -> Iterator[Paired | Fault]:
        """Yield what came of each trial, in the order in which they end."""
