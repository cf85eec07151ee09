"""Work of the phases against counts made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.model.weights import parameter_count, weight_bytes
from gputop.model.workloads import WORKLOADS
from gputop.perf.roofline import device_floor
from gputop.plan.types import Dims, Plan, PlanRequest
from gputop.plan.work import Work
from gputop.planner.resolver import Resolver
from gputop.results.records import Ceiling, Ceilings, DeviceFacts
from gputop.session.cost_model import Machine, plan_floors, question_floors

CATALOG = Resolver.load()
GPT2_SMALL, _, TINY = (workload.dims for workload in WORKLOADS[:3])


def work(dims: Dims, pruned: bool) -> dict[str, Work]:
    """Site -> one instance."""
    return {site.name: CATALOG.phase(site.phase).work(site, dims) for site in CATALOG.sites(dims, pruned)}


def total(dims: Dims, pruned: bool) -> Work:
    summed = Work(0, 0, 0, 0)
    for site in CATALOG.sites(dims, pruned):
        summed += CATALOG.phase(site.phase).work(site, dims).times(site.count)
    return summed


# tiny: 2 layers, d 64, 4 heads of 16, ff 256, seq 16, vocab 256; flops, weight, in, out bytes
TINY_BY_HAND = {
    "embed": (1024, 4 * 32 * 64, 64, 4096),
    "ln1": (7 * 1024, 512, 4096, 4096),
    "qkv": (2 * 16 * 192 * 64 + 16 * 192, 4 * 192 * 65, 4096, 12288),
    # 136 pairs in the lower triangle of 16 x 16
    "attention": (4 * 136 * 64 + 6 * 136 * 4, 0, 3 * 4096, 4096),
    # bias and residual: two more an output; the residual is read too
    "wo": (2 * 16 * 64 * 64 + 2 * 1024, 4 * 64 * 65, 2 * 4096, 4096),
    "ln2": (7 * 1024, 512, 4096, 4096),
    # bias and ReLU
    "w1": (2 * 16 * 256 * 64 + 2 * 4096, 4 * 256 * 65, 4096, 16384),
    "w2": (2 * 16 * 64 * 256 + 2 * 1024, 4 * 64 * 257, 16384 + 4096, 4096),
    "lnf": (7 * 64, 512, 256, 256),
    "head": (2 * 256 * 64, 4 * 256 * 64, 256, 1024),
}
TINY_PRUNED_BY_HAND = {
    "kv": (2 * 16 * 128 * 64 + 16 * 128, 4 * 128 * 65, 4096, 8192),
    "q@1": (2 * 64 * 64 + 64, 4 * 64 * 65, 256, 256),
    "attention@1": (4 * 16 * 64 + 6 * 16 * 4, 0, 256 + 2 * 4096, 256),
    "wo@1": (2 * 64 * 64 + 2 * 64, 4 * 64 * 65, 2 * 256, 256),
    "ln2@1": (7 * 64, 512, 256, 256),
    "w1@1": (2 * 256 * 64 + 2 * 256, 4 * 256 * 65, 256, 1024),
    "w2@1": (2 * 64 * 256 + 2 * 64, 4 * 64 * 257, 1024 + 256, 256),
}


@pytest.mark.parametrize("site", TINY_BY_HAND)
def test_tiny_by_hand(site: str) -> None:
    assert work(TINY, pruned=False)[site] == Work(*TINY_BY_HAND[site])


@pytest.mark.parametrize("site", TINY_BY_HAND | TINY_PRUNED_BY_HAND)
def test_tiny_pruned_by_hand(site: str) -> None:
    assert work(TINY, pruned=True)[site] == Work(*(TINY_BY_HAND | TINY_PRUNED_BY_HAND)[site])


def test_the_hand_counts_leave_no_site_out() -> None:
    assert set(work(TINY, pruned=False)) == set(TINY_BY_HAND)
    assert set(work(TINY, pruned=True)) == set(TINY_BY_HAND) | set(TINY_PRUNED_BY_HAND)


def test_gpt2_small_question_is_20_5_gflop() -> None:
    """Eleven whole layers of 9216 x 768 weights, the last at keys and values and one row, causal."""
    products = (
        11 * 2 * 128 * 768 * 9216 + 2 * 128 * 768 * 1536 + 2 * 768 * (2 * 768 + 2 * 3072) + 2 * 768 * 256
    )
    scores = 11 * 4 * 768 * (128 * 129 // 2) + 4 * 768 * 128
    asked = total(GPT2_SMALL, pruned=True).flops
    assert products + scores == pytest.approx(20.5e9, rel=2e-3)
    assert 1.0 < asked / (products + scores) < 1.005


def test_gpt2_small_unpruned_does_7_percent_more() -> None:
    assert total(GPT2_SMALL, pruned=False).flops / total(GPT2_SMALL, pruned=True).flops == pytest.approx(
        1.074, abs=0.002
    )


def test_gpt2_small_weights_are_340_mb() -> None:
    by_hand = (
        12 * (768 * 2304 + 2304 + 768 * 768 + 768 + 2 * 768 * 3072 + 3072 + 768 + 4 * 768)
        + 2 * 256 * 768
        + 128 * 768
        + 2 * 768
    )
    assert parameter_count(GPT2_SMALL) == by_hand
    assert weight_bytes(GPT2_SMALL) == pytest.approx(340e6, rel=0.01)


@st.composite
def any_dims(draw: st.DrawFn) -> Dims:
    heads = draw(st.integers(1, 4))
    size = st.integers(1, 40)
    return Dims(
        layers=draw(st.integers(1, 4)),
        d_model=heads * draw(st.integers(1, 12)),
        heads=heads,
        d_ff=draw(size),
        seq=draw(size),
        vocab=draw(size),
        batch=draw(st.integers(1, 5)),
    )


@given(dims=any_dims(), pruned=st.booleans())
def test_every_weight_is_counted_once(dims: Dims, pruned: bool) -> None:
    """But for the embedding's rows, of which no more are read than there are tokens."""
    unread_rows = dims.vocab - min(dims.tokens, dims.vocab)
    assert total(dims, pruned).weight_bytes == weight_bytes(dims) - 4 * dims.d_model * unread_rows


@given(dims=any_dims(), pruned=st.booleans())
def test_a_fold_leaves_a_layernorm_no_weights_and_two_flops_less(dims: Dims, pruned: bool) -> None:
    """An element; all else is as it was."""
    folded = CATALOG.sites(dims, pruned, folded=True)
    for site, bare in zip(CATALOG.sites(dims, pruned), folded, strict=True):
        phase = CATALOG.phase(site.phase)
        had, left = phase.work(site, dims), phase.work(bare, dims)
        if site.phase not in ("ln1", "ln2", "lnf"):
            assert left == had
            continue
        assert left == replace(had, flops=had.flops * 5 / 7, weight_bytes=0.0)
        assert had.weight_bytes == 2 * 4 * site.columns


@pytest.mark.parametrize("fold", [False, True])
@pytest.mark.parametrize("prune", [False, True])
def test_a_plans_tasks_know_what_is_folded(fold: bool, prune: bool) -> None:
    plan = Plan("cuda", PlanRequest("naive"), (), fold=fold, prune=prune)
    for task in CATALOG.pass_tasks(plan, TINY, False):
        if task.site.phase in ("ln1", "ln2", "lnf"):
            work = CATALOG.phase(task.site.phase).work(task.site, TINY)
            vectors = sum(task.operand(role) is not None for role in ("gain", "shift"))
            assert work.weight_bytes == vectors * 4 * TINY.d_model


@pytest.mark.parametrize("fold", [False, True])
@pytest.mark.parametrize("prune", [False, True])
def test_no_plan_does_less_than_is_asked(fold: bool, prune: bool) -> None:
    """And one that prunes and folds no more."""
    items = (Ceiling("fp32", 6e13, "FLOP/s", ""), Ceiling("dram_read", 4e12, "B/s", ""))
    machine = Machine(DeviceFacts("cuda", "a device", None), Ceilings("a device", None, "t", items), 2e9)
    plan = Plan("cuda", PlanRequest("naive"), (), fold=fold, prune=prune)
    question = device_floor(question_floors(CATALOG, plan, GPT2_SMALL, machine).values())
    own = device_floor(plan_floors(CATALOG, plan, GPT2_SMALL, machine))
    for asked, done in ((question.compute_s, own.compute_s), (question.dram_s, own.dram_s)):
        assert asked is not None
        assert done is not None
        assert (asked == pytest.approx(done, rel=1e-12)) if fold and prune else asked <= done * (1 + 1e-12)


@given(dims=any_dims())
def test_pruning_never_adds_work(dims: Dims) -> None:
    assert total(dims, pruned=True).flops <= total(dims, pruned=False).flops


@given(dims=any_dims())
def test_attention_at_all_rows_is_the_lower_triangle(dims: Dims) -> None:
    pairs = sum(query + 1 for query in range(dims.seq)) * dims.batch
    asked = work(dims, pruned=False)["attention"].flops
    assert asked == 4 * pairs * dims.d_model + 6 * pairs * dims.heads
