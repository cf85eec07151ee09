"""The model of a launch: a sum of terms, which more bytes and more blocks never make less."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.perf.gpu_specs import SM_LIMITS
from gputop.perf.roofline.l2_feed import sm_read_rate
from gputop.perf.roofline.launch_terms import Device, LaunchMode, LaunchTerms, launch_terms, pipe_rate
from gputop.perf.roofline.placement import Footprint, fits, place, place_beside
from gputop.perf.roofline.reach import reach
from gputop.perf.roofline.site_terms import Binding, SiteTerms, binding, what_is_left
from gputop.plan.launch_shape import CodeFacts, LaunchShape, Serial
from gputop.plan.work import Work

RATES: Final = {
    "launch_empty_queued": 1.5e-6,
    "launch_empty_graph": 0.6e-6,
    "launch_empty_pdl": 0.5e-6,
    "grid_barrier": 1.2e-6,
    "launch_cluster_2": 0.7e-6,
    "launch_cluster_8": 0.9e-6,
    "cluster_barrier_8": 0.2e-6,
    "dsmem_read_8": 20e9,
    "block_start": 0.08e-6,
    "first_load_l2": 0.4e-6,
    "first_load_dram": 1.2e-6,
    "first_load_pdl": 0.1e-6,
    "last_store": 0.08e-6,
    "library_start_sm80": 3e-6,
    "code_fetch": 19e9,
    "l2_latency": 0.14e-6,
    "dram_latency": 0.45e-6,
    "dram_read": 4e12,
    "l2_read_1": 0.2e12,
    "l2_read_48": 4.8e12,
    "l2_read_96": 7.5e12,
    "l2_read": 9e12,
    "l2_panel_1": 0.2e12,
    "l2_panel_48": 9.6e12,
    "l2_panel_96": 19e12,
    "l2_panel_132": 25e12,
    "fp32": 60e12,
    "tf32_mma": 300e12,
    "tf32_wgmma": 400e12,
    "tf32_wgmma_n24": 150e12,
    "tf32_wgmma_n56": 330e12,
}
SMS = 132
SM = SM_LIMITS["sm_90"]
DEVICE = Device(RATES, SMS, 1.9e9, SM)
BLANK = Device({}, SMS, 1.9e9, SM)

codes = st.builds(
    CodeFacts,
    code_bytes=st.integers(256, 60_000),
    loop_flops=st.sampled_from([0.0, 64.0, 1024.0, 4096.0]),
    loop_instructions=st.integers(4, 900),
    loop_cycles=st.integers(4, 2000),
    loads_per_wait=st.sampled_from([1.0, 2.0, 4.0, 6.5]),
    outside_cycles=st.integers(0, 3000),
)
serials = st.builds(
    Serial,
    l2_trips=st.floats(0, 40),
    shuffles=st.floats(0, 200),
    barriers=st.floats(0, 9),
    dram_trips=st.floats(0, 9),
)


@st.composite
def shapes(draw: st.DrawFn) -> LaunchShape:
    blocks = draw(st.integers(1, 3000))
    return LaunchShape(
        blocks=blocks,
        threads=draw(st.sampled_from([32, 64, 128, 256, 1024])),
        tile=(64, 64, 16),
        steps=draw(st.floats(1, 300)),
        stages=draw(st.integers(0, 9)),
        step_loads=draw(st.floats(0, 64)),
        pipe=draw(st.sampled_from(["fp32", "tf32_mma", "tf32_wgmma"])),
        flops=blocks * draw(st.floats(0, 1e8)),
        read_bytes=draw(st.floats(0, 1e7)),
        written_bytes=draw(st.floats(0, 1e7)),
        from_dram=draw(st.booleans()),
        weight_share=draw(st.floats(0, 1)),
        shared_bytes=draw(st.floats(0, 1e6)),
        lookups=draw(st.floats(0, 1e4)),
        exchange=draw(st.sampled_from(["none", "memory"])),
        serial=draw(serials),
        has_main_loop=draw(st.booleans()),
        pdl=draw(st.booleans()),
    )


modes = st.sampled_from(["stream", "graph", "pdl", "barrier"])
held = st.integers(1, 16)


def _terms(
    shape: LaunchShape, per_sm: int, code: CodeFacts | None, mode: LaunchMode, dram: float = 0
) -> LaunchTerms:
    return launch_terms(shape, place(shape.blocks, per_sm, SMS), code, DEVICE, mode, dram)


@given(shapes(), held, st.none() | codes, modes, st.floats(0, 1e8))
def test_the_sum_is_at_least_every_term_of_it(
    shape: LaunchShape, per_sm: int, code: CodeFacts | None, mode: LaunchMode, dram: float
) -> None:
    found = _terms(shape, per_sm, code, mode, dram)
    shares = found.shares()
    assert found.total_s == pytest.approx(sum(shares.values()))
    resources = (found.l2_s, found.l1_s, found.issue_s, found.compute_s, found.dram_s)
    for part in (found.launch_s, found.first_load_s, found.code_s, found.latency_s, found.end_s, *resources):
        assert found.total_s >= (part or 0.0) * (1 - 1e-9)


@given(shapes(), held, st.none() | codes, modes, st.floats(0, 1e7))
def test_more_bytes_never_take_less(
    shape: LaunchShape, per_sm: int, code: CodeFacts | None, mode: LaunchMode, more: float
) -> None:
    one = _terms(shape, per_sm, code, mode, shape.read_bytes)
    other = _terms(replace(shape, read_bytes=shape.read_bytes + more), per_sm, code, mode, shape.read_bytes)
    assert other.total_s >= one.total_s * (1 - 1e-9)
    assert _terms(shape, per_sm, code, mode, shape.read_bytes + more).total_s >= one.total_s * (1 - 1e-9)


@given(shapes(), held, st.none() | codes, modes, st.integers(1, 2000))
def test_more_blocks_never_take_less(
    shape: LaunchShape, per_sm: int, code: CodeFacts | None, mode: LaunchMode, more: int
) -> None:
    blocks = shape.blocks + more
    wider = replace(
        shape,
        blocks=blocks,
        flops=shape.flops / shape.blocks * blocks,
        written_bytes=shape.written_bytes / shape.blocks * blocks,
    )
    assert _terms(wider, per_sm, code, mode).total_s >= _terms(shape, per_sm, code, mode).total_s * (1 - 1e-9)


@given(shapes(), held, codes, modes)
def test_what_no_ceiling_was_measured_for_is_unknown(
    shape: LaunchShape, per_sm: int, code: CodeFacts, mode: LaunchMode
) -> None:
    found = launch_terms(shape, place(shape.blocks, per_sm, SMS), code, BLANK, mode, 1e6)
    known = (
        found.launch_s,
        found.first_load_s,
        found.code_s,
        found.latency_s,
        found.l2_s,
        found.dram_s,
        found.end_s,
    )
    assert known == (None,) * len(known)


@given(shapes(), held, codes, modes, st.floats(0, 1e-5), st.floats(0, 1e-5))
def test_a_gap_comes_off_the_launch_and_nothing_else(
    shape: LaunchShape, per_sm: int, code: CodeFacts, mode: LaunchMode, gap: float, overlap: float
) -> None:
    found = _terms(shape, per_sm, code, mode, 1e6)
    beside = found.measured_beside(gap, overlap)
    assert found.launch_s is not None
    assert beside.launch_s == pytest.approx(max(0.0, found.launch_s - gap))
    assert beside.measured_beside(None, None) == beside
    assert (beside.l2_s, beside.end_s, beside.latency_s) == (found.l2_s, found.end_s, found.latency_s)


def test_early_weights_are_hidden_as_far_as_a_launch_overlaps() -> None:
    weights = 3e6
    shape = LaunchShape(
        blocks=100,
        threads=256,
        stages=4,
        read_bytes=40e3,
        early_bytes=30e3,
        from_dram=True,
        pdl=True,
        pipe="fp32",
    )
    found = launch_terms(shape, place(100, 1, SMS), None, DEVICE, "pdl", weights)
    shown = [found.measured_beside(0.0, overlap).dram_s for overlap in (0.0, 1e-6, 1.0)]
    assert shown[0] == pytest.approx(RATES["first_load_dram"] + weights / RATES["dram_read"])
    assert shown[1] == pytest.approx((shown[0] or 0) - 1e-6)
    assert shown[2] == 0.0


def test_a_launch_that_may_not_start_early_is_priced_as_in_a_graph() -> None:
    shape = LaunchShape(blocks=10, threads=128)
    assert _terms(shape, 1, None, "pdl") == _terms(shape, 1, None, "graph")


def test_clusters_add_their_launch_and_their_exchange() -> None:
    alone = LaunchShape(blocks=64, threads=128, splits=8)
    joined = replace(alone, cluster=8, exchange="cluster", exchange_bytes=20e3, exchange_turns=2)
    one, other = _terms(alone, 1, None, "graph"), _terms(joined, 1, None, "graph")
    assert (other.launch_s or 0) - (one.launch_s or 0) == pytest.approx(0.3e-6)
    exchange_s = 2 * 0.2e-6 + 20e3 / 20e9 + 2 * 0.14e-6
    assert other.end_s == pytest.approx(exchange_s + RATES["last_store"])


def test_a_library_s_launch_is_its_tile_and_its_own_start() -> None:
    shape = LaunchShape(blocks=96, threads=128, read_bytes=1e5, stages=6, library="sm80", has_main_loop=False)
    found = _terms(shape, 2, None, "graph")
    start_s = (found.launch_s or 0) + (found.first_load_s or 0) + (found.end_s or 0)
    assert start_s == pytest.approx(RATES["library_start_sm80"])
    assert found.code_s is None


@given(st.integers(1, 200), st.booleans())
def test_the_rate_of_one_sm_lies_between_those_measured(active: int, shared: bool) -> None:
    rate = sm_read_rate(RATES, active, SMS, shared=shared)
    measured = [RATES[f"l2_{'panel' if shared else 'read'}_{count}"] / count for count in (1, 48, 96)]
    measured.append(RATES["l2_panel_132" if shared else "l2_read"] / SMS)
    assert rate is not None
    assert min(measured) * (1 - 1e-9) <= rate <= max(measured) * (1 + 1e-9)


def test_the_rate_of_one_sm_is_unknown_without_ceilings() -> None:
    assert sm_read_rate({}, 5, SMS, shared=False) is None


def test_narrow_warpgroup_products_have_a_rate_of_their_own() -> None:
    assert pipe_rate(RATES, "tf32_wgmma", 56) == 330e12
    assert pipe_rate(RATES, "tf32_wgmma", 8) == 150e12
    assert pipe_rate(RATES, "tf32_mma", 8) == 300e12
    assert pipe_rate(RATES, None) is None


footprints = st.builds(
    Footprint,
    st.sampled_from([32, 128, 256, 512]),
    st.integers(16, 255),
    st.integers(0, SM.smem_per_block_optin_bytes),
)


@given(st.integers(1, 5000), footprints, footprints, st.integers(1, 500))
def test_a_launch_beside_another_has_no_better_place_than_alone(
    blocks: int, own: Footprint, before: Footprint, blocks_before: int
) -> None:
    alone = place(blocks, fits(own, SM), SMS)
    beside = place_beside(blocks, own, before, blocks_before, SM, SMS)
    assert beside.blocks >= alone.blocks
    assert beside.resident <= max(alone.resident, fits(own, SM))
    assert fits(own, SM, before, 1) <= fits(own, SM)
    assert alone.blocks * SMS >= blocks
    assert 1 <= alone.resident <= alone.blocks


def test_blocks_crowd_where_the_launch_before_leaves_sms_free() -> None:
    big, small = Footprint(256, 64, 200_000), Footprint(128, 64, 70_000)
    assert place_beside(96, small, big, 100, SM, SMS).blocks == 3
    assert place_beside(96, small, big, 132, SM, SMS).blocks == 1


@given(st.lists(st.tuples(shapes(), held), min_size=1, max_size=4), st.integers(1, 24), st.floats(1e-7, 1e-2))
def test_what_is_left_adds_up_to_the_time(
    launches: list[tuple[LaunchShape, int]], count: int, time_s: float
) -> None:
    site = SiteTerms(tuple(_terms(shape, held, None, "graph") for shape, held in launches), count, 1.5, 1.2)
    left = what_is_left(time_s / 10, site, time_s)
    assert sum(part.seconds for part in left.parts) == pytest.approx(time_s)
    assert all(part.seconds >= -1e-15 for part in left.parts if part.name != "unexplained")
    assert site.modelled_s == pytest.approx(count * sum(launch.total_s for launch in site.launches))


@given(shapes(), held, st.floats(1e-8, 1e-2))
def test_the_largest_share_binds_unless_half_is_unexplained(
    shape: LaunchShape, per_sm: int, time_s: float
) -> None:
    site = SiteTerms((_terms(shape, per_sm, None, "graph"),))
    shares, modelled_s = site.shares(), site.modelled_s
    assert modelled_s is not None
    found = binding(shares, time_s)
    if modelled_s < time_s / 2:
        assert found.binds == "unknown"
        assert found.share == pytest.approx(1 - modelled_s / time_s)
        assert found.runner_up == max(shares, key=lambda name: shares[name])
    else:
        assert shares[found.binds] == max(shares.values())
        assert found.share == pytest.approx(shares[found.binds] / time_s)


def test_nothing_known_binds_as_unknown_without_a_share() -> None:
    assert binding({}, 1e-6) == Binding("unknown", None, None)
    assert SiteTerms().modelled_s is None
    assert what_is_left(1e-6, SiteTerms(), 1e-5).parts == ()


@given(st.floats(0, 1e-3), st.integers(1, 50), st.integers(1, 4), st.floats(0, 1e8))
def test_reach_is_never_below_the_floor(floor_s: float, count: int, launches: int, weights: float) -> None:
    found = reach(Work(0.0, weights, 0.0, 0.0), floor_s, RATES, count=count, launches=launches)
    assert found is not None
    assert found >= floor_s
    assert found >= count * launches * 0.5e-6


def test_reach_needs_its_ceilings() -> None:
    assert reach(Work(0.0, 1.0, 0.0, 0.0), 1e-6, {"l2_read": 1e12}, count=1) is None
