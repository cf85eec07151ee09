"""The line of advice where no flip is offered: what binds the worst site, and what can't be known of it."""

from __future__ import annotations

from typing import Any

from gputop.perf.roofline import Floor, LaunchTerms, SiteTerms
from gputop.plan.types import KernelChoice
from gputop.plan.work import NOTHING
from gputop.planner.resolver import Resolver
from gputop.results.records import SCHEMA_PHASES, Row
from gputop.session.advice import advise
from gputop.session.cost_model import SiteModel


def row(phase: str, **known: Any) -> Row:
    return Row(
        schema=SCHEMA_PHASES,
        time_utc="t",
        window=1,
        samples=3,
        backend="cuda",
        device="a device",
        driver=None,
        workload="gpt2-small",
        batch=1,
        seq=128,
        rung="graph",
        plan="graph",
        phase=phase,
        **known,
    )


DEVICE = row("device", time_s=100e-6)
WORST: dict[str, Any] = {"time_s": 60e-6, "floor_s": 10e-6, "binds": "unknown", "runner_up": "dram"}


def test_of_a_site_that_is_mostly_unexplained_the_largest_term_is_named() -> None:
    line = advise((row("w2", kernel="gemm_tiled", **WORST), DEVICE), (), ())
    assert "w2, 60.0 µs, 6.00 times its floor" in line
    assert "more than half of it is unexplained (dram comes nearest)" in line


def test_what_binds_is_said_with_its_share_and_reach_before_the_floor() -> None:
    known = {**WORST, "binds": "l2", "binds_share": 0.4, "reach_s": 20e-6}
    line = advise((row("w2", kernel="gemm_tiled", **known), DEVICE), (), ())
    assert "w2, 60.0 µs, 3.00 times its reach; l2 40 % binds." in line


def launched(launch_s: float) -> SiteModel:
    """A site of which nothing but its launches is known."""
    kernel = Resolver.load().kernel("layernorm_warp_per_row")
    floor = Floor(None, 1e-6, 1e-6, "dram")
    return SiteModel(
        "ln1",
        ("ln1",),
        "pointwise",
        kernel,
        KernelChoice(kernel.name),
        12,
        NOTHING,
        (),
        0.0,
        floor,
        None,
        SiteTerms((LaunchTerms(launch_s=launch_s / 12),), 12),
    )


def test_launches_that_a_flip_saves_are_saved_with_the_gaps_before_them() -> None:
    """12 us of launches, half of them in gaps: with half the launches the pass takes 6 us less."""
    rows = (row("ln1", kernel="layernorm_warp_per_row", time_s=6e-6, gap_s=6e-6, floor_s=1e-6), DEVICE)
    line = advise(rows, (launched(12e-6),), (("graph=on", (launched(6e-6),)),))
    assert "graph=on (94.0 µs" in line
