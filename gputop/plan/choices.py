"""What a front end lists: plans as they stand, what can be changed on them, and why something can't.

Frozen records.
"""

from __future__ import annotations

from dataclasses import dataclass

from gputop.plan.types import KernelChoice, Math, Plan, PlanRequest


@dataclass(frozen=True, slots=True)
class ToggleView:
    """A toggle as it stands on a plan."""

    name: str
    value: str
    values: tuple[str, ...]
    refused: tuple[tuple[str, str], ...] = ()
    """value -> why it can't hold on this plan."""
    doc: str = ""


@dataclass(frozen=True, slots=True)
class SiteView:
    """A dispatch entry as it stands on a plan."""

    site: str
    kernel: KernelChoice
    others: tuple[str, ...] = ()
    """Other kernels that take such a task, in some number of parts. Whether the whole plan allows them is for
    `SiteChoices` to say."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A kernel that can serve a site, and the plan with it."""

    choice: KernelChoice
    request: PlanRequest
    fuses: bool = False
    """Whether it takes other sites along."""
    library: bool = False
    """Whether it is a vendor's library."""


@dataclass(frozen=True, slots=True)
class SiteChoices:
    """Every kernel of a site's phase, as the plan stands: what can serve it, and why the rest can't."""

    site: str
    kernel: KernelChoice
    candidates: tuple[Candidate, ...]
    """The plan's own kernel among them."""
    refused: tuple[tuple[str, str], ...] = ()
    """Kernel -> why it can't serve the site, in any number of parts."""

    @property
    def own(self) -> Candidate:
        """The candidate that the plan has."""
        return next(candidate for candidate in self.candidates if candidate.choice == self.kernel)


@dataclass(frozen=True, slots=True)
class PlanView:
    """A resolved plan as a front end shows it."""

    plan: Plan
    toggles: tuple[ToggleView, ...]
    sites: tuple[SiteView, ...]
    need_bytes: int | None = None

    @property
    def request(self) -> PlanRequest:
        """The fewest words that ask for it."""
        return self.plan.request

    @property
    def word(self) -> str:
        """Those words as a plan string."""
        return self.plan.word

    @property
    def rung(self) -> str:
        return self.plan.rung

    @property
    def batch(self) -> int:
        return self.plan.batch

    @property
    def math(self) -> Math:
        return self.plan.math


@dataclass(frozen=True, slots=True)
class RungView:
    """A rung as a front end lists it."""

    id: str
    number: int
    kind: str
    idea: str
    refused: str = ""
    """Why it can't run here; empty when it can."""
    before: str | None = None
    """The rung that it changes; None for the first."""
    on_request: bool = False
    """Measured only where it is asked for by name."""
