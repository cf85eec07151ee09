"""A ladder, what its changes saved, a routing and a batch sweep as a person reads them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.cli.batch_sweep import batch_lines, batch_list, forecast_ratio
from gputop.cli.tables.attribution import attribution_lines, saved_time
from gputop.cli.tables.kernel_selection_lines import routing_lines
from gputop.cli.tables.ladder_lines import hit_word, ladder_lines, other_sites, score_lines
from gputop.cli.terminal import Terminal
from gputop.results import recording
from gputop.results.kernel_selection import Route, Routing, headroom, judged
from gputop.results.ladder import Ladder, LadderEntry, PredictedGain
from gputop.results.records import DeviceFacts, Gate
from gputop.util.interval import Interval

WIDE = Terminal()
DEVICE = DeviceFacts("cpu", "A Processor", versions="numpy 2")
PASS = Gate("PASS", 2e-7, 1e-5, (0.095916, 0.033))
FAIL = Gate("FAIL", 0.5, 1e-5, where="w2 of layer 1 is off by 0.5, 1e-05 allowed")


def entry(rung: str, device_s: float | None, gate: Gate = PASS, **fields: object) -> LadderEntry:
    base = LadderEntry(rung, 1, "ladder", f"the idea of {rung}", ("gemm",), gate, device_s=device_s, batch=1)
    return replace(base, **fields)  # type: ignore[arg-type]


def ladder(*entries: LadderEntry) -> Ladder:
    return Ladder("t", DEVICE, "tiny", entries)


A = entry("a", 8e-3, ratio_first=1.0)
B = entry(
    "b", 4e-3, before="a", ratio_before=2.0, ratio_before_lo=1.9, ratio_before_hi=2.1, ratio_first=2.0,
    predicted=1.6, predicted_lo=1.25, predicted_hi=2.0, source="floor", hit=True,
    saved_s=4e-3, saved_lo_s=3e-3, saved_hi_s=5e-3, saved_first_s=4e-3,
    kernels=("gemm", "tiled", "library"), files=("", "gemm/03_tiled.cu", ""),
)  # fmt: skip
C = entry(
    "c", 5e-3, before="b", ratio_before=0.8, predicted=1.25, predicted_lo=1.0, predicted_hi=2.0,
    source="intuition", hit=False, saved_s=-1e-3, saved_lo_s=-2e-3, saved_hi_s=0.0,
    ratio_first=1.6, saved_first_s=3.1e-3, saved_first_lo_s=2.5e-3, saved_first_hi_s=3.5e-3,
)  # fmt: skip


def line(lines: list[str], start: str) -> str:
    return next(line for line in lines if line.startswith(start))


def test_a_rung_shows_its_prediction_beside_its_gain_and_the_file_that_it_brings() -> None:
    row = next(line for line in ladder_lines(ladder(A, B, C), WIDE) if " b " in line)
    for part in ("2.00× [1.90, 2.10]", "1.60× [1.25, 2.00] floor", "hit", "gemm/03_tiled.cu library"):
        assert part in row
    assert row.split()[-1] == "library", "a kernel of the rung before is not new"


def test_a_ratio_against_another_rung_than_the_one_above_names_it() -> None:
    peer = entry("peer", 6e-3, before="a", ratio_before=1.33)
    lines = ladder_lines(ladder(A, B, C, peer), WIDE)
    assert other_sites((A, B, C, peer)) == ("", "", "", "a")
    assert other_sites((B, C)) == ("a", ""), "the rung before is not shown"
    assert "* 1.33×" in next(line for line in lines if " peer " in line)
    assert "  * vs before, not the row above: peer against a" in lines
    both = ladder_lines(ladder(A, B, replace(C, before="a"), peer), WIDE)
    assert "  * vs before, not the row above: c, peer against a" in both
    assert not any("*" in line for line in ladder_lines(ladder(A, B, C), WIDE))


@pytest.mark.parametrize("width", [80, 100])
def test_a_mark_takes_no_column_of_the_table(width: int) -> None:
    shipped = recording.read(recording.shipped()["h200"]).ladder
    assert shipped is not None
    lines = ladder_lines(shipped, Terminal(width=width))
    titles = "rung device vs before" if width == 80 else "rung device vs first vs before predicted"
    assert " ".join(lines[2].split()) == titles
    assert max(map(len, lines[2 : 3 + len(shipped.entries)])) <= width


def test_a_prediction_is_undecided_where_the_gains_interval_straddles_its_bound() -> None:
    assert [hit_word(each) for each in (A, B, C)] == ["", "hit", "miss"]
    assert hit_word(replace(B, hit=None)) == "undecided"
    assert hit_word(replace(B, hit=None, ratio_before=None)) == "", "nothing was measured"


def test_hits_are_counted_by_what_the_prediction_rests_on() -> None:
    assert score_lines((A, B, C)) == [
        "predictions held: 1 of 2 · floor 1 of 1 · intuition 0 of 1 "
        "· by the gain alone where it has no interval"
    ]
    assert score_lines((A, B)) == ["predictions held: 1 of 1 · floor 1 of 1"]
    assert score_lines((A, replace(B, hit=None))) == []
    assert score_lines((A,)) == []


REVISED = replace(
    B, foretold=PredictedGain(1.1, 0.9, 1.2, "phase table", "when it took other kernels", hit=False)
)
"""Hit by what is predicted, missed by what was first predicted: 8 ms less what 1.1 times faster leaves."""


def test_what_was_first_predicted_of_a_revised_prediction_stays_and_counts() -> None:
    lines = ladder_lines(ladder(A, REVISED), WIDE)
    assert "  b: revised when it took other kernels; first 1.10× [0.900, 1.20] phase table, miss" in lines
    assert lines[-1] == (
        "predictions held: 1 of 1; 0 of 1 by what was first predicted (revised: b) · floor 1 of 1"
    )
    unsure = replace(REVISED, foretold=replace(REVISED.foretold, hit=None))  # type: ignore[type-var]
    assert "; 0 of 0 by" in score_lines((A, unsure))[0]
    saved_time = attribution_lines(ladder(A, REVISED), WIDE)
    assert "saved 133 % of what was predicted in all" in saved_time
    assert "saved 550 % of what was first predicted (b revised)" in saved_time
    assert not any("first predicted" in each for each in attribution_lines(ladder(A, B), WIDE))


def test_what_each_change_saved_is_shown_beside_its_prediction() -> None:
    lines = attribution_lines(ladder(A, B, C), WIDE)
    first = line(lines, "a -> b")
    assert "+4.00 ms  [+3.00 ms, +5.00 ms]" in first
    assert "+3.00 ms  [+1.60 ms, +4.00 ms]" in first, "8 ms less what 1.6, 1.25 and 2 times faster leave"
    assert line(lines, "sum").split()[4:6] == ["+3.00", "ms"]
    assert "[+1.00 ms, +5.00 ms]" in line(lines, "sum")
    assert "+3.10 ms  [+2.50 ms, +3.50 ms]" in line(lines, "a -> c")
    assert "the changes add up to -100 µs beside the direct measurement" in lines


def test_a_saving_of_which_nothing_is_known_has_no_interval() -> None:
    first, then = entry("a", 4e-3), replace(B, saved_lo_s=-4.0, saved_hi_s=4.0)
    assert saved_time(first, replace(then, ratio_before_lo=1e-9, ratio_before_hi=1e9)) == Interval(4e-3)
    assert saved_time(first, replace(then, ratio_before_lo=0.9, ratio_before_hi=9.0)) == Interval(
        4e-3, -4.0, 4.0
    )


def test_what_is_derived_through_another_rung_is_not_called_measured() -> None:
    lines = attribution_lines(ladder(A, B, replace(C, through="naive")), WIDE)
    assert "derived from both against naive" in line(lines, "a -> c")
    assert "the changes add up to -100 µs beside what is derived of the whole" in lines
    assert not any("direct" in each for each in lines)


def test_a_peer_is_held_against_both_ends() -> None:
    peer = entry("torch", 10e-3, kind="peer")
    assert attribution_lines(ladder(A, B, peer), WIDE)[-1] == (
        "torch: 10.0 ms · 1.25× the time of a · 2.50× the time of b"
    )
    failed = attribution_lines(ladder(A, B, entry("torch", None, FAIL, kind="peer")), WIDE)[-1]
    assert failed.startswith("torch: no time · w2 of layer 1 is off")


def test_a_rung_that_failed_banks_nothing_known() -> None:
    measured = ladder(A, entry("b", None, FAIL), replace(C, before="a"))
    lines = attribution_lines(measured, WIDE)
    assert line(lines, "b -> c").split()[3] == "–", "it was held against a"
    assert "0.800×" not in line(lines, "b -> c")
    assert line(lines, "a -> b").split()[3] == "–"
    assert line(lines, "sum").split()[4:6] == ["–", "–"]
    assert any("off by 0.5" in line for line in ladder_lines(measured, WIDE))


def own(ratio: float | None = 1.0) -> Route:
    return Route("w2", "ours", library=False, incumbent=True, time_s=2e-4, ratio=ratio)


def candidate(kernel: str, ratio: float, verdict: str, *, library: bool = False) -> Route:
    route = Route("w2", kernel, library, incumbent=False, time_s=2e-4 / ratio, ratio=ratio, aa_floor=0.02)
    return replace(route, verdict=verdict)  # type: ignore[arg-type]


def standings(*routes: Route) -> dict[str, str]:
    return {route.kernel: route.standing for route in judged(routes)}


def test_the_plans_own_kernel_stays_where_nothing_is_known_to_beat_it() -> None:
    found = standings(own(), candidate("same", 1.01, "SAME"), candidate("maybe", 1.3, "UNRESOLVED"))
    assert found == {"ours": "winner", "same": "tie", "maybe": ""}


def test_the_fastest_wins_and_what_is_as_fast_as_the_noise_ties_with_it() -> None:
    found = standings(
        own(),
        candidate("near", 1.49, "FASTER"),
        candidate("best", 1.5, "FASTER"),
        candidate("behind", 1.2, "FASTER"),
        candidate("slow", 0.5, "SLOWER"),
    )
    assert found == {"ours": "", "near": "tie", "best": "winner", "behind": "", "slow": ""}


@given(st.floats(0.1, 10), st.floats(0.1, 10))
def test_headroom_is_own_time_over_the_librarys(of_own: float, of_library: float) -> None:
    routes = (own(), candidate("o", of_own, "SAME"), candidate("l", of_library, "SAME", library=True))
    assert headroom(routes) == pytest.approx(of_library / max(1.0, of_own))
    assert headroom(routes[:2]) is None


def test_the_routing_table_says_what_each_site_should_take() -> None:
    failed = Route("w2", "wrong", library=False, incumbent=False, status="Gate FAIL: off by 0.5")
    routes = judged((own(), candidate("theirs", 2.0, "FASTER", library=True), failed))
    lines = routing_lines(Routing("t", DEVICE, "tiny", "plan-x", routes), WIDE)
    assert lines[-1].split() == ["w2", "theirs", "200", "µs", "100", "µs", "2.00×"]
    assert "  wrong at w2: Gate FAIL: off by 0.5" in lines
    assert line(lines, "w2    wrong").split()[2] == "–"


def test_a_sweep_shows_what_is_repaid_beside_what_was_forecast() -> None:
    one = entry("r", 2e-3, flops=1e9, tokens_per_s=64e3, ratio_first=1.0, shape_tax=1.7, model_s=1e-3)
    four = entry("r,batch=4", 5e-3, batch=4, flops=4e9, tokens_per_s=1e5, ratio_first=1.6, model_s=3e-3)
    none = entry("r,batch=8", None, Gate("unchecked", None, 1e-5, where="needs 9 GB"), batch=8)
    lines = batch_lines(ladder(one, four, none), WIDE)
    assert next(x for x in lines if x.startswith("    4")).split()[1:8] == (
        ["5.00", "ms", "1.25", "ms", "100", "k/s", "800"]
    )
    assert "  batch 8: needs 9 GB" in lines
    assert lines[-2:] == [
        "repaid: 1.60× at batch 4 over batch 1; forecast 2.00× by the terms at batch 4, with the 1.00 ms of"
        " batch 1 that no term explains paid once a pass",
        "without padding and idle SMs, batch 1 is modelled at 1.70× its speed",
    ]
    assert next(x for x in lines if x.startswith("    4")).split()[10] == "2.00×"
    unknown = batch_lines(ladder(replace(one, shape_tax=None, model_s=None), four), WIDE)
    assert "not forecast" in unknown[-2]
    assert "is not known: no site's shape factor is" in unknown[-1]
    explained = batch_lines(ladder(replace(one, model_s=3e-3), four), WIDE)
    assert "that no term explains" not in explained[-2], "there is no such time"
    assert "nothing is repaid" in batch_lines(ladder(one, replace(four, ratio_first=0.9)), WIDE)[-1]


def test_no_batch_is_forecast_beyond_its_ideal() -> None:
    """Where a library's kernels take over, of which the model knows less, twice the work comes to less."""
    one = entry("r", 491e-6, ratio_first=1.0, model_s=153e-6)
    two = entry("r,batch=2", 611e-6, batch=2, ratio_first=1.56, model_s=148e-6)
    four = entry("r,batch=4", 750e-6, batch=4, ratio_first=2.53, model_s=232e-6)
    assert forecast_ratio(one, two) == pytest.approx(2.0)
    assert forecast_ratio(two, one) == pytest.approx(0.5), "nor is the smaller one longer"
    assert forecast_ratio(one, four) == pytest.approx(4 * 491 / (232 + 491 - 153))
    lines = batch_lines(ladder(one, two, four), WIDE)
    (why,) = (line for line in lines if "at its ideal" in line)
    assert why.startswith("  batch 2: forecast at its ideal: other kernels than at batch 1")


@given(st.integers(1, 64), st.integers(1, 64), st.floats(1e-6, 1e-2), st.floats(1e-6, 1e-2))
def test_a_forecast_is_at_most_the_ideal(few: int, more: int, a_s: float, b_s: float) -> None:
    many = few + more
    first = entry("a", 1e-3, batch=few, model_s=a_s)
    forecast = forecast_ratio(first, entry("b", 1e-3, batch=many, model_s=b_s))
    assert forecast is not None
    assert forecast <= many / few * (1 + 1e-9)


def test_batches_are_whole_numbers_once_each() -> None:
    assert batch_list("1,2,,2,8") == (1, 2, 8)
    for wrong in ("", ",", "0", "1,x"):
        with pytest.raises(Exception, match=r"batch|whole number|too small"):
            batch_list(wrong)
