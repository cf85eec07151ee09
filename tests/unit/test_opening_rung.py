"""The rung that a session opens on: the first of an order of preference that can run here."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from gputop.backends.cuda.compiler.sources import Sources
from gputop.backends.cuda.refusal import refusal
from gputop.model.workloads import WORKLOADS
from gputop.plan.choices import RungView
from gputop.plan.types import Dims, PlanRequest
from gputop.planner.resolver import Resolver
from gputop.session.session import OPENING_RUNGS, opening_rung
from gputop.util.errors import UsageError

CATALOG = Resolver.load()
SOURCES = Sources((CATALOG.kernels_dir,))
SIZES = {workload.name: workload.dims for workload in WORKLOADS}
ODD = Dims(2, 72, 3, 200, 127, 77)


def why_not(catalog: Resolver, rung: str, dims: Dims, arch: str) -> str:
    try:
        plan = catalog.resolve(PlanRequest(rung), dims, "cuda")
    except UsageError as error:
        return str(error)
    kernels = (catalog.kernel(choice.kernel) for _, choice in plan.dispatch)
    return refusal(plan, kernels, arch, SOURCES) or ""


def views(dims: Dims, arch: str) -> tuple[RungView, ...]:
    """As a session on a device of this compute capability has them."""
    catalog = CATALOG.on(f"sm_{arch}")
    return tuple(
        RungView(rung.id, rung.number, rung.kind, rung.idea, why_not(catalog, rung.id, dims, arch))
        for rung in catalog.rungs_of("cuda")
    )


@pytest.mark.parametrize("arch", ["80", "86", "89", "90", "120"])
def test_without_cublaslt_it_is_the_next_best_and_never_the_last_of_the_ladder(
    monkeypatch: pytest.MonkeyPatch, arch: str
) -> None:
    monkeypatch.setitem(sys.modules, "nvmath", None)
    seen = views(SIZES["gpt2-small"], arch)
    assert any(view.id == "graph" and view.refused for view in seen)
    assert any(view.id == "megakernel" and not view.refused for view in seen)
    assert opening_rung("cuda", seen) == "dispatch"


def test_each_refused_rung_gives_way_to_the_one_after_it() -> None:
    seen = [RungView(rung.id, rung.number, rung.kind, rung.idea) for rung in CATALOG.rungs_of("cuda")]
    for refused in range(len(OPENING_RUNGS["cuda"])):
        out = OPENING_RUNGS["cuda"][:refused]
        able = [replace(view, refused="not here" if view.id in out else "") for view in seen]
        assert opening_rung("cuda", able) == OPENING_RUNGS["cuda"][refused]


@pytest.mark.parametrize("dims", [*SIZES.values(), ODD], ids=[*SIZES, "odd"])
def test_the_last_preference_needs_no_library_and_takes_any_sizes(dims: Dims) -> None:
    for rung in OPENING_RUNGS["cuda"][-2:]:
        plan = CATALOG.resolve(PlanRequest(rung), dims, "cuda")
        assert {CATALOG.kernel(choice.kernel).library for _, choice in plan.dispatch} == {""}


def test_every_preference_is_a_rung_of_its_ladder() -> None:
    for backend, preferred in OPENING_RUNGS.items():
        ladder = {rung.id for rung in CATALOG.rungs_of(backend) if rung.kind == "ladder"}
        assert set(preferred) <= ladder


def test_where_no_rung_can_run_that_is_said() -> None:
    oracle = RungView("oracle-fp32", 6, "oracle", "")
    with pytest.raises(UsageError, match="No rung of cuda can run here"):
        opening_rung("cuda", [oracle, RungView("naive", 1, "ladder", "", refused="no room")])
    assert opening_rung("other", [oracle, RungView("first", 1, "ladder", "")]) == "first"
