"""No plan is accepted whose launches have more blocks than a grid can have, and what is refused says why."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.model.workloads import WORKLOADS
from gputop.plan.plan_string import parse_word
from gputop.plan.toggles import MOST_BATCH
from gputop.plan.types import Dims, Launch, Plan
from gputop.planner.grid_limits import LARGEST_GRID
from gputop.planner.resolver import Resolver
from gputop.util.errors import UsageError

CATALOG = Resolver.load()
GPT2 = WORKLOADS[0].dims
RUNGS = tuple(rung.id for rung in CATALOG.rungs_of("cuda") if rung.kind != "peer")
MENDS = re.compile(r"where a grid has at most \d+; the largest batch that fits is (\d+)\.")


def resolve(word: str, dims: Dims) -> Plan:
    return CATALOG.resolve(parse_word(word), dims, "cuda")


def launches(plan: Plan, dims: Dims) -> list[Launch]:
    steps = CATALOG.steps(plan, replace(dims, batch=plan.batch))
    return [
        launch
        for step in steps
        if step.kernel.launches
        for launch in step.kernel.launches(step.tasks, plan, replace(dims, batch=plan.batch))
    ]


def within(launch: Launch) -> bool:
    return all(blocks <= most for blocks, most in zip(launch.grid, LARGEST_GRID, strict=True))


@st.composite
def sizes(draw: st.DrawFn) -> Dims:
    heads, d_head = draw(st.integers(1, 16)), draw(st.sampled_from((8, 24, 64, 128)))
    d_ff = draw(st.sampled_from((1, 4, 64))) * draw(st.integers(1, 64))
    seq = draw(st.sampled_from((1, 64, 127, 128, 1000, 1024, 4096, 70_000)))
    return Dims(2, heads * d_head, heads, d_ff, seq, draw(st.integers(2, 512)))


@given(sizes(), st.sampled_from(RUNGS), st.sampled_from(("on", "off")), st.integers(1, MOST_BATCH))
def test_no_accepted_plan_is_outside_a_grid(dims: Dims, rung: str, prune: str, batch: int) -> None:
    word = f"{rung},prune={prune},batch="
    try:
        plan = resolve(f"{word}{batch}", dims)
    except UsageError as error:
        if mends := MENDS.search(str(error)):
            fits = int(mends.group(1))
            assert 0 < fits < batch
            assert "where a grid has at most" not in refusal(f"{word}{fits}", dims)
            assert refusal(f"{word}{fits + 1}", dims) != ""
        return
    assert all(map(within, launches(plan, dims)))


def refusal(word: str, dims: Dims) -> str:
    """Empty for a plan that is accepted."""
    try:
        resolve(word, dims)
    except UsageError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("word", "dims", "says"),
    [
        (
            "graph,batch=512",
            GPT2,
            "embed_gather can't serve embed: embed_gather would have 65536 blocks along y, where a grid has "
            "at most 65535; the largest batch that fits is 511.",
        ),
        ("graph,batch=128", replace(GPT2, seq=1024), "the largest batch that fits is 63."),
        ("naive", replace(GPT2, seq=65_536), "no batch fits with a seq of 65536."),
        (
            "naive,batch=512",
            replace(GPT2, seq=4, heads=768),
            "attention_naive_scores would have 393216 blocks along z, where a grid has at most 65535; the "
            "largest batch that fits is 85.",
        ),
    ],
)
def test_a_refusal_names_kernel_site_limit_and_the_largest_batch(word: str, dims: Dims, says: str) -> None:
    assert says in refusal(word, dims)


def test_the_largest_batch_is_that_of_the_whole_plan() -> None:
    """Both the gather's rows and a head's matrices are too many; the head's allow fewer sequences."""
    dims = replace(GPT2, seq=128, heads=768)
    why = refusal("naive,batch=4096", dims)
    assert "attention_naive" in why
    assert "batch that fits is 85." in why
    assert refusal("naive,batch=85", dims) == ""
