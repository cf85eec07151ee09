"""Proofs of the instrument: what windows show is held against what was asked, and kept between runs."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.proofs.__main__ import main
from benchmarks.proofs.evidence import Evidence, Measured, read_evidence
from benchmarks.proofs.findings import findings
from benchmarks.proofs.page import proofs_page
from benchmarks.proofs.spin import LARGE, SMALL, WAITS, with_wait
from benchmarks.proofs.watched import shown_window
from benchmarks.proofs.windows import COPIES, STATES
from gputop.plan.types import Verdict
from gputop.results.records import Delta

SAME = Delta("device", 1e-3, 1e-3, 0.0, -1e-6, 1e-6, 1.0, 0.999, 1.001, 20, 0.003, "SAME", "", 0.003)


def evidence(part: str, *windows: Measured) -> Evidence:
    return Evidence(part, "2026-01-02T03:04:05+00:00", 1.0, "graph", "cuda", "A GPU", "580", "cupy 14",
                    "0.1.0", "gpt2-small", windows)  # fmt: skip


def measured(label: str, delta: Delta, expected_ratio: float | None = None) -> Measured:
    return Measured(label, delta.b_s or 0.0, delta, 5e-7, expected_ratio)


def said(delta: Delta, verdict: Verdict) -> Delta:
    return replace(delta, verdict=verdict)


def longer(share: float, half_width: float) -> Delta:
    """The second plan takes this share longer."""
    ratio = 1 / (1 + share)
    return replace(
        SAME, b_s=1e-3 * (1 + share), ratio=ratio, ratio_lo=ratio - half_width, ratio_hi=ratio + half_width,
        verdict="SLOWER", same_within=None,
    )  # fmt: skip


def held(kept: Evidence) -> list[bool | None]:
    return [finding.holds for finding in findings(kept)]


def test_copies_hold_if_none_is_told_apart_and_most_are_the_same() -> None:
    windows = [measured("copies", SAME)] * COPIES
    unresolved = measured("copies", said(SAME, "UNRESOLVED"))
    assert held(evidence("copies", *windows)) == [True, True]
    assert held(evidence("copies", *windows[11:], *[unresolved] * 11)) == [True, False]
    assert held(evidence("copies", *windows[1:], measured("copies", said(SAME, "FASTER")))) == [False, True]
    loud = measured("copies", replace(SAME, same_within=0.006, aa_floor=0.006))
    assert held(evidence("copies", *[loud] * COPIES)) == [True, False]


def test_too_few_windows_prove_nothing_but_one_that_fails_does() -> None:
    few = [measured("copies", SAME)] * (COPIES - 1)
    assert held(evidence("copies", *few)) == [None, None]
    assert held(evidence("copies", measured("copies", said(SAME, "SLOWER")))) == [False, None]
    assert held(evidence("spin")) == [None, None]
    assert held(evidence("state", Measured(STATES[0], 1e-3))) == [None]


@pytest.mark.parametrize(("apart", "holds"), [(1.004, True), (1.006, False)])
def test_a_plan_takes_the_same_time_in_every_state(apart: float, holds: bool) -> None:
    times = zip(STATES, (1e-3, 1e-3, apart * 1e-3), strict=True)
    kept = evidence("state", *(Measured(label, time_s) for label, time_s in times))
    assert held(kept) == [holds]


def test_a_wait_is_found_each_time_and_the_small_one_by_all_windows() -> None:
    large = [measured(LARGE.label, longer(0.01, 0.001), 1 / 1.01)] * LARGE.windows

    def small(share: float, half_width: float = 0.001) -> list[Measured]:
        return [measured(SMALL.label, longer(share, half_width), 1 / 1.002)] * SMALL.windows

    assert held(evidence("spin", *large, *small(0.002))) == [True, True]
    assert held(evidence("spin", *large, *small(0.0))) == [True, False]
    assert held(evidence("spin", *large, *small(0.004))) == [True, False]
    missed = measured(LARGE.label, said(longer(0.01, 0.02), "UNRESOLVED"))
    assert held(evidence("spin", missed, *large[1:], *small(0.002))) == [False, True]


def test_a_template_that_has_changed_gets_no_wait() -> None:
    with pytest.raises(ValueError, match="no line"):
        with_wait("void another(void) {}", WAITS["cpu"], 100)


def test_the_time_of_another_window_is_not_read() -> None:
    screen = " A GPU · cuda · ● measuring · window 7, 2 s ago\n graph  452 µs    6.2× its floor"
    number, time_s = shown_window(screen, "graph")
    assert number == "7"
    assert time_s == pytest.approx(452e-6)
    assert shown_window(screen, "hopper")[1] is None
    assert (
        shown_window(screen.replace(" graph  452 µs", " ⠋ graph  its window is under way"), "graph")[1]
        is None
    )


def test_a_part_that_was_stopped_goes_on_and_its_page_says_what_it_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "proofs.json"
    options = ["--backend", "cpu", "--workload", "tiny", "--seconds", "0.1"]
    part = "spin" if shutil.which("cc") else "copies"
    for _ in range(2):
        assert main([str(file), part, *options]) == 0
    kept = read_evidence(file)
    assert len(kept[part].windows) == 2
    assert all(window.delta is not None for window in kept[part].windows)
    assert "undecided" in capsys.readouterr().out
    page = proofs_page(kept)
    assert "2 windows" in page
    assert all(finding.found in page for finding in findings(kept[part]))


def test_a_part_that_this_backend_can_not_show_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [str(tmp_path / "p.json"), "split", "--backend", "cpu", "--workload", "tiny"]
    assert main(command) == 2
    assert "divides a product" in capsys.readouterr().err
