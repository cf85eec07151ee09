"""Floors, shape and terms: by hand, and as properties of any phase."""

from __future__ import annotations

from dataclasses import fields, replace
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.perf.gpu_specs import model
from gputop.perf.roofline import (
    Terms,
    best_pipe,
    device_floor,
    efficiency,
    fit,
    floor,
    moved_over_compulsory,
    sum_floor,
    terms,
)
from gputop.plan.traffic import CriticalPath, Traffic, Work
from gputop.plan.types import LaunchInfo, Math
from gputop.results.records import Ceiling, Ceilings
from gputop.util.errors import UsageError

US = 1e-6


def ceilings(**values: float) -> Ceilings:
    return Ceilings(
        "a device", None, "", tuple(Ceiling(name, value, "B/s", "") for name, value in values.items())
    )


H200 = ceilings(
    dram_read=4.65e12,
    l2_read=7e12,
    fp32=60.8e12,
    tf32_mma=330e12,
    tf32_wgmma=450e12,
    bf16_wgmma=900e12,
    launch_graph=0.51 * US,
    launch_dependent=1.10 * US,
    launch_pdl=0.84 * US,
    dram_latency=0.6 * US,
    l2_latency=0.2 * US,
)
L2_BYTES = 60 * 1024 * 1024
SM_HZ = 132 * 1.98e9

QKV = Work(
    flops=2 * 128 * 2304 * 768, weight_bytes=2304 * 768 * 4, in_bytes=128 * 768 * 4, out_bytes=128 * 2304 * 4
)
"""128 x 2304 x 768, one layer."""


def h200_terms(
    work: Work,
    traffic: Traffic | None = None,
    facts: LaunchInfo | None = None,
    rates: Ceilings = H200,
    *,
    count: int = 1,
    **other: object,
) -> Terms:
    options: dict[str, object] = {
        "launches": count,
        "mode": "graph",
        "l2_bytes": L2_BYTES,
        "sm_count": 132,
        "arch": "sm_90",
        "clock_hz": 1.98e9,
    }
    return terms(work, traffic, facts, rates, count=count, **(options | other))  # type: ignore[arg-type]


# Floors


def test_floors_of_the_pass_at_batch_1() -> None:
    whole = Work(flops=20.5e9, weight_bytes=340e6, in_bytes=0, out_bytes=0)
    exact = floor(whole, H200, "fp32", L2_BYTES, count=1)
    assert exact.compute_s == pytest.approx(337 * US, rel=0.01)
    assert exact.dram_s == pytest.approx(73 * US, rel=0.01)
    assert (exact.value_s, exact.term) == (exact.compute_s, "compute")
    assert floor(whole, H200, "tf32", L2_BYTES, count=1).term == "dram"
    assert floor(whole, H200, "bf16", L2_BYTES, count=1).value_s == pytest.approx(37 * US, rel=0.02)


def test_the_floor_takes_the_best_pipe_the_math_permits() -> None:
    assert best_pipe(H200, "fp32") == "fp32"
    assert best_pipe(H200, "tf32") == "tf32_wgmma"
    assert best_pipe(H200, "bf16") == "bf16_wgmma"
    assert best_pipe(ceilings(fp32=34e12, tf32_mma=30e12), "tf32") == "fp32"
    assert best_pipe(ceilings(dram_read=1e12), "fp32") is None


def test_a_datasheet_gives_floors_like_measured_ceilings() -> None:
    card = model("RTX-3080-Ti")
    whole = Work(20.5e9, 340e6, 0, 0)
    assert floor(whole, card, "fp32", card.l2_bytes, count=1).value_s == pytest.approx(601 * US, rel=0.01)
    assert floor(whole, card, "fp32", card.l2_bytes, count=1).dram_s == pytest.approx(373 * US, rel=0.01)


def test_activations_count_only_where_one_instance_exceeds_the_cache() -> None:
    twelve = Work(0, weight_bytes=120.0, in_bytes=60.0, out_bytes=60.0)
    slow = ceilings(dram_read=1.0, fp32=1.0)
    assert floor(twelve, slow, "fp32", 10, count=12).dram_s == 120
    assert floor(twelve, slow, "fp32", 9, count=12).dram_s == 240
    assert floor(twelve, slow, "fp32", None, count=12).dram_s == 120


def test_the_device_row_overlaps_what_the_sum_row_adds() -> None:
    slow = ceilings(dram_read=1.0, fp32=1.0)
    phases = [
        floor(Work(flops, weights, 0, 0), slow, "fp32", 1, count=1) for flops, weights in ((10, 1), (2, 7))
    ]
    assert sum_floor(phases) == 17
    assert (device_floor(phases).value_s, device_floor(phases).term) == (12, "compute")


def test_without_a_ceiling_there_is_no_floor() -> None:
    half = floor(QKV, ceilings(dram_read=1e12), "fp32", L2_BYTES, count=1)
    assert (half.compute_s, half.value_s, half.term) == (None, None, None)
    assert half.dram_s is not None
    assert sum_floor([half]) is None
    assert device_floor([half]).value_s is None
    assert efficiency(half.value_s, 1e-3) == (None, "")


def test_efficiency_is_never_clamped() -> None:
    assert efficiency(1.0, 4.0) == (0.25, "")
    value, note = efficiency(3.0, 2.0)
    assert value == 1.5
    assert note.startswith("over floor: the clock")


def test_over_its_floor_a_phase_names_what_ran_beside_the_launch_before() -> None:
    enough, too_little = efficiency(3e-6, 2e-6, 1e-6).note, efficiency(3e-6, 2e-6, 0.9e-6).note
    assert enough == "over floor: 1.00 µs of it ran beside the launch before, no part of this time"
    assert too_little.startswith("over floor: 900 ns of it ran beside the launch before")
    assert "; beyond that the clock" in too_little
    assert efficiency(3e-6, 4e-6, 1e-6).note == ""


# Shape


def test_shape_of_a_starved_grid() -> None:
    """48 blocks for 80 SMs leave 32 of them idle."""
    assert fit(128, 768, (64, 32), 48, 80).shape_factor == pytest.approx(80 / 48)


def test_shape_of_a_last_wave_that_is_hardly_begun() -> None:
    assert fit(128, 128, (128, 128), 133, 132).shape_factor == pytest.approx(2 * 132 / 133)
    assert fit(128, 128, (128, 128), 264, 132).shape_factor == 1


def test_shape_of_blocks_that_share_an_sm() -> None:
    """1536 blocks are 12 on the busiest SM where the mean has 11.6, in however many waves they come."""
    assert fit(128, 3072, (8, 32), 1536, 132).shape_factor == pytest.approx(12 * 132 / 1536)


def test_shape_of_a_tile_mostly_empty() -> None:
    one_row = fit(1, 768, (16, 128), 132, 132)
    assert (one_row.padding, one_row.idling) == (16, 1)
    assert fit(100, 100, (64, 64), 132, 132).padding == pytest.approx(128 * 128 / 10_000)


def test_no_shape_of_nothing() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        fit(0, 768, (16, 16), 1, 1)


@given(
    rows=st.integers(1, 300),
    columns=st.integers(1, 300),
    tile=st.tuples(st.integers(1, 256), st.integers(1, 256)),
    blocks=st.integers(1, 5000),
    sms=st.integers(1, 200),
)
def test_a_shape_factor_is_never_below_one(
    rows: int, columns: int, tile: tuple[int, int], blocks: int, sms: int
) -> None:
    both = fit(rows, columns, tile, blocks, sms)
    assert both.padding >= 1
    assert both.idling >= 1
    assert both.shape_factor == both.padding * both.idling


# Terms


def test_terms_of_a_declared_kernel_by_hand() -> None:
    traffic = Traffic(
        flops=QKV.flops,
        l2_bytes=52e6,
        l1_wavefronts=1e6,
        warp_instructions=9e6,
        chains=(CriticalPath(1980.0),),
        bytes_in_flight_per_warp=512.0,
        pipe="fp32",
        tile=(64, 64, 16),
    )
    facts = LaunchInfo("qkv", "k", 12, waves=0.14, warps_in_flight=576.0, blocks=72, blocks_per_sm=4)
    got = h200_terms(QKV.times(12), traffic, facts, count=12, rows=128, columns=2304)
    assert got.compute_s == pytest.approx(12 * QKV.flops / 60.8e12)
    assert got.dram_s == pytest.approx(12 * QKV.weight_bytes / 4.65e12)
    assert got.l2_s == pytest.approx(12 * 52e6 / 7e12)
    assert got.l1_s == pytest.approx(12 * 1e6 / SM_HZ)
    assert got.issue_s == pytest.approx(12 * 9e6 / (4 * SM_HZ))
    assert got.launch_s == pytest.approx(12 * 1.10 * US)
    assert got.shape_factor == pytest.approx(132 / 72)
    in_flight = 512 * 576
    waiting = QKV.weight_bytes * 0.6 * US + (52e6 - QKV.weight_bytes) * 0.2 * US
    assert got.latency_s == pytest.approx(12 * max(waiting / in_flight, 1 * US))


def test_a_chain_is_walked_once_a_wave() -> None:
    traffic = Traffic(chains=(CriticalPath(1980.0),))
    facts = LaunchInfo("qkv", "k", 1, waves=2.1)
    assert h200_terms(QKV, traffic, facts).latency_s == pytest.approx(3 * US)
    assert h200_terms(QKV, traffic, replace(facts, waves=0.1)).latency_s == pytest.approx(1 * US)
    assert h200_terms(QKV, traffic, None).latency_s == pytest.approx(1 * US)


def test_what_follows_the_main_launch_is_walked_once_however_many_waves_that_has() -> None:
    traffic = Traffic(chains=(CriticalPath(1980.0),), after=CriticalPath(990.0))
    facts = LaunchInfo("qkv", "k", 1, waves=2.1)
    assert h200_terms(QKV, traffic, facts).latency_s == pytest.approx(3.5 * US)


def test_waits_take_the_latency_that_was_measured_of_their_memory() -> None:
    chain = CriticalPath(cycles=1980.0, l2_waits=5, dram_waits=2)
    traffic = Traffic(chains=(chain,))
    assert h200_terms(QKV, traffic).latency_s == pytest.approx((1 + 5 * 0.2 + 2 * 0.6) * US)
    assert h200_terms(QKV.times(12), traffic, count=12).latency_s == pytest.approx(12 * 3.2 * US)
    assert h200_terms(QKV, traffic, rates=ceilings(l2_latency=0.2 * US)).latency_s is None
    second = LaunchInfo("qkv", "k", 1, waves=1.5)
    later_s = (1 + 7 * 0.2) * US
    assert h200_terms(QKV, traffic, second).latency_s == pytest.approx(3.2 * US + later_s), (
        "weights are in L2"
    )


def test_a_grid_barrier_costs_what_was_measured_else_three_round_trips_to_l2() -> None:
    traffic = Traffic(chains=(CriticalPath(grid_barriers=2, l2_waits=1),))
    assert h200_terms(QKV, traffic).latency_s == pytest.approx((2 * 3 + 1) * 0.2 * US)
    measured = ceilings(l2_latency=0.2 * US, grid_barrier=1.3 * US)
    assert h200_terms(QKV, traffic, rates=measured).latency_s == pytest.approx((2 * 1.3 + 0.2) * US)
    assert h200_terms(QKV, traffic, rates=ceilings()).latency_s is None


def test_of_two_chains_through_a_block_the_longer_counts() -> None:
    """Copies that run ahead of arithmetic: whichever takes longer on this device."""
    traffic = Traffic(chains=(CriticalPath(cycles=1980.0), CriticalPath(dram_waits=3)))
    assert h200_terms(QKV, traffic).latency_s == pytest.approx(1.8 * US)
    near = ceilings(l2_latency=0.1 * US, dram_latency=0.1 * US)
    assert h200_terms(QKV, traffic, rates=near).latency_s == pytest.approx(1 * US)


def test_padding_counts_as_launched_whether_declared_or_not() -> None:
    facts = LaunchInfo("q@1", "k", 1, blocks=12, blocks_per_sm=2)
    row = Work(2 * 768 * 768, 768 * 768 * 4, 768 * 4, 768 * 4)
    tile = (16, 64, 16)
    undeclared = h200_terms(row, Traffic(pipe="fp32", tile=tile), facts, rows=1, columns=768)
    declared = h200_terms(
        row, Traffic(flops=16 * row.flops, pipe="fp32", tile=tile), facts, rows=1, columns=768
    )
    assert undeclared == declared
    assert undeclared.padding == 16
    assert undeclared.shape_factor == pytest.approx(16 * 132 / 12)


@pytest.mark.parametrize(("mode", "cost_s"), [("graph", 1.10 * US), ("pdl", 0.84 * US), ("stream", None)])
def test_a_launch_costs_what_was_measured_in_its_mode(mode: str, cost_s: float | None) -> None:
    assert h200_terms(QKV, mode=mode, launches=3).launch_s == (
        None if cost_s is None else pytest.approx(3 * cost_s)
    )


def test_a_launch_of_a_stream_is_priced_as_one_that_is_never_late() -> None:
    """Phases are timed with the whole pass enqueued: the host's time for a launch is not in theirs."""
    both = ceilings(launch_stream=5 * US, launch_queued=1.5 * US)
    assert h200_terms(QKV, rates=both, mode="stream", launches=2).launch_s == pytest.approx(3 * US)
    old = ceilings(launch_stream=5 * US)
    assert h200_terms(QKV, rates=old, mode="stream", launches=2).launch_s == pytest.approx(10 * US)


def test_bytes_read_again_raise_dram_and_never_lower_it() -> None:
    once = h200_terms(QKV).dram_s
    assert once is not None
    assert h200_terms(QKV, Traffic(dram_bytes=2 * QKV.weight_bytes)).dram_s == pytest.approx(2 * once)
    assert h200_terms(QKV, Traffic(dram_bytes=1.0)).dram_s == once


def test_the_cpu_has_three_terms_and_its_own_ceilings() -> None:
    machine = ceilings(dram_read=20e9, dram_read_1=10e9, fp32=200e9, fp32_1=100e9, call=2 * US, l2_read=1e12)
    traffic = Traffic(flops=QKV.flops, l2_bytes=1e6, warp_instructions=1e6, pipe="fp32", tile=(16, 16, 1))
    facts = LaunchInfo("qkv", "k", 1, blocks=1, blocks_per_sm=1, waves=1.0)
    got = h200_terms(
        QKV,
        traffic,
        facts,
        machine,
        mode="call",
        pipe="fp32_1",
        bandwidth="dram_read_1",
        rows=128,
        columns=2304,
    )
    assert got == Terms(compute_s=QKV.flops / 100e9, dram_s=QKV.weight_bytes / 10e9, launch_s=2 * US)


def test_an_unknown_pipe_is_not_guessed() -> None:
    assert h200_terms(QKV, None).compute_s is None
    assert h200_terms(QKV, Traffic(pipe="fp64")).compute_s is None
    assert h200_terms(Work(0, 4, 4, 4), None).compute_s == 0


def test_bytes_moved_over_compulsory() -> None:
    """One load of a warp served by 32 sectors, 4 of whose 32 bytes are used."""
    once = QKV.weight_bytes + QKV.in_bytes + QKV.out_bytes
    assert moved_over_compulsory(QKV.times(12), Traffic(l2_bytes=30 * once), count=12) == pytest.approx(30)
    assert moved_over_compulsory(QKV, None, count=1) is None


# Any phase

RATES = ("dram_read", "l2_read", "fp32", "tf32_mma", "bf16_mma")
COSTS = ("launch_dependent", "dram_latency", "l2_latency")
BYTES = st.floats(0, 1e12)


@st.composite
def any_phase(draw: st.DrawFn) -> tuple[Work, Traffic, LaunchInfo]:
    work = Work(*(draw(BYTES) for _ in range(4)))
    traffic = Traffic(
        flops=draw(st.none() | BYTES),
        dram_bytes=draw(st.none() | BYTES),
        l2_bytes=draw(st.none() | BYTES),
        l1_wavefronts=draw(st.none() | BYTES),
        warp_instructions=draw(st.none() | BYTES),
        chains=draw(st.just(()) | st.tuples(st.builds(CriticalPath, BYTES, BYTES, BYTES))),
        bytes_in_flight_per_warp=draw(st.none() | st.floats(1, 1e5)),
        pipe=draw(st.sampled_from(("fp32", "tf32_mma", None))),
        tile=draw(st.none() | st.just((64, 64, 16))),
    )
    blocks = draw(st.none() | st.integers(1, 10_000))
    facts = LaunchInfo(
        "w1", "k", 12, waves=draw(st.none() | st.floats(0.01, 10)), blocks=blocks, blocks_per_sm=2
    )
    return work, traffic, replace(facts, warps_in_flight=draw(st.none() | st.floats(1, 1e5)))


@given(
    phase=any_phase(),
    known=st.dictionaries(st.sampled_from(RATES), st.floats(1e9, 1e15)),
    costs=st.dictionaries(st.sampled_from(COSTS), st.floats(1e-8, 1e-4)),
    better=st.floats(1, 10),
    math=st.sampled_from(("fp32", "tf32", "bf16")),
)
def test_a_higher_ceiling_never_lengthens_anything(
    phase: tuple[Work, Traffic, LaunchInfo],
    known: dict[str, float],
    costs: dict[str, float],
    better: float,
    math: Math,
) -> None:
    work, traffic, facts = phase
    slow = ceilings(**known, **costs)
    fast = ceilings(
        **{name: rate * better for name, rate in known.items()},
        **{name: cost / better for name, cost in costs.items()},
    )
    before, after = (
        h200_terms(work, traffic, facts, rates, count=12, rows=128, columns=3072, math=math)
        for rates in (slow, fast)
    )
    for field in fields(Terms):
        was, will_be = getattr(before, field.name), getattr(after, field.name)
        assert (was is None) == (will_be is None)
        if was is not None:
            assert isfinite(was)
            assert will_be <= was
    floors = [floor(work, rates, math, L2_BYTES, count=12).value_s for rates in (slow, fast)]
    if floors[0] is not None and floors[1] is not None:
        assert floors[1] <= floors[0]
