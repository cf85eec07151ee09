"""Flips in the shipped recordings lead to what was measured, under whatever name it was."""

from __future__ import annotations

from functools import cache

import pytest

from gputop.plan.choices import ToggleView
from gputop.plan.plan_string import parse_word
from gputop.plan.types import PlanRequest
from gputop.session.replay import Replay
from gputop.util.errors import UsageError


@cache
def replay(name: str = "h200") -> Replay:
    return Replay.open(name)


def toggles(rung: str, name: str = "h200") -> dict[str, ToggleView]:
    return {toggle.name: toggle for toggle in replay(name).view(parse_word(rung)).toggles}


@pytest.mark.parametrize(
    ("asked", "measured"),
    [
        ("graph,pdl=on", "dependent"),
        ("dependent,pdl=off", "graph"),
        ("graph,graph=off", "flash"),
        ("flash,graph=on", "graph"),
        ("oracle-tf32,math=fp32", "oracle-fp32"),
        ("oracle-fp32,math=tf32", "oracle-tf32"),
        ("flash,attention:attention_parallel", "cublaslt"),
        ("cublaslt,attention:attention_flash_tensor", "flash"),
        ("graph,batch=32", "batch"),
        ("graph", "graph"),
        ("torch-eager", "torch-eager"),
    ],
)
def test_a_flip_leads_to_the_plan_that_it_makes(asked: str, measured: str) -> None:
    view = replay().view(parse_word(asked))
    assert (view.word, view.request) == (measured, PlanRequest(measured))
    assert replay().measure(parse_word(asked)).lanes[0].plan == measured
    assert replay().check(parse_word(asked)).ok


@pytest.mark.parametrize(
    ("rung", "toggle", "value"),
    [("graph", "pdl", "on"), ("oracle-tf32", "math", "fp32"), ("graph", "graph", "off")],
)
def test_what_was_measured_under_another_name_is_not_refused(rung: str, toggle: str, value: str) -> None:
    assert value not in dict(toggles(rung)[toggle].refused)


def test_each_value_that_is_not_refused_leads_to_a_measured_plan() -> None:
    for name in ("h200", "h200-fp32", "h200-products"):
        for rung in (view.id for view in replay(name).rung_views() if not view.refused):
            here = replay(name).view(PlanRequest(rung))
            for toggle in here.toggles:
                refused = dict(toggle.refused)
                for value in set(toggle.values) - set(refused):
                    found = replay(name).view(here.request.with_set(toggle.name, value))
                    there = {view.name: view.value for view in found.toggles}
                    assert there[toggle.name] == value, (name, rung, toggle.name)


def test_a_number_flips_to_those_that_were_measured_and_to_no_other() -> None:
    assert toggles("graph")["batch"].values == ("1", "32")
    assert toggles("naive")["batch"].values == ()
    assert toggles("naive")["batch"].refused
    with pytest.raises(UsageError, match="was not recorded"):
        replay().view(parse_word("naive,batch=2"))


def test_a_sites_kernels_are_those_that_lead_to_a_measured_plan() -> None:
    found = replay().choices(PlanRequest("flash"), "attention")
    requests = {str(candidate.choice): str(candidate.request) for candidate in found.candidates}
    assert requests == {"attention_flash_tensor": "flash", "attention_parallel": "cublaslt"}
    assert dict(found.refused)["attention_naive"] == "not in this recording"
    views = {site.site: site for site in replay().view(PlanRequest("flash")).sites}
    assert views["attention"].others == ("attention_parallel",)
    assert views["attention@1"].others == views["w2"].others == ()
    with pytest.raises(UsageError, match="Unknown site 'w3'"):
        replay().choices(PlanRequest("flash"), "w3")


def test_kernels_of_a_recording_are_named_as_today() -> None:
    kernels = {str(site.kernel) for site in replay().view(PlanRequest("hopper")).sites}
    assert {"gemm_warpgroup_80/4", "gemm_warpgroup_56/8"} <= kernels
    rows = replay().measure(PlanRequest("hopper")).lanes[0].rows
    assert {"gemm_warpgroup_80/4", "gemm_warpgroup_56/8"} <= {row.kernel for row in rows}
    entry = next(e for e in replay().measure_ladder(()).entries if e.rung == "split-k")
    assert {"gemm_split_k/4", "gemm_split_k/8"} <= set(entry.kernels)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ("graph,pdl=maybe", "pdl is one of on, off"),
        ("graph,pld=on", "Did you mean 'pdl'"),
        ("graph,prune=off", "was not recorded"),
        ("graph,w2:cublas", "was not recorded"),
        ("graph,w9:cublas", "was not recorded"),
    ],
)
def test_what_was_not_measured_is_refused(asked: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        replay().view(parse_word(asked))
