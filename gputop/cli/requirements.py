"""What `--require` asks of a measurement: held, not held, or not known. For scripts and CI."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from math import exp
from typing import TYPE_CHECKING, Literal

from gputop.util import units
from gputop.util.errors import RequirementFailed, RequirementUnresolved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gputop.results.records import Comparison, Delta, Row

VerdictRequirement = Literal["faster", "not-slower"]
VERDICT_REQUIREMENTS: tuple[VerdictRequirement, ...] = ("faster", "not-slower")
BOUNDS = ("floor", "reach")
"""Lower bounds of a pass that a share can be required of."""


@dataclass(frozen=True, slots=True)
class ShareRequirement:
    """The pass takes at most 1 / `share` of a lower bound."""

    bound: str
    share: float


def verdict_requirement(text: str) -> VerdictRequirement:
    """Parse `--require` of compare; argparse turns the error into a sentence."""
    for requirement in VERDICT_REQUIREMENTS:
        if text == requirement:
            return requirement
    raise argparse.ArgumentTypeError(
        f"{text!r} is no requirement; allowed: {', '.join(VERDICT_REQUIREMENTS)}"
    )


def share_requirement(text: str) -> ShareRequirement:
    """Parse `--require` of run: `floor=0.5` or `reach=0.5`."""
    bound, _, value = text.partition("=")
    try:
        share = float(value)
    except ValueError:
        share = 0.0
    if bound not in BOUNDS or not 0 < share <= 1:
        allowed = " or ".join(f"{name}=SHARE" for name in BOUNDS)
        raise argparse.ArgumentTypeError(f"{text!r} is no requirement; allowed: {allowed}, SHARE from 0 to 1")
    return ShareRequirement(bound, share)


def require_verdict(requirement: VerdictRequirement, comparison: Comparison) -> None:
    """Raise RequirementFailed if the comparison contradicts it, RequirementUnresolved if it is open."""
    delta = comparison.get("device")
    if delta is None or delta.ratio is None:
        raise RequirementUnresolved(f"--require {requirement}: the two plans have no paired time.")
    said = f"{comparison.plan_a} -> {comparison.plan_b}: {_interval(delta)}, {delta.verdict}"
    if delta.verdict == "FASTER" or (requirement == "not-slower" and _is_not_slower(delta)):
        return
    if delta.verdict == "UNRESOLVED":
        more = f" ({delta.status})" if delta.status else ""
        raise RequirementUnresolved(
            f"--require {requirement} is not decided: {said}{more}. More windows narrow it: --windows N."
        )
    raise RequirementFailed(f"--require {requirement} does not hold: {said}.")


def _is_not_slower(delta: Delta) -> bool:
    """Return whether the interval excludes a loss beyond what two copies of one plan differ by."""
    if delta.verdict == "SAME":
        return True
    return (
        delta.verdict == "UNRESOLVED" and delta.ratio_lo is not None and delta.ratio_lo > exp(-delta.aa_floor)
    )


def _interval(delta: Delta) -> str:
    return units.ratio_within(delta.ratio_interval)


def require_share(requirement: ShareRequirement, rows: Sequence[Row]) -> None:
    """Raise RequirementFailed if the pass is too slow, RequirementUnresolved if the bound is unknown."""
    device = next((row for row in reversed(rows) if row.phase == "device"), None)
    bound_s = getattr(device, f"{requirement.bound}_s", None)
    text = f"--require {requirement.bound}={requirement.share:g}"
    if device is None or not device.time_s or not bound_s:
        raise RequirementUnresolved(f"{text} is not decided: that bound of this pass is not known here.")
    share = bound_s / device.time_s
    if share < requirement.share:
        raise RequirementFailed(
            f"{text} does not hold: {device.plan} takes {units.seconds(device.time_s)}, and its "
            f"{requirement.bound} of {units.seconds(bound_s)} is {units.percent(share)} of that."
        )
