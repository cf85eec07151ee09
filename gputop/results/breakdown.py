"""Passes of different make set side by side: by what their kernels do, not by phase.

Ours are divided by phase, so that what a product's store does (bias, ReLU, residual) counts as product; a
framework's by the names of its kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum

from gputop.plan.types import KINDS, KernelKind
from gputop.results.records import Breakdown, Row
from gputop.util import units

NO_SPLIT = (
    "its kernels were not timed apart: a framework's pass needs CUPTI for that,"
    " which `gputop doctor` says how to add"
)


@dataclass(frozen=True, slots=True)
class Class:
    """One of the times that a pass is divided into."""

    field: str
    """Of `Breakdown`."""
    name: str
    side: str
    """Whether faster kernels would lower it, or better organisation: fewer launches, more fused."""


CLASSES = (
    Class("gemm_s", "gemm", "kernels"),
    Class("attention_s", "attention", "kernels"),
    Class("pointwise_s", "pointwise", "organisation"),
    Class("other_s", "other", "kernels of unknown kind"),
    Class("gap_s", "gaps", "organisation"),
)


def kind_of(kinds: Iterable[KernelKind]) -> KernelKind:
    """Return the kind of a kernel of several phases: a product or attention decides, both together are
    `other`.
    """
    weighty = set(kinds) - {"pointwise"}
    if len(weighty) > 1:
        return "other"
    return weighty.pop() if weighty else "pointwise"


def from_parts(
    parts: Iterable[tuple[str | None, float | None]],
    gap_s: float | None,
    launches: int | None,
    others: Sequence[str] = (),
) -> Breakdown:
    """`parts`: (kind, seconds) of each site. A kind of which one site has no time is unknown as a whole."""
    times: dict[str, list[float | None]] = {kind: [] for kind in KINDS}
    for kind, time_s in parts:
        times[kind if kind in KINDS else "other"].append(time_s)
    if not any(time_s is not None for of_kind in times.values() for time_s in of_kind):
        return Breakdown(launches=launches, status=NO_SPLIT)
    sums = {kind: _sum(of_kind) for kind, of_kind in times.items()}
    return Breakdown(
        launches=launches,
        gemm_s=sums["gemm"],
        attention_s=sums["attention"],
        pointwise_s=sums["pointwise"],
        other_s=sums["other"],
        gap_s=gap_s,
        others=tuple(others),
    )


def from_rows(rows: Iterable[Row]) -> Breakdown:
    """The phase table of a pass, its totals included."""
    by_phase = {row.phase: row for row in rows}
    sites = [row for row in by_phase.values() if row.kind is not None]
    gaps, device = by_phase.get("gaps"), by_phase.get("device")
    return from_parts(
        ((row.kind, row.time_s) for row in sites),
        gaps.time_s if gaps else None,
        device.launches if device else None,
        [
            row.library_kernel_demangled or row.library_kernel or row.phase
            for row in sites
            if row.kind == "other"
        ],
    )


def known(breakdown: Breakdown) -> bool:
    """Return whether any of its times is known."""
    return any(getattr(breakdown, part.field) is not None for part in CLASSES)


def total_s(breakdown: Breakdown) -> float | None:
    """Add all classes; None if one is unknown."""
    return _sum([getattr(breakdown, part.field) for part in CLASSES])


def difference_s(a: Breakdown, b: Breakdown, part: Class) -> float | None:
    """b - a."""
    a_s, b_s = getattr(a, part.field), getattr(b, part.field)
    return None if a_s is None or b_s is None else b_s - a_s


def explain_difference(name_a: str, a: Breakdown, name_b: str, b: Breakdown) -> str:
    """Return a sentence: how far apart the two are, and which class holds most of that."""
    differences = {part: difference_s(a, b, part) for part in CLASSES}
    known_s = {part: value for part, value in differences.items() if value is not None}
    missing = [part.name for part, value in differences.items() if value is None]
    if not known_s:
        return "Where the difference lies is not known: not both passes are divided."
    whole_s = fsum(known_s.values())
    if whole_s == 0:
        return f"{name_a} and {name_b} take the same time by their kernels."
    slower, faster = (name_b, name_a) if whole_s > 0 else (name_a, name_b)
    toward = {part: value / whole_s for part, value in known_s.items() if value / whole_s > 0}
    ranked = sorted(toward, key=lambda part: -toward[part])
    by_side = {side: fsum(toward[part] for part in toward if part.side == side) for side in _sides(toward)}
    side = max(by_side, key=lambda name: by_side[name])
    shares = ", ".join(f"{units.signed_seconds(abs(known_s[part]))} {part.name}" for part in ranked)
    back = [part for part in known_s if part not in toward and known_s[part]]
    given = ", ".join(f"{units.seconds(abs(known_s[part]))} {part.name}" for part in back)
    sentence = (
        f"{slower} takes {units.seconds(abs(whole_s))} more than {faster}: {shares}"
        f"{f', less {given}' if given else ''}. Most of it is {ranked[0].name}; by side it lies in {side}."
    )
    return f"{sentence} Not known of both: {', '.join(missing)}." if missing else sentence


def _sides(parts: Iterable[Class]) -> list[str]:
    return list(dict.fromkeys(part.side for part in parts))


def _sum(values: Sequence[float | None]) -> float | None:
    """Add; None if one is unknown, 0 if there is none to add."""
    known_s = [value for value in values if value is not None]
    return fsum(known_s) if len(known_s) == len(values) else None
