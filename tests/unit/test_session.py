"""Sessions on the cpu at tiny: real passes, windows, ladders and what is said of them."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gputop import backends
from gputop.backends.base import PhaseTimes
from gputop.backends.cpu import machine
from gputop.backends.cpu.prepared import CpuPrepared
from gputop.model.workloads import parse_workload
from gputop.perf.paired_stats import paired
from gputop.perf.roofline import TERMS
from gputop.perf.verdicts import Floor, Paired
from gputop.perf.verdicts import verdict as verdict_of
from gputop.plan.plan_string import parse_word
from gputop.plan.types import PlanRequest, Site, Step, Task, View
from gputop.planner.resolver import Resolver
from gputop.results.comparison_sentence import sentence
from gputop.results.records import TOTAL_ROWS, Comparison, Delta, PlanResult, Row, Window
from gputop.session import aa_runs, ladder_window, paired_comparison
from gputop.session.aa_noise import NoiseFloors
from gputop.session.context import SessionContext
from gputop.session.opening import open_session
from gputop.session.prepared_plans import MOST_IDLE
from gputop.session.sampling import LaneSamples
from gputop.session.session import Session
from gputop.util.errors import Unavailable, UsageError

TINY = parse_workload("tiny")
BLAS, LOOPS, PRUNED = (PlanRequest(rung) for rung in ("cpu-blas", "cpu-loops", "cpu-pruned"))
BUSY_FLOOR = 0.2
"""|log ratio| of copies beyond which other programs drown what BLAS gains."""
SHORT_S = 0.05
"""Long enough for a round of samples; a test that needs more says so."""


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    opened = Session.open("cpu", TINY)
    yield opened
    opened.close()


def rows_of(lane: PlanResult | None) -> dict[str, Row]:
    assert lane is not None
    return {row.phase: row for row in lane.rows}


@pytest.fixture(scope="module")
def window(session: Session) -> Window:
    return session.measure(BLAS, seconds=SHORT_S)


@pytest.fixture(scope="module")
def paired_window(session: Session) -> Window:
    return session.measure(PRUNED, LOOPS, seconds=SHORT_S)


def test_how_many_threads_all_are_is_said_of_a_plan_that_takes_them(session: Session, window: Window) -> None:
    told = f"threads=all: {machine.blas().all_threads} BLAS threads"
    every = PlanRequest("cpu-threads")
    for notes in (window.device.notes, window.notes):
        assert not any("threads" in note for note in notes), "this plan has one"
    assert session.measure(every, BLAS, seconds=SHORT_S).notes.count(told) == 1
    assert told in session.measure_ladder([LOOPS, every], seconds=SHORT_S).notes
    assert told not in session.measure_ladder([LOOPS, BLAS], seconds=SHORT_S).notes


def test_auto_is_the_cpu_where_cuda_can_not_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoCuda:
        def available(self) -> str:
            return "No GPU."

    whole = backends.load
    monkeypatch.setattr(backends, "load", lambda name: NoCuda() if name == "cuda" else whole(name))
    opened = Session.open("auto", TINY)
    assert opened.facts.backend == "cpu"
    assert opened.default_rung == "cpu-blas"
    opened.close()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"heads": 0}, "heads must be at least 1, got 0"),
        ({"heads": 3}, "heads = 3 does not divide d_model = 64; the nearest that does is 2"),
        ({"seq": -1}, "seq must be at least 1"),
        ({"d_model": 1 << 40}, "d_model = 1099511627776 is beyond"),
    ],
)
def test_sizes_of_no_model_are_refused_whoever_asks(change: dict[str, Any], why: str) -> None:
    """A front end reads them from a file; a program, or another host's front end, may give anything."""
    with pytest.raises(UsageError, match=why):
        Session.open("cpu", replace(TINY, dims=replace(TINY.dims, **change)))


def test_sources_that_nothing_compiles_are_refused(tmp_path: Path) -> None:
    """Also if `auto` comes to the cpu, or a recording is opened, which no command line can know before."""
    for opening in ("cpu", "replay"):
        with pytest.raises(UsageError, match="would change nothing"):
            open_session(opening, TINY, device=None, kernels_dir=str(tmp_path), say=silent)


def test_one_pass_under_two_names_is_paired_with_itself_and_says_so(session: Session) -> None:
    other = parse_word("cpu-blas,threads=all")
    window = session.measure(PlanRequest("cpu-threads"), other, seconds=SHORT_S)
    assert [lane.plan for lane in window.lanes] == ["cpu-threads", "cpu-blas,threads=all"]
    assert any("are the same pass" in note for note in window.notes)
    alone = session.measure(PlanRequest("cpu-threads"), seconds=SHORT_S)
    assert alone.lanes[0].plan == "cpu-threads", "whatever it was called before"


def test_two_rungs_that_are_one_pass_have_an_entry_each(session: Session) -> None:
    names = ("cpu-blas,threads=all", "cpu-threads")
    ladder = session.measure_ladder([parse_word(name) for name in names], seconds=SHORT_S)
    assert tuple(entry.rung for entry in ladder.entries) == names
    assert all(entry.device_s for entry in ladder.entries)


def test_the_kernels_of_a_site_are_listed_with_the_plans_that_they_make(session: Session) -> None:
    found = session.choices(PlanRequest("cpu-pruned"), "w1@1")
    assert {str(c.choice): str(c.request) for c in found.candidates} == {
        "cpu_loops_gemm": "cpu-pruned,w1@1:cpu_loops_gemm",
        "cpu_blas_gemm": "cpu-pruned",
    }
    with pytest.raises(UsageError, match="Unknown site 'w4'"):
        session.choices(PlanRequest("cpu-pruned"), "w4")


def test_cuda_where_it_can_not_be_used_is_not_here() -> None:
    if backends.load("cuda").available() is None:
        pytest.skip("cuda can be used here")
    with pytest.raises(Unavailable):
        Session.open("cuda", TINY)


def test_every_rung_of_the_cpu_can_run_and_passes_both_gates(session: Session) -> None:
    views = session.rung_views()
    assert [view.id for view in views] == [rung.id for rung in Resolver.load().rungs_of("cpu")]
    for view in views:
        assert view.refused == ""
        gate = session.check(PlanRequest(view.id))
        assert gate.status == "PASS", f"{view.id}: {gate.where}"


def test_a_view_shows_what_can_be_flipped(session: Session) -> None:
    view = session.view(parse_word("cpu-blas,batch=2,w1:cpu_loops_gemm"))
    assert view.word == "cpu-blas,batch=2,w1:cpu_loops_gemm"
    assert view.batch == 2
    assert {site.site: str(site.kernel) for site in view.sites}["w1"] == "cpu_loops_gemm"
    refused = {toggle.name: dict(toggle.refused) for toggle in view.toggles}
    assert "bf16" in refused["math"]
    assert view.need_bytes


@pytest.mark.parametrize(
    ("word", "nearest"),
    [
        ("cpu-blass", "cpu-blas"),
        ("cpu-blas,fould=on", "fold"),
        ("cpu-blas,w1:cpu_loops_gem", "cpu_loops_gemm"),
    ],
)
def test_unknown_names_are_answered_with_the_nearest(session: Session, word: str, nearest: str) -> None:
    with pytest.raises(UsageError, match=nearest):
        session.measure(parse_word(word))


def test_a_window_has_a_row_for_each_site_and_the_totals(window: Window) -> None:
    rows = rows_of(window.lane("current"))
    sites = ["embed", "ln1", "qkv", "attention", "wo", "ln2", "w1", "w2", "lnf", "head"]
    assert list(rows) == [*sites, *TOTAL_ROWS]
    assert window.lane("pinned") is None
    assert window.comparison is None
    assert all((rows[site].time_s or 0) > 0 for site in sites)
    assert rows["w1"].count == TINY.dims.layers
    assert rows["w1"].kernel == "cpu_blas_gemm"
    assert {row.gate for row in rows.values()} <= {"PASS", "PASS pass-only"}
    assert {row.window for row in rows.values()} == {window.number}


def test_the_parts_reconcile_with_the_whole(window: Window) -> None:
    rows = rows_of(window.lane("current"))
    sites = [row for name, row in rows.items() if name not in TOTAL_ROWS]
    total = {name: rows[name].time_s or 0.0 for name in TOTAL_ROWS}
    assert math.isclose(total["sum"], sum(row.time_s or 0.0 for row in sites))
    assert math.isclose(total["gaps"], sum(row.gap_s or 0.0 for row in sites))
    assert math.isclose(total["sum"] + total["gaps"] + total["residual"], total["device"])
    assert total["device"] <= total["wall"]


def test_a_first_look_waits_for_no_ceilings_and_the_next_window_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    opened = Session.open("cpu", TINY)
    told: list[str] = []
    first = opened.measure(BLAS, seconds=SHORT_S, first_look=True, say=told.append)
    assert not [text for text in told if "ceilings" in text]
    rows = rows_of(first.lane("current"))
    assert first.lanes[0].gate.ok
    assert rows["w1"].time_s
    assert (rows["w1"].floor_s, rows["w1"].efficiency, rows["w1"].binds) == (None, None, None)
    assert (rows["sum"].floor_s, rows["device"].binds, first.advice) == (None, None, "")
    assert "ceilings are still to be measured" in (rows["w1"].status or "")
    assert any("ceilings are still to be measured" in note for note in first.notes)
    second = opened.measure(BLAS, seconds=SHORT_S, say=told.append)
    assert [text for text in told if "ceilings" in text]
    rows = rows_of(second.lane("current"))
    assert rows["w1"].floor_s
    assert rows["w1"].binds
    assert "ceilings are still" not in " ".join((rows["w1"].status or "", *second.notes))
    third = opened.measure(BLAS, seconds=SHORT_S, first_look=True)
    assert rows_of(third.lane("current"))["w1"].floor_s, "known ones cost nothing"
    opened.close()


def test_a_sum_of_which_a_part_is_unknown_is_unknown(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timer that misses one site, whose row stays without a time."""
    whole = CpuPrepared.sample_phases

    def without_wo(prepared: CpuPrepared, passes: int) -> tuple[PhaseTimes, ...]:
        return tuple(
            replace(times, time_s={site: time for site, time in times.time_s.items() if site != "wo"})
            for times in whole(prepared, passes)
        )

    monkeypatch.setattr(CpuPrepared, "sample_phases", without_wo)
    rows = rows_of(session.measure(BLAS, seconds=SHORT_S).lane("current"))
    assert rows["wo"].time_s is None
    assert rows["w1"].time_s is not None
    assert (rows["sum"].time_s, rows["residual"].time_s) == (None, None)
    assert rows["gaps"].time_s is not None
    assert rows["device"].time_s is not None


def test_rows_are_read_against_floors_and_terms(window: Window) -> None:
    rows = rows_of(window.lane("current"))
    for name in ("qkv", "attention", "w1", "head"):
        row = rows[name]
        assert row.floor_s is not None
        assert row.time_s is not None
        assert row.efficiency == row.floor_s / row.time_s
        assert row.binds in {*TERMS, "unknown"}
        assert row.question_floor_s is not None
        assert row.question_floor_s <= row.floor_s * (1 + 1e-12), "what is asked is part of what is done"
    overlapped, added = rows["device"].floor_s, rows["sum"].floor_s
    assert overlapped is not None
    assert added is not None
    assert overlapped <= added
    tokens_per_s, device_s = rows["device"].tokens_per_s, rows["device"].time_s
    assert tokens_per_s is not None
    assert device_s is not None
    assert math.isclose(tokens_per_s * device_s, TINY.dims.seq)


def test_unknown_is_empty_never_zero(window: Window) -> None:
    row = rows_of(window.lane("current"))["w1"]
    assert (row.l2_s, row.issue_s, row.occupancy_theoretical, row.registers) == (None,) * 4
    assert (row.pinned_plan, row.delta_s, row.verdict) == (None,) * 3


def test_a_pruned_plan_does_what_is_asked_and_no_more(paired_window: Window) -> None:
    rows = rows_of(paired_window.lane("current"))
    assert {"w1", "w1@1", "kv", "q@1"} <= set(rows)
    for name in ("w1", "w1@1", "kv", "device"):
        assert math.isclose(rows[name].floor_s or 0, rows[name].question_floor_s or 1)


def test_deltas_stand_on_the_first_row_of_their_phase(paired_window: Window) -> None:
    comparison = paired_window.comparison
    assert comparison is not None
    assert (comparison.plan_a, comparison.plan_b) == ("cpu-loops", "cpu-pruned")
    assert {delta.phase for delta in comparison.deltas} == {
        *("embed", "ln1", "qkv", "attention", "wo", "ln2", "w1", "w2", "lnf", "head"),
        *("device", "wall"),
    }
    current, pinned = (rows_of(paired_window.lane(role)) for role in ("current", "pinned"))
    assert {delta.phase for delta in comparison.sites} >= {"w1", "head"}
    assert comparison.at("w1@1") is None, "the first plan has no such site"
    w1 = comparison.get("w1")
    assert w1 is not None
    assert current["w1"].delta_s == w1.delta_s
    assert current["w1@1"].delta_s is None
    assert current["device"].ratio is not None
    assert current["device"].pinned_plan == "cpu-loops"
    assert all(row.delta_s is None for row in pinned.values())
    both = (current["w1"].time_s or 0) + (current["w1@1"].time_s or 0)
    assert math.isclose(w1.b_s or 0, both, rel_tol=0.5), "the phase is the sum of its sites"


def test_loops_to_blas_is_faster(session: Session) -> None:
    for _ in range(5):
        measured = session.measure(BLAS, LOOPS)
        assert measured.comparison is not None
        delta = measured.comparison.get("device")
        assert delta is not None
        assert delta.verdict != "SLOWER"
        if delta.verdict == "FASTER":
            break
    assert delta is not None
    if delta.verdict != "FASTER" and delta.aa_floor > BUSY_FLOOR:
        pytest.skip(f"this machine is too busy to tell: copies of one plan differ by {delta.aa_floor:.0%}")
    assert delta.verdict == "FASTER"
    assert delta.ratio_lo is not None
    assert delta.ratio_lo > 1
    assert measured.verdict.startswith("cpu-loops -> cpu-blas: ")
    assert "FASTER" in measured.verdict


def test_a_plan_is_never_faster_or_slower_than_its_copy(session: Session) -> None:
    verdicts = []
    for _ in range(30):
        measured = session.measure(BLAS, aa=True, seconds=0.3)
        current, pinned = measured.lane("current"), measured.lane("pinned")
        assert current
        assert pinned
        assert current.plan == pinned.plan
        comparison = measured.comparison
        assert comparison
        verdicts += [delta.verdict for delta in comparison.deltas if delta.phase == "device"]
    assert len(verdicts) == 30
    assert not {"FASTER", "SLOWER"} & set(verdicts), verdicts


def test_a_plan_pinned_against_itself_is_paired_with_a_copy(session: Session) -> None:
    measured = session.measure(BLAS, BLAS, seconds=SHORT_S)
    assert [lane.role for lane in measured.lanes] == ["current", "pinned"]
    assert measured.comparison is not None


def test_different_batches_are_compared_by_the_sequence(session: Session) -> None:
    measured = session.measure(parse_word("cpu-blas,batch=4"), BLAS, seconds=SHORT_S)
    assert measured.comparison is not None
    device = measured.comparison.get("device")
    current, pinned = measured.lane("current"), measured.lane("pinned")
    assert device
    assert current
    assert pinned
    assert "per sequence" in device.status
    assert math.isclose((device.b_s or 0) * 4, current.device_s or 0)
    assert math.isclose(device.a_s or 0, pinned.device_s or 0)


def test_a_stopped_window_closes_with_what_it_has(session: Session) -> None:
    measured = session.measure(BLAS, LOOPS, stop=lambda: True)
    assert measured.stopped_because == "stopped"
    current = measured.lane("current")
    assert current is not None
    assert current.device_s is None
    assert rows_of(current)["w1"].time_s is None
    assert "nothing measured" in measured.verdict


def test_a_window_stops_at_its_budget_or_when_it_knows_enough(session: Session) -> None:
    rounds: list[str] = []
    measured = session.measure(BLAS, seconds=1e-9, say=rounds.append)
    assert measured.stopped_because == "time budget"
    assert [text for text in rounds if text.startswith("round")] == ["round 1: cpu-blas"]


def test_windows_are_numbered(session: Session) -> None:
    first, second = (session.measure(BLAS, seconds=1e-9) for _ in range(2))
    assert second.number == first.number + 1


def test_the_phase_gate_is_remembered_while_the_plan_stays_prepared(session: Session) -> None:
    request = parse_word("cpu-blas,fused_qkv=on")
    statuses = [
        session.measure(request, seconds=1e-9, check_phases=check).lanes[0].gate.status
        for check in (False, True, False)
    ]
    assert statuses == ["PASS pass-only", "PASS", "PASS"]


def test_a_batch_beyond_memory_is_refused_before_anything_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Session.open("cpu", TINY)
    opened.measure(BLAS, seconds=1e-9)
    backend = opened._bench.backend
    fits = backend.need_bytes(opened._bench.resolve(parse_word("cpu-blas,batch=37")))
    monkeypatch.setattr(backend, "free_bytes", lambda: fits + (256 << 20))
    prepared = list(opened._bench.lanes._lanes)
    with pytest.raises(UsageError, match=r"batch=4096 needs .* The largest batch that fits is \d+: --batch"):
        opened.measure(parse_word("cpu-blas,batch=4096"))
    assert list(opened._bench.lanes._lanes) == prepared
    opened.close()


def test_idle_plans_make_room_and_those_in_use_stay(session: Session) -> None:
    for batch in range(1, 7):
        session.check(parse_word(f"cpu-blas,batch={batch}"))
    assert len(session._bench.lanes._lanes) <= MOST_IDLE
    both = session.measure(BLAS, LOOPS, seconds=1e-9)
    assert all(lane.device_s is not None for lane in both.lanes)


def test_a_ladder_measures_its_rungs_in_one_window(session: Session) -> None:
    measured = session.measure_ladder(
        [LOOPS, BLAS, PlanRequest("cpu-threads"), PlanRequest("cpu-batch")], 0.5
    )
    loops, blas, threads, batch = measured.entries
    assert (loops.before, loops.ratio_before, loops.ratio_first) == (None, None, 1.0)
    assert blas.before == "cpu-loops", "the rung it changes was not asked for"
    assert (blas.predicted, blas.hit) == (None, None), "its prediction is about another rung before it"
    assert threads.before == "cpu-blas"
    assert threads.predicted is not None
    lo, hi = threads.ratio_before_lo or threads.ratio_before, threads.ratio_before_hi or threads.ratio_before
    inside = [threads.predicted_lo <= end <= threads.predicted_hi for end in (lo, hi)]  # type: ignore[operator]
    if threads.hit:
        assert all(inside)
    else:
        assert not all(inside), "a miss, or open: an end lies outside"
    assert "per sequence" in batch.status
    known = [entry.rung for entry in measured.entries if session._bench.noise.count(entry.rung)]
    floors = next(note for note in measured.notes if note.startswith("A/A floor: "))
    assert ("from copies of" in floors) == any(word in floors for word in known)
    assert not any(copy for _, copy in session._bench.lanes._lanes), "copies are given back"
    for entry in measured.entries:
        assert entry.gate.ok
        assert entry.device_s
        assert entry.binds
        assert entry.kernels


def test_a_ladder_goes_on_until_the_pairs_that_it_reports_are_narrow(session: Session) -> None:
    """Each rung with the one that it changes, which need not be the one above it."""
    bench = session._bench
    words = ("cpu-blas", "cpu-loops", "cpu-threads")
    lanes = [LaneSamples(bench.lanes.get(bench.resolve(parse_word(word)), silent)) for word in words]
    pairs = ladder_window.reported_pairs(bench, lanes)
    assert [tuple(lane.lane.plan.word for lane in pair) for pair in pairs] == [
        ("cpu-blas", "cpu-loops"),
        ("cpu-blas", "cpu-threads"),
    ]


def test_a_ladder_has_copies_of_whatever_a_window_has_copies_of(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However short the passes and however many copies were seen before."""
    bench = session._bench
    monkeypatch.setattr(bench, "noise", NoiseFloors(0.02))
    lanes = [bench.lanes.get(bench.resolve(request), silent) for request in (BLAS, LOOPS)]

    def copied(pass_s: float) -> list[str]:
        rungs = [LaneSamples(replace(lane, pass_s=pass_s)) for lane in lanes]
        found = aa_runs.copies_for_ladder(bench, rungs, silent)
        bench.lanes.drop_copies()
        return [original.lane.plan.word for original, _ in found]

    assert [copied(0.001), copied(0.1), copied(0.6)] == [["cpu-blas", "cpu-loops"]] * 2 + [[]]
    for _ in range(aa_runs.ENOUGH):
        bench.noise.add("cpu-blas", "device", Paired(0.01, 0.0, 0.02, 16))
    assert copied(0.1) == ["cpu-blas", "cpu-loops"], "what is the same is for this window's copies to say"


def silent(text: str) -> None:
    """Narrates to nobody."""


def test_a_window_says_where_no_copy_gave_its_floor() -> None:
    opened = Session.open("cpu", TINY)
    short = opened.measure(BLAS, LOOPS, seconds=1e-9)
    assert any("no copy of cpu-loops was measured" in note for note in short.notes), short.notes
    opened.close()


def test_a_ladder_of_no_requests_is_the_whole_one(session: Session) -> None:
    whole = session.measure_ladder([], 1e-9)
    assert [entry.rung for entry in whole.entries] == [view.id for view in session.rung_views()]


def test_a_rung_that_can_not_be_prepared_does_not_end_the_ladder(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    huge, backend = parse_word("cpu-blas,batch=4096"), session._bench.backend
    need_bytes = backend.need_bytes
    monkeypatch.setattr(
        backend, "need_bytes", lambda plan: 1 << 60 if plan.batch == 4096 else need_bytes(plan)
    )
    loops, refused, blas = session.measure_ladder([LOOPS, huge, BLAS], 1e-9).entries
    assert refused.gate.status == "unchecked"
    assert "needs" in refused.status
    assert refused.device_s is None
    assert loops.device_s
    assert blas.before == "cpu-loops"
    with pytest.raises(UsageError, match="needs"):
        session.measure_ladder([huge], 1e-9)


def test_advice_names_the_largest_excess_and_what_spends_less(session: Session) -> None:
    measured = session.measure(LOOPS, seconds=SHORT_S)
    rows = [row for row in measured.lanes[0].rows if row.kernel]
    worst = max(rows, key=lambda row: (row.time_s or 0) - (row.floor_s or 0))
    assert measured.advice.startswith(f"Largest excess: {worst.phase}, ")
    assert "forecast" in measured.advice


def test_advice_forecasts_nothing_for_a_currency_that_does_not_bind(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a call priced at a second only fewer calls would help: more threads save nothing."""
    bench: SessionContext = session._bench
    ceilings = session.calibrate()
    dear = tuple(replace(item, value=1.0) if item.name == "call" else item for item in ceilings.items)
    monkeypatch.setattr(bench, "_ceilings", replace(ceilings, items=dear))
    monkeypatch.setattr(bench, "_neighbours", {})
    measured = session.measure(BLAS, seconds=SHORT_S)
    assert re.search(r"launch \d+ % binds", measured.advice)
    assert "threads=all" not in measured.advice


def test_calibrate_gives_the_ceilings_that_rows_use(session: Session) -> None:
    assert session.calibrate().get("fp32")


def test_phases_that_one_plan_fuses_are_grouped() -> None:
    def step(*phases: str, suffix: str = "") -> Step:
        view = View("x", 0, 1, 1, 1)
        kernel = next(iter(Resolver.load().kernels.values()))
        return Step(kernel, tuple(Task(Site(p + suffix, p, 1, 1, 0, (0, 1)), 0, (), view) for p in phases))

    apart = (step("ln2"), step("w1"), step("w2"), step("w1", suffix="@1"))
    fused = (step("ln2", "w1"), step("w2"))
    found = paired_comparison.groups(apart, fused)
    assert [(group.name, set(group.sites)) for group in found] == [
        ("ln2+w1", {"ln2", "w1", "ln2+w1", "w1@1"}),
        ("w2", {"w2"}),
    ]


@pytest.mark.parametrize(
    ("lo", "hi", "said"),
    [
        (-0.001, 0.08, "1.00× [0.999, 1.08], UNRESOLVED: interval crosses the A/A floor of 6.2 %"),
        (-0.09, 0.08, "1.00× [0.914, 1.08], UNRESOLVED: spread too wide: +-8.5 % (A/A floor of 6.2 %)"),
        (-0.001, 0.01, "1.00× [0.999, 1.01], SAME (A/A floor of 6.2 %)"),
    ],
)
def test_a_verdict_is_written_as_the_tables_are_and_names_its_floor_once(
    lo: float, hi: float, said: str
) -> None:
    verdict, why = verdict_of(Paired(0.0, lo, hi, 40), Floor(0.062, 0.062))
    delta = Delta(
        "device", 1e-3, 1e-3, 0.0, 0.0, 0.0, 1.0, math.exp(lo), math.exp(hi), 40, 0.062, verdict, why
    )
    assert sentence(Comparison("a", "b", 1, (delta,))) == f"a -> b: 1.00 ms -> 1.00 ms, {said}"


def test_the_noise_floor_grows_with_what_copies_differ_by() -> None:
    noise = NoiseFloors(0.02)
    assert noise.floor("plan", "device").apart == 0.02
    quiet = [1.0, 1.001] * 8
    noise.add("plan", "device", paired(quiet, quiet))
    calm = noise.floor("plan", "device").apart
    loud = [2 * value for value in quiet]
    noise.add("plan", "device", paired(quiet, loud))
    assert noise.floor("plan", "device").apart > math.log(2) > calm
    assert noise.floor("other", "device").apart == noise.floor("plan", "device").apart, (
        "what is known stands in"
    )
    assert noise.floor("other", "wall").apart == 0.02, "of another clock nothing is"
    noise.add("other", "device", paired(quiet, quiet))
    assert noise.floor("other", "device").apart == calm
    noise.add("plan", "device", Paired(0.0, -math.inf, math.inf, 1, "too few rounds"))
    assert noise.count("plan") == 2, "a pair that says nothing is not counted"


def test_only_copies_of_this_window_say_what_is_the_same() -> None:
    noise = NoiseFloors(0.02)
    quiet = [1.0, 1.001] * 8
    noise.begin_window()
    noise.add("plan", "device", paired(quiet, quiet))
    assert noise.floor("plan", "device") == Floor(0.02, 0.02)
    assert noise.floor("other", "device").same == 0.02, "copies of another plan stand in"
    noise.begin_window()
    assert noise.floor("plan", "device") == Floor(0.02, None, "no copy of a plan was measured in this window")


def test_rows_read_back_from_csv(window: Window) -> None:
    from gputop.results.schemas import PHASES

    text = io.StringIO()
    writer = csv.writer(text)
    keys = [column.key for column in PHASES.columns]
    writer.writerow(keys)
    for row in window.lanes[0].rows:
        writer.writerow(["" if getattr(row, key) is None else getattr(row, key) for key in keys])
    text.seek(0)
    read = list(csv.DictReader(text))
    assert [line["phase"] for line in read] == [row.phase for row in window.lanes[0].rows]
    assert not any("nan" in line.values() for line in read)
