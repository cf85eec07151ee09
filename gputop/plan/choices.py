"""Plans as a front end lists them: what can be chosen, and why something can't. Frozen records."""

from __future__ import annotations

from dataclasses import dataclass


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
    kernel: str
    candidates: tuple[str, ...]
    refused: tuple[tuple[str, str], ...] = ()
    """kernel -> why it can't serve this site on this plan."""
    fusing: tuple[str, ...] = ()
    """Candidates that take other sites along."""
    library: tuple[str, ...] = ()
    """Candidates that are a vendor's library."""


@dataclass(frozen=True, slots=True)
class PlanView:
    """A resolved plan as a front end shows it."""

    word: str
    rung: str
    batch: int
    math: str
    toggles: tuple[ToggleView, ...]
    sites: tuple[SiteView, ...]
    need_bytes: int | None = None


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
