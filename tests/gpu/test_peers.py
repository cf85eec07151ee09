"""Frameworks opened up: their kernels by kind add up to the pass, and a compiler's own trials are read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from gputop.cli.tables.breakdown_lines import compared_lines
from gputop.cli.terminal import Terminal
from gputop.plan.types import PlanRequest
from gputop.results.breakdown import explain_difference, from_rows, total_s
from gputop.results.records import PlanResult, Row, Window
from gputop.session.session import Session
from tests.gpu.plans import STANDARD, catalog, skip_refused

PEERS = tuple(rung.id for rung in catalog().rungs_of("cuda") if rung.kind == "peer")
COMPILED = "torch-compile"
TUNED = "torch-max-autotune"
APART = 0.2
"""Share of the pass by which kernels and gaps under CUPTI may differ from the pass without it."""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with pytest.MonkeyPatch.context() as patch:
        # A compiler that finds its choices in a cache makes no trials, and so writes of none.
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("inductor")))
        opened = Session.open("cuda", STANDARD["mini"])
        yield opened
        opened.close()


def measured(session: Session, current: str, pinned: str | None = None) -> Window:
    skip_refused(session, PlanRequest(current))
    return session.measure(PlanRequest(current), PlanRequest(pinned) if pinned else None, seconds=2.0)


def rows_of(lane: PlanResult | None) -> dict[str, Row]:
    assert lane is not None
    assert lane.gate.ok, lane.gate.where
    rows = {row.phase: row for row in lane.rows}
    if "gemm" not in rows:
        pytest.skip(from_rows(lane.rows).status)
    return rows


@pytest.mark.parametrize("peer", PEERS)
def test_kernels_by_kind_and_gaps_add_up_to_the_pass(session: Session, peer: str) -> None:
    rows = rows_of(measured(session, peer).lane("current"))
    assert rows["gemm"].timer == "cupti"
    parts = from_rows(rows.values())
    device_s, together_s = rows["device"].time_s, total_s(parts)
    assert device_s is not None
    assert together_s is not None
    assert abs(together_s / device_s - 1) < APART, (parts, device_s)


@pytest.mark.parametrize("peer", PEERS)
def test_every_kernel_of_a_framework_is_of_a_known_kind(session: Session, peer: str) -> None:
    rows = rows_of(measured(session, peer).lane("current"))
    parts = from_rows(rows.values())
    assert not parts.others, parts.others
    assert parts.launches
    # Two layers: four products each, and the logits'; attention in each. A tuning compiler may write the
    # logits' product, of one row, into the reduction before it.
    assert (rows["gemm"].launches or 0) >= (8 if peer == TUNED else 9), rows["gemm"]
    assert "attention" in rows, {phase: row.library_kernel for phase, row in rows.items()}


def test_a_compiled_pass_launches_less_than_an_eager_one(session: Session) -> None:
    eager, compiled = (from_rows(rows_of(measured(session, p).lane("current")).values()) for p in PEERS[:2])
    assert (compiled.launches or 0) < (eager.launches or 0)


def test_a_pass_of_ours_and_a_frameworks_are_set_side_by_side(session: Session) -> None:
    window = measured(session, COMPILED, "graph")
    theirs, ours = rows_of(window.lane("current")), rows_of_ours(window)
    assert window.comparison is not None
    lines = compared_lines(window, window.comparison, Terminal())
    said = explain_difference("graph", from_rows(ours), COMPILED, from_rows(theirs.values()))
    assert lines[-1] == said
    assert "by side it lies in" in said


def rows_of_ours(window: Window) -> tuple[Row, ...]:
    lane = window.lane("pinned")
    assert lane is not None
    assert all(row.kind for row in lane.rows if row.count)
    return lane.rows


def test_trials_are_read_product_by_product(session: Session) -> None:
    lane = measured(session, TUNED).lane("current")
    assert lane is not None
    assert lane.tuned, "no trial was read: the log's form, or where it is written to, is another one"
    dims = STANDARD["mini"].dims
    wide = f"{dims.d_model}x{3 * dims.d_model}"
    assert any(wide in item.sizes for item in lane.tuned), lane.tuned
    assert any(item.library for item in lane.tuned), "all choices are asked for, the library's too"
    for item in lane.tuned:
        assert item.choices >= 1
        assert all(ratio is None or ratio >= 1 for ratio in (item.second_ratio, item.library_ratio))


def test_two_compiled_peers_live_side_by_side_and_one_outlives_the_other(session: Session) -> None:
    for first, second in pairwise((COMPILED, TUNED, COMPILED)):
        window = measured(session, first, second)
        assert all(lane.gate.ok for lane in window.lanes), [lane.gate.where for lane in window.lanes]


def test_a_ladder_forecasts_its_peers_and_divides_every_rung(session: Session) -> None:
    ladder = session.measure_ladder([PlanRequest("flash"), PlanRequest("graph"), PlanRequest(COMPILED)], 4.0)
    *ours, peer = ladder.entries
    if peer.device_s is None:
        pytest.skip(peer.gate.where)
    assert peer.forecast_s
    assert peer.forecast_from
    for entry in ours:
        assert entry.breakdown is not None
        assert entry.breakdown.gemm_s
        assert entry.model_s
