"""A probe of the device that fails costs its own ceilings, and what is missing is said."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gputop.backends.cuda.ceilings.steps import ProbeGroup, ProbeStep, run_steps
from gputop.cli.tables.window_lines import ceiling_lines
from gputop.cli.terminal import Terminal
from gputop.results.records import Ceiling, Ceilings
from gputop.session.window import _untrusted
from gputop.util.errors import DeviceLost, UsageError

LOAD = Ceiling("dram_read", 1e12, "B/s", "as tested")
CALL = Ceiling("call", 1e-6, "s", "as tested")
GRAPH = Ceiling("launch_graph", 1e-6, "s", "as tested")
HEADER = "cooperative_groups.h, line 2, does not compile for sm_90"


def fail() -> Ceiling:
    raise UsageError(f"{HEADER}.")


def lose() -> Ceiling:
    raise DeviceLost("the context is gone")


def no_memory() -> Iterator[ProbeStep]:
    yield ProbeStep("l2_read", lambda: CALL)
    raise UsageError("Not enough device memory for the DRAM probe.")


def groups() -> Iterator[ProbeGroup]:
    yield "DRAM", [ProbeStep("dram_read", lambda: LOAD)]
    yield "L2", no_memory()
    yield "launches", [ProbeStep("grid_barrier", fail), ProbeStep("empty launches", lambda: [GRAPH, GRAPH])]


def test_every_other_probe_is_run() -> None:
    said: list[str] = []
    items, missing = run_steps(groups(), said.append)
    assert items == (LOAD, CALL, GRAPH, GRAPH)
    assert missing == ("L2: Not enough device memory for the DRAM probe.", f"grid_barrier: {HEADER}.")
    assert said == ["measuring DRAM", "measuring L2", "measuring launches"]


def test_a_lost_device_ends_it() -> None:
    with pytest.raises(DeviceLost):
        run_steps([("DRAM", [ProbeStep("dram_read", lose), ProbeStep("call", lambda: CALL)])], print)


def test_what_is_missing_is_said_of_windows_and_by_calibrate() -> None:
    ceilings = Ceilings("A GPU", None, "", (LOAD,), missing=(f"grid_barrier: {HEADER}.",))
    assert _untrusted(ceilings) == (f"no ceiling grid_barrier: {HEADER}.",)
    assert f"  not measured: grid_barrier: {HEADER}." in ceiling_lines(ceilings, Terminal())
