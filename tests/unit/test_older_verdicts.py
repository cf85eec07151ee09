"""What an old recording calls the same, beside how well it knew copies of one plan."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gputop.results import recording
from gputop.results.ladder import Ladder
from gputop.results.older_verdicts import rejudged_ladder, rejudged_window
from gputop.results.records import Comparison, Delta, DeviceFacts, Health, Window


def delta(floor: float, samples: int, within: float | None = None) -> Delta:
    return Delta(
        "device", 1e-3, 1e-3, 0.0, 0.0, 0.0, 1.0, 0.999, 1.001, samples, floor, "SAME", same_within=within
    )


def window(told: Delta) -> Window:
    words = "a -> b: 1.00 ms -> 1.00 ms, 1.00× [0.999, 1.00], SAME (A/A floor of 2.7 %)"
    facts = DeviceFacts("cuda", "a card")
    return Window(1, "", 1.0, facts, Health(), "mini", (), Comparison("a", "b", 1, (told,)), verdict=words)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (delta(0.0271, 40), "within the A/A floor of 2.7 %, which says too little of copies"),
        (delta(0.004, 9), "too few rounds to be the same: 9 of at least 12"),
        (delta(0.004, 40), ""),
        (delta(0.0271, 40, within=0.02), ""),
    ],
)
def test_the_same_needs_a_floor_that_is_known(told: Delta, said: str) -> None:
    shown = window(told)
    after = rejudged_window(shown)
    assert after.comparison is not None
    (found,) = after.comparison.deltas
    assert (found.verdict, found.status) == (("UNRESOLVED", said) if said else ("SAME", ""))
    assert after.verdict == shown.verdict.replace("SAME", f"UNRESOLVED: {said}" if said else "SAME")


def test_no_pair_of_rungs_has_two_words_that_contradict_each_other() -> None:
    """In the shipped recordings' windows and ladders: one may know what another could not tell."""
    words: dict[frozenset[str], set[str]] = {}
    for path in recording.shipped().values():
        kept = recording.read(path)
        entries = kept.ladder.entries if kept.ladder else ()
        told = [(entry.before, entry.rung, entry.verdict) for entry in entries if entry.before]
        for shown in kept.windows:
            device = shown.comparison.get("device") if shown.comparison else None
            if shown.comparison is not None and device is not None:
                told.append((shown.comparison.plan_a, shown.comparison.plan_b, device.verdict))
        for a, b, verdict in told:
            turned = {"FASTER": "SLOWER", "SLOWER": "FASTER"}.get(verdict, verdict) if a > b else verdict
            words.setdefault(frozenset((a, b)), set()).add(turned)
    assert len(words) > 40
    for pair, said in words.items():
        assert len(said - {"UNRESOLVED"}) <= 1, (sorted(pair), said)


def test_a_ladder_is_read_as_its_windows_are() -> None:
    kept = recording.read(recording.shipped()["h200"]).ladder
    assert kept is not None
    wmma = next(entry for entry in kept.entries if entry.rung == "wmma")
    assert wmma.verdict == "UNRESOLVED"
    assert "A/A floor of 2.7 %" in wmma.status
    quiet = replace(wmma, verdict="SAME", aa_floor=0.004)
    again = rejudged_ladder(Ladder(kept.time_utc, kept.device, kept.workload, (quiet,)))
    assert again.entries[0].verdict == "SAME"
