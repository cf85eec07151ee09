"""The megakernel's division of products: what its arrival counters must suffice for."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from gputop.model.workloads import parse_workload
from gputop.phases.megakernel_cuda import PRODUCTS, ROW_PRODUCTS, TILE, splits
from gputop.plan.types import PlanRequest, Site, Task, View
from gputop.planner.resolver import Resolver
from gputop.util.paths import kernels_dir

TILES = st.integers(1, 300)


def task(site: str, rows: int, columns: int, inner: int) -> Task:
    """Of which only the site counts."""
    return Task(Site(site, site, rows, columns, inner, (0, 1)), 0, (), View("out", 0, rows, columns, columns))


def arrival_counters() -> int:
    source = (kernels_dir() / "megakernel/17_persistent.cu").read_text(encoding="utf-8")
    found = re.search(r"MAX_ARRIVAL_COUNTERS = (\d+)", source)
    assert found
    return int(found[1])


def test_a_large_batch_has_more_results_than_arrival_counters_and_needs_none() -> None:
    """w1@1 of 256 sequences: 256 x 96 results, each by one block."""
    request = PlanRequest("megakernel", sets=(("batch", "256"),))
    plan = Resolver.load().resolve(request, parse_workload("gpt2-small").dims, "cuda")
    assert plan.batch == 256
    assert splits(task("w1@1", 256, 3072, 768)) == 1
    assert splits(task("w1@1", 1, 3072, 768)) > 1


@given(site=st.sampled_from((*PRODUCTS, *ROW_PRODUCTS)), down=TILES, across=TILES, deep=TILES)
def test_every_result_in_several_parts_has_an_arrival_counter(
    site: str, down: int, across: int, deep: int
) -> None:
    height, width = (1, 32) if site in ROW_PRODUCTS else (TILE, TILE)
    if splits(task(site, down * height, across * width, deep * TILE)) > 1:
        assert down * across <= arrival_counters()
