"""Probes one by one: one that fails, as on headers of another CUDA, costs its own ceilings and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from gputop.backends.base import Say
from gputop.results.records import Ceiling
from gputop.util.errors import DeviceLost, GputopError

Probe = Callable[[], Ceiling | list[Ceiling]]


@dataclass(frozen=True, slots=True)
class ProbeStep:
    """One probe."""

    name: str
    """The ceiling that it gives, or what several of them have in common."""
    probe: Probe


ProbeGroup = tuple[str, Iterable[ProbeStep]]
"""What is said while its steps run, `DRAM and L2`, and the steps. An iterator may make what they share."""


def run_steps(groups: Iterable[ProbeGroup], say: Say) -> tuple[tuple[Ceiling, ...], tuple[str, ...]]:
    """Return what was measured, and what was not with why. DeviceLost ends it: nothing more can be run."""
    items: list[Ceiling] = []
    missing: list[str] = []
    for title, steps in groups:
        say(f"measuring {title}")
        for name, probe in _each(title, steps):
            try:
                found = probe()
            except DeviceLost:
                raise
            except GputopError as error:
                missing.append(f"{name}: {error}")
            else:
                items += [found] if isinstance(found, Ceiling) else found
    return tuple(items), tuple(missing)


def _each(title: str, steps: Iterable[ProbeStep]) -> Iterator[tuple[str, Probe]]:
    """The steps; if making what they share fails, one step more that says so."""
    try:
        for step in steps:
            yield step.name, step.probe
    except DeviceLost:
        raise
    except GputopError as error:
        yield title, _raising(error)


def _raising(error: GputopError) -> Probe:
    def probe() -> Ceiling:
        raise error

    return probe
