"""Floors and shape: by hand, and as properties of any phase."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.perf.gpu_specs import model
from gputop.perf.roofline import (
    best_pipe,
    device_floor,
    efficiency,
    fit,
    floor,
    sum_floor,
)
from gputop.plan.types import Math
from gputop.plan.work import Work
from gputop.results.records import Ceiling, Ceilings
from gputop.util.errors import UsageError

US = 1e-6


def ceilings(**values: float) -> Ceilings:
    return Ceilings(
        "a device", None, "", tuple(Ceiling(name, value, "B/s", "") for name, value in values.items())
    )


H200 = ceilings(
    dram_read=4.65e12,
    fp32=60.8e12,
    tf32_mma=330e12,
    tf32_wgmma=450e12,
    bf16_wgmma=900e12,
)
L2_BYTES = 60 * 1024 * 1024
QKV = Work(
    flops=2 * 128 * 2304 * 768, weight_bytes=2304 * 768 * 4, in_bytes=128 * 768 * 4, out_bytes=128 * 2304 * 4
)
"""128 x 2304 x 768, one layer."""


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


# Any phase

RATES = ("dram_read", "fp32", "tf32_mma", "bf16_mma")
AMOUNTS = st.floats(0, 1e12)


@given(
    work=st.builds(Work, AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS),
    known=st.dictionaries(st.sampled_from(RATES), st.floats(1e9, 1e15)),
    better=st.floats(1, 10),
    math=st.sampled_from(("fp32", "tf32", "bf16")),
)
def test_a_higher_ceiling_never_raises_a_floor(
    work: Work, known: dict[str, float], better: float, math: Math
) -> None:
    slow = ceilings(**known)
    fast = ceilings(**{name: rate * better for name, rate in known.items()})
    was, now = (floor(work, rates, math, L2_BYTES, count=12).value_s for rates in (slow, fast))
    assert (was is None) == (now is None)
    assert was is None or now is None or now <= was
