"""Rungs that a user saved: each is of its own device, and a broken file costs itself alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from gputop.model.workloads import parse_workload
from gputop.plan.types import PlanRequest
from gputop.planner.registry import Registry
from gputop.planner.resolver import Resolver
from gputop.planner.saved_rungs import FOLDER, SavedRung, save, saved_for
from gputop.util import paths

MINE = SavedRung(
    name="mine", backend="cpu", device="a CPU", workload="tiny", time_utc="2026-01-02T03:04:05+00:00",
    before="cpu-loops", sets={"fold": "on"}, uses={"w2": "cpu_blas_gemm"},
)  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "data_dir", lambda: tmp_path)
    return tmp_path / FOLDER


def test_it_is_a_rung_of_the_device_that_it_was_found_on_and_of_no_other() -> None:
    save(MINE)
    registry = Registry.load()
    (rung,) = saved_for(registry, "cpu", "a CPU").rungs
    assert (rung.id, rung.before) == ("mine", "cpu-loops")
    assert rung.idea == "Found by a search from cpu-loops,fold=on on a CPU, tiny, 2026-01-02."
    assert saved_for(registry, "cpu", "another CPU").rungs == ()
    assert saved_for(registry, "cuda", "a CPU").rungs == ()


def test_its_plan_is_the_one_that_was_saved_and_one_may_be_the_change_of_another() -> None:
    later = msgspec.structs.replace(MINE, name="a-later-one", before="mine", sets={}, time_utc="2026-02-03")
    save(msgspec.structs.replace(later, uses={"w1": "cpu_blas_gemm"}))
    save(MINE)
    resolver = Resolver.load()
    saved = saved_for(resolver, "cpu", "a CPU")
    plan = replace(resolver, rungs=(*resolver.rungs, *saved.rungs)).resolve(
        PlanRequest("a-later-one"), parse_workload("tiny").dims, "cpu"
    )
    table = {site: str(choice) for site, choice in plan.dispatch}
    assert plan.fold
    assert (table["w1"], table["w2"], table["wo"]) == ("cpu_blas_gemm", "cpu_blas_gemm", "cpu_loops_gemm")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"no json", "malformed"),
        (msgspec.json.encode(msgspec.structs.replace(MINE, before="cpu-lops")), "Did you mean 'cpu-loops'"),
        (msgspec.json.encode(msgspec.structs.replace(MINE, before="naive")), "runs on cuda, not on cpu"),
        (msgspec.json.encode(msgspec.structs.replace(MINE, uses={"w2": "gone"})), "Unknown kernel 'gone'"),
        (msgspec.json.encode(msgspec.structs.replace(MINE, sets={"fold": "maybe"})), "fold is one of"),
    ],
)
def test_a_file_that_gives_no_rung_says_why_and_costs_the_others_nothing(
    folder: Path, content: bytes, why: str
) -> None:
    save(MINE)
    (folder / "broken.json").write_bytes(content)
    saved = saved_for(Registry.load(), "cpu", "a CPU")
    assert [rung.id for rung in saved.rungs] == ["mine"]
    ((file, reason),) = saved.unread.items()
    assert file.endswith("broken.json")
    assert why in reason
