"""A pass divided by what its kernels do: nothing is lost, the unknown stays so, the sentence is true."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.cli.tables.breakdown_lines import compared_lines, peer_lines, tuned_lines
from gputop.cli.terminal import Terminal
from gputop.phases import phases
from gputop.plan.types import KINDS, KernelKind
from gputop.results.breakdown import (
    CLASSES,
    difference_s,
    explain_difference,
    from_parts,
    from_rows,
    kind_of,
    known,
    total_s,
)
from gputop.results.ladder import LadderEntry
from gputop.results.records import (
    Breakdown,
    Comparison,
    Delta,
    DeviceFacts,
    Gate,
    Health,
    PlanResult,
    Row,
    Tuned,
    Window,
)

WIDE = Terminal()
GATE = Gate("PASS", 1e-4, 4e-3)
BASE = Row("s", "t", 1, 9, "cuda", "A GPU", None, "mini", 1, 128, "graph", "graph", "")
OURS = (
    replace(BASE, phase="ln1", kind="pointwise", time_s=20e-6, launches=12),
    replace(BASE, phase="qkv", kind="gemm", time_s=80e-6, launches=12),
    replace(BASE, phase="w1", kind="gemm", time_s=90e-6, launches=12),
    replace(BASE, phase="attention", kind="attention", time_s=50e-6, launches=12),
    replace(BASE, phase="sum", time_s=240e-6),
    replace(BASE, phase="gaps", time_s=30e-6),
    replace(BASE, phase="device", time_s=270e-6, launches=48),
)
THEIRS = (
    replace(BASE, phase="gemm", kind="gemm", time_s=180e-6, launches=24),
    replace(BASE, phase="attention", kind="attention", time_s=40e-6, launches=12),
    replace(BASE, phase="pointwise", kind="pointwise", time_s=100e-6, launches=60),
    replace(BASE, phase="other", kind="other", time_s=5e-6, launches=1, library_kernel="mystery_kernel"),
    replace(BASE, phase="gaps", time_s=35e-6),
    replace(BASE, phase="device", time_s=360e-6, launches=97),
)
parts = st.lists(st.tuples(st.sampled_from(KINDS), st.floats(1e-9, 1e-2)), min_size=1, max_size=20)
breakdowns = st.builds(
    Breakdown,
    st.integers(1, 300),
    *[st.floats(0, 1e-2)] * len(CLASSES),
)


def test_phases_add_up_by_kind_and_launches_and_gaps_come_from_the_totals() -> None:
    found = from_rows(OURS)
    assert (found.launches, found.gap_s, found.other_s) == (48, 30e-6, 0)
    assert found.gemm_s == pytest.approx(170e-6)
    assert found.attention_s == pytest.approx(50e-6)
    assert total_s(found) == pytest.approx(270e-6)


def test_a_kernel_of_unknown_kind_is_counted_and_named() -> None:
    found = from_rows(THEIRS)
    assert found.other_s == pytest.approx(5e-6)
    assert found.others == ("mystery_kernel",)


@given(parts)
def test_no_time_is_lost(given_parts: list[tuple[KernelKind, float]]) -> None:
    found = from_parts(given_parts, 0.0, 1)
    assert total_s(found) == pytest.approx(sum(time_s for _, time_s in given_parts))


@given(parts, st.sampled_from(KINDS))
def test_a_site_without_a_time_leaves_its_kind_unknown_and_no_other(
    given_parts: list[tuple[KernelKind, float]], kind: KernelKind
) -> None:
    found = from_parts([*given_parts, (kind, None)], 0.0, 1)
    assert getattr(found, f"{kind}_s") is None
    assert total_s(found) is None
    assert all(getattr(found, f"{other}_s") is not None for other in KINDS if other != kind)


def test_a_pass_that_was_not_split_is_unknown_and_says_what_it_takes() -> None:
    found = from_rows([replace(BASE, phase="device", time_s=1e-3)])
    assert not known(found)
    assert found.gemm_s is None
    assert "CUPTI" in found.status
    assert "not known" in explain_difference("a", from_rows(OURS), "b", found)


def test_what_fuses_a_norm_into_a_product_is_a_product_and_what_does_all_is_none_of_them() -> None:
    assert kind_of(["pointwise", "gemm"]) == "gemm"
    assert kind_of(["pointwise", "pointwise"]) == "pointwise"
    assert kind_of(["gemm", "attention"]) == "other"
    kinds = {phase.name: phase.kind for phase in phases()}
    assert {name for name, kind in kinds.items() if kind == "gemm"} == {"qkv", "wo", "w1", "w2", "head"}
    assert kinds["attention"] == "attention"


def test_the_sentence_says_which_class_holds_most_and_on_whose_side_it_lies() -> None:
    sentence = explain_difference("graph", from_rows(OURS), "torch", from_rows(THEIRS))
    assert sentence.startswith("torch takes 90.0 µs more than graph: +80.0 µs pointwise")
    assert "less 10.0 µs attention" in sentence
    assert sentence.endswith("Most of it is pointwise; by side it lies in organisation.")


@given(breakdowns, breakdowns)
def test_the_sentence_is_the_same_from_either_end(a: Breakdown, b: Breakdown) -> None:
    assert explain_difference("a", a, "b", b) == explain_difference("b", b, "a", a) or total_s(a) == total_s(
        b
    )


@given(breakdowns, breakdowns)
def test_differences_add_up_to_that_of_the_whole(a: Breakdown, b: Breakdown) -> None:
    apart = sum(difference_s(a, b, part) or 0.0 for part in CLASSES)
    assert apart == pytest.approx((total_s(b) or 0.0) - (total_s(a) or 0.0), abs=1e-12)


def lane(role: str, rows: tuple[Row, ...], **fields: object) -> PlanResult:
    name = "graph" if role == "pinned" else "torch-compile"
    base = PlanResult(name, name, "current", GATE, 3e-4, 4e-4, 1e-5, False, rows)
    return replace(base, role=role, **fields)  # type: ignore[arg-type]


def delta(phase: str) -> Delta:
    return Delta(phase, 3e-4, 4e-4, 1e-4, 9e-5, 1.1e-4, 0.75, 0.74, 0.76, 20, 0.003, "SLOWER")


def test_two_plans_without_a_phase_in_common_are_set_side_by_side_by_kind() -> None:
    lanes = (lane("current", THEIRS), lane("pinned", OURS))
    window = Window(1, "t", 1.0, DeviceFacts("cuda", "A GPU"), Health(), "mini", lanes)
    pair = Comparison("graph", "torch-compile", 1, (delta("device"), delta("wall"), delta("attention")))
    lines = compared_lines(window, pair, WIDE)
    by_name = {line.split("  ")[0]: line.split() for line in lines if line}
    assert by_name["launches"] == ["launches", "48", "97", "+49"]
    assert by_name["gemm"][1:] == ["170", "µs", "180", "µs", "+10.0", "µs"]
    assert by_name["gaps"][1:] == ["30.0", "µs", "35.0", "µs", "+5.00", "µs"]
    assert any("mystery_kernel" in line for line in lines)
    assert "organisation" in lines[-1]
    with_phases = replace(pair, deltas=(*pair.deltas, delta("w1")))
    assert compared_lines(window, with_phases, WIDE) == []


def test_without_records_the_table_has_dashes_and_the_reason() -> None:
    lanes = (lane("current", THEIRS[-1:]), lane("pinned", OURS))
    window = Window(1, "t", 1.0, DeviceFacts("cuda", "A GPU"), Health(), "mini", lanes)
    lines = compared_lines(window, Comparison("graph", "torch-compile", 1, (delta("device"),)), WIDE)
    assert next(line for line in lines if line.startswith("gemm")).split()[3:] == ["–", "–"]
    assert any("CUPTI" in line for line in lines)


def test_a_ladder_shows_its_peers_by_kind_against_their_forecast() -> None:
    own = LadderEntry("graph", 15, "ladder", "idea", (), GATE, 270e-6, batch=1, breakdown=from_rows(OURS))
    peer = LadderEntry(
        "torch-compile", 13, "peer", "idea", (), GATE, 360e-6, 6e-4, batch=1, breakdown=from_rows(THEIRS),
        forecast_s=300e-6, forecast_from="147 launches", host_bound=True,
    )  # fmt: skip
    lines = peer_lines((own, peer), WIDE)
    assert "torch-compile: forecast 300 µs, measured 360 µs, 1.20× the forecast" in lines
    assert peer.breakdown is not None
    assert f"  measured {peer.breakdown.launches} launches; forecast from 147 launches" in lines
    unknown = replace(peer, breakdown=replace(peer.breakdown, launches=None))
    assert "  from 147 launches" in peer_lines((own, unknown), WIDE)
    assert any(line.startswith("torch-compile takes 90.0 µs more than graph") for line in lines)
    assert "torch-compile is host-bound: 600 µs as used" in lines
    assert peer_lines((own,), WIDE) == []
    assert any("not forecast" in line for line in peer_lines((replace(peer, forecast_s=None),), WIDE))


def test_trials_are_shown_as_ratios_and_never_as_times() -> None:
    item = Tuned("addmm", "128x768, 768x2304", 20, "triton_mm_7", "triton_mm_3", 1.02, "bias_addmm", 1.31)
    text = "\n".join(tuned_lines("torch-max-autotune", (item,), WIDE))
    assert "1.02×" in text
    assert "1.31×" in text
    assert "µs" not in text
    assert tuned_lines("torch-compile", (), WIDE) == []
