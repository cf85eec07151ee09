"""Plans in a recording: read back as they were, and by today's names whatever version wrote them."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import msgspec
import pytest
from hypothesis import given, settings

from gputop.model.workloads import WORKLOADS
from gputop.plan.choices import PlanView, RungView
from gputop.plan.plan_string import parse_word
from gputop.plan.types import KernelChoice
from gputop.planner.plan_views import toggle_views
from gputop.planner.resolver import Resolver
from gputop.results import recording
from gputop.results.recorded_plan import recorded
from gputop.results.recording import Header, PlanLine, Recording, encode, parse
from gputop.util.errors import UsageError
from tests.unit.test_protocol import values

CATALOG = Resolver.load()
DIMS = WORKLOADS[0].dims


@cache
def shipped() -> Recording:
    return recording.read(recording.shipped()["h200-products"])


def header(backend: str) -> Header:
    known = shipped().header
    rungs = tuple(RungView(rung.id, rung.number, rung.kind, rung.idea) for rung in CATALOG.rungs)
    device = replace(known.device, backend=backend)
    return msgspec.structs.replace(known, device=device, rungs=rungs)


@pytest.mark.parametrize(
    "word",
    [
        "cpu-pruned,batch=3,w1@1:cpu_loops_gemm",
        "graph",
        "hopper,w2:gemm_warpgroup_80/4",
        "torch-eager,batch=2",
    ],
)
def test_a_plan_reads_back_as_it_was_recorded(word: str) -> None:
    request = parse_word(word)
    backend = CATALOG.rung(request.rung).backend
    plan = CATALOG.resolve(request, DIMS, backend)
    view = PlanView(plan, toggle_views(CATALOG, plan, DIMS), ())
    kept = parse(encode(header(backend)) + encode(PlanLine(view=recorded(view))), "t")
    assert kept.plans == (plan,)
    assert kept.plans[0].word == plan.word
    assert set(kept.refused[plan.word]) == {
        (toggle.name, value) for toggle in view.toggles for value, _ in toggle.refused
    }


def test_kernels_are_read_by_their_former_names_wherever_they_stand() -> None:
    """As files have them from before the number of parts was a parameter, here in the plan's word too."""
    old, new = "gemm_wmma_tall_11", "gemm_wmma_tall/11"
    path = recording.shipped()["h200-products"]
    text = path.read_text(encoding="utf-8")
    assert f'"{old}"' in text
    for field in ("word", "plan", "plan_b"):
        text = text.replace(f'"{field}":"wmma"', f'"{field}":"wmma,w2:{old}"')
    kept = parse(text.encode(), "t")
    plan = next(plan for plan in kept.plans if plan.rung == "wmma")
    assert plan.word == f"wmma,w2:{new}"
    assert dict(plan.dispatch)["w2"] == KernelChoice("gemm_wmma_tall", 11)
    assert plan.word in kept.gates
    lane = next(lane for window in kept.windows for lane in window.lanes if lane.rung == "wmma")
    assert lane.plan == plan.word
    assert {row.kernel for row in lane.rows if row.phase == "w2"} == {new}
    assert kept.ladder is not None
    assert any(new in entry.kernels for entry in kept.ladder.entries)


@settings(max_examples=30, deadline=None)
@given(line=values(PlanLine))
def test_any_plan_is_read_or_refused_by_line(line: PlanLine) -> None:
    refusal = "read"
    try:
        parse(encode(header("cpu")) + encode(line), "t.jsonl")
    except UsageError as error:
        refusal = str(error)
    assert re.match(r"read$|t\.jsonl, line 2: ", refusal)
