"""The least that launches which depend on each other can take: a bound that ranks what a floor does not.

A floor counts FLOPs and bytes alone. A launch that needs what the one before it wrote also has to be
started, to get its first operand and to show its last result, whatever its kernel does.
"""

from __future__ import annotations

from gputop.perf.roofline.peaks import Rates, largest, over
from gputop.plan.work import Work

LAUNCHES = (
    ("launch_empty_pdl", "first_load_pdl"),
    ("launch_empty_graph", "first_load_l2"),
)
"""Ceilings of a launch and its first load; the first pair that was measured is the cheapest way there is."""


def reach(work: Work, floor_s: float | None, rates: Rates, *, count: int, launches: int = 1) -> float | None:
    """Seconds of `count` instances of a phase, each of them at least `launches` launches (a fused kernel's
    phases share one).

    `work` and `floor_s` are of all instances. In one instance: a launch, its first load out of L2, the
    floor's own bound or the operands once through L2, whichever takes longer, and the last store. None where
    a ceiling is missing; never below the floor.
    """
    start_s = next(
        (
            launch_s + load_s
            for launch, load in LAUNCHES
            if (launch_s := rates.get(launch)) is not None and (load_s := rates.get(load)) is not None
        ),
        None,
    )
    store_s = rates.get("last_store")
    through_l2_s = over(work.weight_bytes + work.in_bytes + work.out_bytes, rates.get("l2_read"))
    if start_s is None or store_s is None or floor_s is None:
        return None
    moved_s = largest(floor_s, through_l2_s) or 0.0
    return count * launches * (start_s + store_s) + moved_s
