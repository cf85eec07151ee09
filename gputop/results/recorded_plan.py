"""A plan as a recording keeps it, in words, and the plan that they mean.

A file outlives the rungs and kernels of the version that wrote it: a recorded plan is known by its fields and
its dispatch as they were, and not by what its rung means today.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gputop.phases import toggles
from gputop.plan.choices import PlanView
from gputop.plan.plan_string import parse_choice, parse_word, respelled
from gputop.plan.toggles import toggle_value
from gputop.plan.types import Math, Plan


@dataclass(frozen=True, slots=True)
class RecordedToggle:
    """A toggle as it stood."""

    name: str
    value: str
    refused: tuple[tuple[str, str], ...] = ()
    """Value -> why it could not hold there."""


@dataclass(frozen=True, slots=True)
class RecordedSite:
    """A dispatch entry as it stood."""

    site: str
    kernel: str


@dataclass(frozen=True, slots=True)
class RecordedPlan:
    """A plan as it resolved."""

    word: str
    rung: str
    batch: int
    math: Math
    toggles: tuple[RecordedToggle, ...]
    sites: tuple[RecordedSite, ...]
    need_bytes: int | None = None


def recorded(view: PlanView) -> RecordedPlan:
    """Return a plan as a recording keeps it."""
    return RecordedPlan(
        view.word,
        view.rung,
        view.batch,
        view.math,
        tuple(RecordedToggle(toggle.name, toggle.value, toggle.refused) for toggle in view.toggles),
        tuple(RecordedSite(site, str(choice)) for site, choice in view.plan.dispatch),
        view.need_bytes,
    )


def plan_of(kept: RecordedPlan, backend: str) -> Plan:
    """Return the plan that was recorded on a backend.

    Raise UsageError for a plan string, a kernel or a value that can't be read. A toggle that this version
    does not know is left out.
    """
    values = {toggle.name: toggle.value for toggle in kept.toggles}
    known = {
        toggle.field: toggle_value(toggle, values[toggle.name])
        for toggle in toggles()
        if toggle.name in values
    }
    dispatch = tuple((entry.site, parse_choice(entry.kernel)) for entry in kept.sites)
    # A framework's pass has no sites of ours, and its rung is named as it is.
    peer = "" if dispatch else kept.rung
    return Plan(backend, parse_word(kept.word), dispatch, **known, peer=peer)


def respelled_plan(kept: RecordedPlan) -> RecordedPlan:
    """Return a recorded plan with kernels as they are named today."""
    return replace(
        kept,
        word=respelled(kept.word),
        toggles=tuple(
            replace(toggle, refused=tuple((value, respelled(why)) for value, why in toggle.refused))
            for toggle in kept.toggles
        ),
        sites=tuple(replace(site, kernel=respelled(site.kernel)) for site in kept.sites),
    )


def refused_values(kept: RecordedPlan) -> dict[tuple[str, str], str]:
    """Return each toggle and value that could not hold on a recorded plan, with why."""
    return {(toggle.name, value): why for toggle in kept.toggles for value, why in toggle.refused}
