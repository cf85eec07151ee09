"""The walks that measure latency: long enough, and a doubtful figure says so."""

from __future__ import annotations

import pytest

from gputop.backends.cuda.ceilings.latency import DRAM_PROBE, LATENCY_PROBES, LatencyProbe, latency_status
from gputop.backends.cuda.ceilings.stopwatch import BURST_RUNS

UNROLLED = 16
LARGEST_L2_BYTES = 128 << 20
LINE_BYTES = 128


@pytest.mark.parametrize("probe", LATENCY_PROBES, ids=lambda probe: probe.name)
def test_a_window_is_whole_turns_of_the_loop_over_a_power_of_two_of_nodes(probe: LatencyProbe) -> None:
    nodes = probe.window_bytes // probe.stride_bytes
    assert nodes & (nodes - 1) == 0
    assert nodes % UNROLLED == 0
    assert probe.stride_bytes >= LINE_BYTES


def test_no_node_of_dram_is_met_twice_in_a_measurement() -> None:
    assert DRAM_PROBE.windows > BURST_RUNS + 2
    assert DRAM_PROBE.windows * DRAM_PROBE.window_bytes > LARGEST_L2_BYTES


def test_a_latency_that_no_device_has_is_doubted() -> None:
    assert latency_status(DRAM_PROBE, 600e-9) == "ok"
    assert "nearer cache" in latency_status(DRAM_PROBE, 150e-9)
    assert latency_status(DRAM_PROBE, 1e-5).startswith("above what devices have, 300 ns to 1.50 µs")
