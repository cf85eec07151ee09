"""Plans in a recording: read back as they were, and by today's names whatever version wrote them."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import msgspec
import pytest
from hypothesis import given, settings

from gputop.model.workloads import WORKLOADS
from gputop.plan.choices import PlanView
from gputop.plan.plan_string import parse_word
from gputop.plan.types import KernelChoice
from gputop.planner.plan_views import toggle_views
from gputop.planner.resolver import Resolver
from gputop.results import recording
from gputop.results.recorded_plan import RecordedPlan, RecordedSite, recorded
from gputop.results.recording import Header, Line, PlanLine, Recording, WindowLine, encode, parse
from gputop.util.errors import UsageError
from tests.unit.test_protocol import values

CATALOG = Resolver.load()
DIMS = WORKLOADS[0].dims


@cache
def shipped() -> Recording:
    return recording.read(recording.shipped()["h200-products"])


def header(backend: str) -> Header:
    known = shipped().header
    return msgspec.structs.replace(known, device=replace(known.device, backend=backend))


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
    """As files have them from before the number of parts was a parameter."""
    old, new = "gemm_sass_fp32_square_16", "gemm_sass_fp32_square/16"
    window = shipped().windows[0]
    lane = window.lanes[0]
    rows = (replace(lane.rows[0], kernel=old, plan=f"sass-fp32,w2:{old}"), *lane.rows[1:])
    line = WindowLine(window=replace(window, lanes=(replace(lane, rows=rows), *window.lanes[1:])))
    view = RecordedPlan(f"sass-fp32,w2:{old}", "sass-fp32", 1, "fp32", (), (RecordedSite("w2", old),))
    lines: tuple[Line, ...] = (header("cuda"), PlanLine(view=view), line)
    kept = parse(b"".join(map(encode, lines)), "t")
    assert dict(kept.plans[0].dispatch) == {"w2": KernelChoice("gemm_sass_fp32_square", 16)}
    assert kept.plans[0].word == f"sass-fp32,w2:{new}"
    first = kept.windows[0].lanes[0].rows[0]
    assert (first.kernel, first.plan) == (new, f"sass-fp32,w2:{new}")


@settings(max_examples=30, deadline=None)
@given(line=values(PlanLine))
def test_any_plan_is_read_or_refused_by_line(line: PlanLine) -> None:
    refusal = "read"
    try:
        parse(encode(header("cpu")) + encode(line), "t.jsonl")
    except UsageError as error:
        refusal = str(error)
    assert re.match(r"read$|t\.jsonl, line 2: ", refusal)
