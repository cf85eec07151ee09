"""What a run of the proofs measures on, and how long it may take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from benchmarks.proofs.subjects import SUBJECTS, Subjects
from gputop.backends.base import Say
from gputop.plan.types import Workload
from gputop.session.session import Session


@dataclass(frozen=True, slots=True)
class Setting:
    """One part's device, model and time."""

    backend: str
    workload: Workload
    device: str | None
    ends: float
    """By `perf_counter`: no window begins later."""
    say: Say

    @property
    def subjects(self) -> Subjects:
        return SUBJECTS[self.backend]

    @property
    def left_s(self) -> float:
        return max(0.0, self.ends - perf_counter())

    def over(self) -> bool:
        """Return whether the time is over."""
        return perf_counter() >= self.ends

    @contextmanager
    def session(self, kernels: Path | None = None) -> Iterator[Session]:
        """A session in this process; it gives its memory back."""
        folder = str(kernels) if kernels else None
        session = Session.open(self.backend, self.workload, self.device, folder, self.say)
        try:
            yield session
        finally:
            session.close()
