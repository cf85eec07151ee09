"""Peaks are what the hardware can do: none above its width at its clock, none far below what is known."""

from __future__ import annotations

import pytest

from gputop.results.records import Ceilings
from gputop.session.session import Session
from tests.gpu.plans import STANDARD

KNOWN = {
    "NVIDIA H200": {
        "dram_read": 4.65e12,
        "dram_copy": 4.27e12,
        "fp32": 60.8e12,
        "tf32_wgmma": 387e12,
        "bf16_wgmma": 796e12,
    }
}
"""Rates measured before on such a card, by other means."""
LEAST_SHARE = 0.95
EXPECTED = (
    "dram_read",
    "dram_copy",
    "l2_read",
    "fp32",
    "l2_latency",
    "dram_latency",
    "launch_stream",
    "launch_queued",
    "launch_graph",
    "launch_dependent",
    "launch_empty_queued",
    "launch_empty_graph",
    "first_load_l2",
    "first_load_dram",
    "last_store",
    "block_start",
    "code_fetch",
    "grid_barrier",
    "call",
)


@pytest.fixture(scope="module")
def measured() -> tuple[str, Ceilings]:
    session = Session.open("cuda", STANDARD["mini"])
    found = session.facts.name, session.calibrate(force=True)
    again = session.calibrate()
    session.close()
    assert again == found[1], "the second reading is the first one's"
    return found


def test_all_are_measured_and_trusted(measured: tuple[str, Ceilings]) -> None:
    _, ceilings = measured
    items = {item.name: item for item in ceilings.items}
    assert set(EXPECTED) <= set(items)
    bad = {item.name: item.status for item in ceilings.items if not item.status.startswith("ok")}
    assert not bad, {name: (status, items[name].value, items[name].how) for name, status in bad.items()}


def test_none_is_above_what_the_width_allows(measured: tuple[str, Ceilings]) -> None:
    for item in measured[1].items:
        assert item.value > 0
        if item.limit is not None:
            assert item.value <= 1.02 * item.limit, item
        if item.unit == "FLOP/s":
            assert item.clock_hz is not None
            assert 0.3e9 < item.clock_hz < 4e9
            assert item.library is not None


def test_none_is_below_what_is_known_of_the_card(measured: tuple[str, Ceilings]) -> None:
    name, ceilings = measured
    if name not in KNOWN:
        pytest.skip(f"nothing is known beforehand of {name}")
    low = {
        ceiling: (ceilings.get(ceiling), known)
        for ceiling, known in KNOWN[name].items()
        if (ceilings.get(ceiling) or 0.0) < LEAST_SHARE * known
    }
    assert not low


def test_a_dependent_launch_costs_less_when_it_may_start_early(measured: tuple[str, Ceilings]) -> None:
    dependent, early = measured[1].get("launch_dependent"), measured[1].get("launch_pdl")
    if early is None:
        pytest.skip("this architecture has no programmatic dependent launch")
    assert dependent is not None
    assert early < dependent


def test_a_load_takes_longest_from_dram_and_less_than_a_dependent_launch(
    measured: tuple[str, Ceilings],
) -> None:
    l2_s, dram_s, launch_s = (measured[1].get(n) for n in ("l2_latency", "dram_latency", "launch_dependent"))
    assert l2_s is not None
    assert dram_s is not None
    assert launch_s is not None
    assert 1.5 * l2_s < dram_s
    assert l2_s < launch_s, "a dependent launch waits for at least one load"


def test_a_grid_barrier_takes_more_than_a_load_and_less_than_several_launches(
    measured: tuple[str, Ceilings],
) -> None:
    barrier, l2_s, launch_s = (measured[1].get(n) for n in ("grid_barrier", "l2_latency", "launch_dependent"))
    assert barrier is not None
    assert l2_s is not None
    assert launch_s is not None
    assert l2_s < barrier < 5 * launch_s


def test_a_queued_launch_costs_less_than_one_that_the_host_is_waited_for(
    measured: tuple[str, Ceilings],
) -> None:
    queued, enqueued = measured[1].get("launch_queued"), measured[1].get("launch_stream")
    assert queued is not None
    assert enqueued is not None
    assert queued < enqueued


def test_a_first_load_takes_longer_from_dram_than_from_l2(measured: tuple[str, Ceilings]) -> None:
    l2_s, dram_s = (measured[1].get(name) for name in ("first_load_l2", "first_load_dram"))
    assert l2_s is not None
    assert dram_s is not None
    assert 0 < l2_s < dram_s


def test_few_sms_get_no_less_each_than_all_of_them(measured: tuple[str, Ceilings]) -> None:
    _, ceilings = measured
    one = ceilings.get("l2_read_1")
    everything = ceilings.get("l2_read")
    sms = next(int(item.name.split("_")[-1]) for item in reversed(ceilings.items) if "l2_panel" in item.name)
    assert one is not None
    assert everything is not None
    assert one > everything / sms


def test_a_narrow_product_does_not_beat_the_peak_of_its_pipe(measured: tuple[str, Ceilings]) -> None:
    _, ceilings = measured
    peak = ceilings.get("tf32_wgmma")
    if peak is None:
        pytest.skip("this architecture has no wgmma")
    for item in ceilings.items:
        if item.name.startswith("tf32_wgmma_n"):
            assert item.clock_hz is not None
            assert item.value <= 1.05 * peak, item
