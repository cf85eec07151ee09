"""Two rungs of a recorded ladder against each other, and where a replay says what the ladder knows."""

from __future__ import annotations

from dataclasses import astuple, replace

import pytest

from gputop.cli import main
from gputop.plan.types import PlanRequest
from gputop.results import recording
from gputop.results.ladder import LadderEntry
from gputop.results.recording import Recording
from gputop.results.records import Gate, PlanResult, Window
from gputop.session.replay import Replay
from gputop.session.rung_ratio import RungPair, pair_of
from gputop.util import units
from gputop.util.interval import Interval


def entry(rung: str, first: float, half: float | None = 0.1, **fields: object) -> LadderEntry:
    """A rung that is `first` times faster than the ladder's first, give or take `half` of that."""
    lo, hi = (None, None) if half is None else (first * (1 - half), first * (1 + half))
    base = LadderEntry(
        rung, 1, "ladder", "", (), Gate("PASS", 1e-7, 1e-5), device_s=1.0 / first, batch=1,
        ratio_first=first, ratio_first_lo=lo, ratio_first_hi=hi,
    )  # fmt: skip
    return replace(base, **fields)  # type: ignore[arg-type]


FIRST = entry("a", 1.0, None)
B = entry("b", 2.0)
C = entry(
    "c", 3.0, before="b", ratio_before=1.51, ratio_before_lo=1.5, ratio_before_hi=1.52, verdict="FASTER"
)
D = entry("d", 6.0)


def test_a_pair_that_was_measured_stands_as_it_is() -> None:
    entries = (FIRST, B, C, D)
    assert pair_of(entries, "b", "c") == RungPair(Interval(1.51, 1.5, 1.52), "FASTER")
    whole = pair_of(entries, "a", "d")
    assert whole is not None
    assert (whole.gain, whole.through) == (D.ratio_first_interval, "")
    assert pair_of(entries, "b", "none") is None
    assert pair_of((FIRST, replace(B, device_s=None), C), "b", "c") is None


def test_what_was_not_paired_is_taken_through_the_first_with_a_wider_interval() -> None:
    entries = (FIRST, B, C, D)
    pair = pair_of(entries, "b", "d")
    assert pair is not None
    assert astuple(pair.gain) == pytest.approx((3.0, 5.4 / 2.2, 6.6 / 1.8))
    assert (pair.verdict, pair.through) == ("", "a")
    back = pair_of(entries, "d", "a")
    assert back is not None
    assert astuple(back.gain) == pytest.approx((1 / 6, 1 / 6.6, 1 / 5.4))
    assert pair_of((FIRST, B, entry("d", 6.0, None)), "b", "d") == RungPair(Interval(3.0), through="a")


@pytest.fixture(scope="module")
def shipped() -> Recording:
    return recording.read(recording.shipped()["h200"])


def few_rounds(kept: Recording) -> tuple[str, str]:
    """The first two rungs: the slowest pair, whose window had the fewest rounds."""
    assert kept.ladder is not None
    return kept.ladder.entries[0].rung, kept.ladder.entries[1].rung


def with_rounds(kept: Recording, rounds: int) -> Recording:
    """The recording as if the window of that pair had been held to so many rounds."""

    def held(window: Window) -> Window:
        found = window.comparison
        if found is None or (found.plan_a, found.plan_b) != few_rounds(kept):
            return window
        deltas = (
            replace(d, samples=rounds, verdict="UNRESOLVED", status="why", ratio_lo=None, ratio_hi=None)
            for d in found.deltas
        )
        return replace(window, comparison=replace(found, deltas=tuple(deltas)))

    return replace(kept, windows=tuple(map(held, kept.windows)))


def times(lane: PlanResult) -> list[float | None]:
    return [row.time_s for row in lane.rows]


def test_a_window_of_too_few_rounds_says_what_the_ladder_knows_of_its_pair(shipped: Recording) -> None:
    a, b = few_rounds(shipped)
    assert shipped.ladder is not None
    in_ladder = pair_of(shipped.ladder.entries, a, b)
    assert in_ladder is not None
    assert in_ladder.gain.is_known
    kept = with_rounds(shipped, 4)
    window = Replay(kept).measure(PlanRequest(b), PlanRequest(a))
    said = f"in the ladder {units.ratio_within(in_ladder.gain)}, faster"
    assert f"UNRESOLVED: why; {said} (A/A" in window.verdict
    recorded = next(w for w in kept.windows if w.number == window.number)
    assert window.comparison == recorded.comparison, "the window's own numbers stay"
    assert [times(lane) for lane in window.lanes] == [times(lane) for lane in recorded.lanes]
    assert said in Replay(kept).first_window(PlanRequest(b)).verdict


def test_a_window_that_is_unresolved_for_another_reason_stands_by_itself(shipped: Recording) -> None:
    a, b = few_rounds(shipped)
    for kept in (with_rounds(shipped, 8), replace(with_rounds(shipped, 4), ladder=None)):
        verdict = Replay(kept).measure(PlanRequest(b), PlanRequest(a)).verdict
        assert "UNRESOLVED: why (" in verdict


def test_compare_says_it_on_the_command_line(shipped: Recording, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = few_rounds(shipped)
    assert main(("compare", a, b, "--backend", "replay", "--device", "h200")) == 0
    out = capsys.readouterr().out
    assert ("in the ladder" in out) == ("too few rounds" in out)


def test_a_replay_without_the_first_rung_derives_what_stands_against_the_first_shown(
    shipped: Recording,
) -> None:
    assert shipped.ladder is not None
    path = ("dispatch", "cublaslt", "flash", "graph")
    pair = pair_of(shipped.ladder.entries, path[0], path[-1])
    assert pair is not None
    assert pair.through == "naive"
    assert pair.gain.is_known
    shown = Replay(shipped).measure_ladder([PlanRequest(rung) for rung in path])
    first, second, *_, last = shown.entries
    assert (first.ratio_first, first.through) == (1.0, "")
    assert second.through == "", "its own change is of this rung"
    assert (last.ratio_first, last.ratio_first_lo, last.through) == (pair.gain.value, pair.gain.lo, "naive")
    assert "derived from both against naive" in last.status
    assert first.device_s is not None
    assert last.device_s is not None
    assert last.saved_first_s == pytest.approx(first.device_s - last.device_s, rel=0.01)
    assert last.saved_first_s is not None
    assert last.saved_first_lo_s is not None
    assert last.saved_first_lo_s < last.saved_first_s
    whole = Replay(shipped).measure_ladder(())
    assert {entry.through for entry in whole.entries} == {""}
