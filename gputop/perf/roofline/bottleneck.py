"""How a measured time reads against floor and terms: what binds, and what is left to gain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import fsum

from gputop.perf.roofline.peaks import largest
from gputop.perf.roofline.terms import Terms

TERMS = ("compute", "dram", "l2", "l1", "issue", "latency", "launch")
SM_TERMS = frozenset({"compute", "l1", "issue"})
"""Terms counted as if all SMs were busy, which padding and idle SMs therefore stretch."""

SHAPE_BINDS_ABOVE = 2.0
EXPLAINS = 0.5
"""A term has to reach this share of the time, with the launch before it, before it is said to bind."""


@dataclass(frozen=True, slots=True)
class Binding:
    """The resource that sets the pace, and the one that comes next."""

    binds: str
    """One of `TERMS`, `shape`, or `unknown` where no term, the launch before it included, reaches half of
    the time."""
    runner_up: str | None
    """The next term; for `shape` and `unknown` the largest."""


@dataclass(frozen=True, slots=True)
class Part:
    """A share of the measured time."""

    name: str
    """`floor work shape l2 l1 issue latency launch unexplained`."""
    seconds: float | None
    """None where its term is unknown: what it takes is then in `unexplained`."""


@dataclass(frozen=True, slots=True)
class Left:
    """The measured time split from the floor upward; the known parts sum to it."""

    parts: tuple[Part, ...]
    note: str = ""
    """Says so when the model is above the time."""

    def get(self, name: str) -> float | None:
        """Seconds of a part, None where unknown."""
        return next((part.seconds for part in self.parts if part.name == name), None)


def without_gaps(terms: Terms, gap_s: float | None) -> Terms:
    """The terms as a time that leaves out gaps is held against them: the launch less what of it is a gap.

    What a launch costs is measured from one start to the next, so that it holds the gap before a kernel too.
    `gap_s` is all of the phase's; with None, where nothing sees gaps, the time holds them, and so does the
    launch.
    """
    if terms.launch_s is None or gap_s is None:
        return terms
    return replace(terms, launch_s=max(0.0, terms.launch_s - gap_s))


def shaped(terms: Terms) -> Mapping[str, float]:
    """The known terms as this grid makes them: those of the SMs stretched by idling."""
    padding = terms.padding if terms.padding else 1.0
    return _scaled(terms, (terms.shape_factor or padding) / padding)


def unshaped(terms: Terms) -> Mapping[str, float]:
    """The known terms as they would be with no padding and no idle SM."""
    return _scaled(terms, 1.0 / terms.padding if terms.padding else 1.0)


def modelled_s(terms: Terms) -> float | None:
    """What the model says of the time: the largest term as this grid makes it; None where none is known."""
    return largest(*shaped(terms).values())


def binding(terms: Terms, time_s: float | None) -> Binding:
    """The largest term binds; `shape` where the grid or the tiles decide; else `unknown`.

    `shape` binds when removing it changes which term is largest, or when its factor is above 2 and
    removing it lowers the model at all. `unknown`: the launch and the largest other term together stay
    below half of the time. With `time_s` None (nothing measured) nothing is `unknown` but a phase without
    terms. The terms are those `without_gaps`, where the time is.
    """
    known = shaped(terms)
    ranked = sorted(known, key=lambda name: -known[name])
    if not ranked:
        return Binding("unknown", None)
    top, top_s = ranked[0], known[ranked[0]]
    if time_s is not None and _explained_s(known) < EXPLAINS * time_s:
        return Binding("unknown", top)
    bare = unshaped(terms)
    top_bare_s = max(bare.values())
    moved = bare[top] < top_bare_s
    if moved or ((terms.shape_factor or 1.0) > SHAPE_BINDS_ABOVE and top_bare_s < top_s):
        return Binding("shape", top)
    return Binding(top, ranked[1] if len(ranked) > 1 else None)


def what_is_left(floor_s: float | None, terms: Terms, time_s: float | None) -> Left:
    """The time from the floor upward, each part how much the model rises when its term joins.

    The model is the largest of what has joined. `work` is a slower pipe than the math permits,
    masked FLOPs and DRAM bytes read again; `shape` is padding and idle SMs; then the terms in
    order, and `unexplained`, which is negative where the model is above the time. Without a floor
    or a time nothing is explained, and `unexplained` is None. The terms are those `without_gaps`, where
    the time is.
    """
    bare, stretched = unshaped(terms), shaped(terms)
    compute_s = bare.get("compute")
    joining: list[tuple[str, float | None]] = [
        ("work", None if compute_s is None else largest(compute_s, bare.get("dram"))),
        ("shape", None if terms.shape_factor is None else stretched.get("compute")),
        *((name, stretched.get(name)) for name in TERMS[2:]),
    ]
    parts = [Part("floor", floor_s)]
    model_s, by = floor_s, "floor"
    for name, term_s in joining:
        if model_s is None or term_s is None:
            parts.append(Part(name, None))
            continue
        parts.append(Part(name, max(0.0, term_s - model_s)))
        if term_s > model_s:
            model_s, by = term_s, name
    if model_s is None or time_s is None:
        return Left((*parts, Part("unexplained", None)))
    unexplained_s = time_s - fsum(part.seconds for part in parts if part.seconds is not None)
    over = f"modelled at {model_s / time_s:.2f} times what was measured, by {by} alone" if time_s > 0 else ""
    return Left((*parts, Part("unexplained", unexplained_s)), over if time_s < model_s else "")


def _explained_s(known: Mapping[str, float]) -> float:
    """A kernel's start overlaps with nothing else of it, while the other terms may overlap each other."""
    others = (seconds for name, seconds in known.items() if name != "launch")
    return known.get("launch", 0.0) + max(others, default=0.0)


def _scaled(terms: Terms, factor: float) -> dict[str, float]:
    return {
        name: seconds * (factor if name in SM_TERMS else 1.0)
        for name in TERMS
        if (seconds := _seconds(terms, name)) is not None
    }


def _seconds(terms: Terms, name: str) -> float | None:
    seconds: float | None = getattr(terms, f"{name}_s")
    return seconds
