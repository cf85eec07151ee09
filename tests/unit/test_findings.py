"""The findings and the README's results say what recordings hold, and nothing where they hold nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from docs import findings, story
from docs.evidence import Evidence
from docs.findings import Reading
from docs.write_findings import BEGIN, END, NO_RECORDING, findings_page, main, results_table, with_results
from gputop.results import recording
from gputop.results.ladder import Ladder, LadderEntry
from gputop.results.recording import Recording
from gputop.results.records import TOTAL_ROWS, Breakdown, Comparison, Delta, Gate, Window
from gputop.util import units
from gputop.util.errors import UsageError

FINDINGS = (*findings.FINDINGS, *story.FINDINGS)
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Two rungs and two batches of the cpu at `tiny`, by a real worker."""
    home = tmp_path_factory.mktemp("home")
    folders = {name: str(home / name) for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")}
    path = home / "tiny.jsonl"
    options = ("--backend", "cpu", "--workload", "tiny", "--seconds", "0.1", "--batches", "1,2")
    subprocess.run(
        (sys.executable, "-m", "gputop", "record", str(path), *options, "--rungs", "cpu-folded,cpu-pruned"),
        env={**os.environ, **folders, "PYTHONPATH": str(ROOT)}, capture_output=True, timeout=120, check=True,
    )  # fmt: skip
    return recording.read(path)


def with_ladder(kept: Recording, *entries: LadderEntry) -> Evidence:
    """A recording with this ladder and no window."""
    assert kept.ladder is not None
    ladder: Ladder = replace(kept.ladder, entries=entries)
    return Evidence((replace(kept, ladder=ladder, windows=(), batches=None),))


def entry(rung: str, first: float, half: float = 0.01, **fields: object) -> LadderEntry:
    """A rung that is `first` times faster than the ladder's first, give or take `half`."""
    base = LadderEntry(
        rung, 1, "ladder", "", (), Gate("PASS", 1e-7, 1e-5), device_s=1.0 / first, batch=1,
        ratio_first=first, ratio_first_lo=first * (1 - half), ratio_first_hi=first * (1 + half),
    )  # fmt: skip
    return replace(base, **fields)  # type: ignore[arg-type]


def reading(claim: str, evidence: Evidence) -> Reading:
    return next(finding for finding in FINDINGS if claim in finding.claim).read(evidence)


def section(page: str, title: str) -> str:
    return next(part for part in page.split("\n## ") if title in part.splitlines()[0])


def test_a_cpu_recording_leaves_the_gpus_findings_unmeasured(kept: Recording) -> None:
    page = findings_page([kept])
    for title in ("Tensor cores", "megakernel", "table of who", "compiler"):
        part = section(page, title)
        assert "- here: not measured here\n- held: not measured here" in part
    assert "with full keys and values" in section(page, "last token")
    assert "at batch" in section(page, "Batching")
    assert recording.label(kept.header)[1:] in page


def test_the_results_are_those_of_the_recording(kept: Recording) -> None:
    table = results_table([kept])
    assert kept.ladder is not None
    for rung in kept.ladder.entries:
        assert f"| `{rung.rung}` | {units.seconds(rung.device_s)} |" in table
    assert table.count("\n| 1 |") == 1, "no line for batch 1"
    assert {line.count("|") for line in table.splitlines() if "`cpu-" in line} == {9}


def test_the_results_name_the_rung_that_a_ratio_is_against_where_it_is_not_the_row_above(
    kept: Recording,
) -> None:
    above = entry("hopper", 2.0, before="naive", ratio_before=2.0, verdict="FASTER")
    peer = entry(
        "torch-eager", 1.2, before="naive", ratio_before=1.2, ratio_before_lo=1.1, ratio_before_hi=1.3,
        verdict="UNRESOLVED",
    )  # fmt: skip
    table = results_table(with_ladder(kept, entry("naive", 1.0), above, peer).recordings)
    assert "| 2.00× | 2.00× |" in table
    assert "| 1.20× [1.10, 1.30], UNRESOLVED (`naive`) | 1.20× |" in table


def test_without_a_recording_nothing_is_claimed() -> None:
    assert results_table([]) == NO_RECORDING
    page = findings_page([])
    assert "held: yes" not in page
    assert "held: no " not in page
    assert page.count("- held: not measured here") == len(FINDINGS)


def test_only_what_stands_between_the_markers_is_replaced() -> None:
    once = with_results(f"before\n{BEGIN}\nold\n{END}\nafter\n", "new")
    assert once == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    assert with_results(once, "new") == once
    with pytest.raises(UsageError, match="no place for the results"):
        with_results("before\nafter\n", "new")


def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (ROOT / "README.md").read_bytes()
    assert main([str(tmp_path / "none.jsonl")]) == 2
    assert "There is no recording" in capsys.readouterr().err
    assert (ROOT / "README.md").read_bytes() == before


def test_two_rungs_are_compared_through_the_first_where_they_were_not_paired(kept: Recording) -> None:
    evidence = with_ladder(kept, entry("a", 1.0), entry("b", 2.0, 0.1), entry("c", 3.0, 0.1))
    pair = evidence.pair("b", "c")
    assert pair is not None
    assert (pair.ratio, pair.lo, pair.hi) == pytest.approx((1.5, 2.7 / 2.2, 3.3 / 1.8))
    assert evidence.pair("b", "none") is None


@pytest.mark.parametrize(("lo", "hi"), [(None, None), (1.4, 1.6)])
def test_a_pair_with_an_interval_stands_before_one_without(
    kept: Recording, lo: float | None, hi: float | None
) -> None:
    """Windows of too few rounds say less than a ladder that had more."""
    whole = Delta(
        "device", 3.0, 2.0, -1.0, None, None, 1.5, lo, hi, 4, 0.003, "UNRESOLVED" if lo is None else "FASTER"
    )
    window = replace(kept.windows[0], comparison=Comparison("b", "c", 1, (whole,)))
    ladder = with_ladder(kept, entry("b", 1.0), entry("c", 1.45)).recordings[0]
    pair = Evidence((replace(ladder, windows=(window,)),)).pair("b", "c")
    assert pair is not None
    assert pair.ratio == pytest.approx(1.45 if lo is None else 1.5)
    assert pair.lo is not None


@pytest.mark.parametrize(
    ("dispatch", "held"), [(entry("dispatch", 4.0), True), (entry("dispatch", 2.01), False)]
)
def test_a_routing_table_holds_where_it_is_known_to_beat_both(
    kept: Recording, dispatch: LadderEntry, held: bool
) -> None:
    evidence = with_ladder(kept, entry("oracle-tf32", 2.0), entry("algebra", 3.0), dispatch)
    assert reading("table of who", evidence).held is held


def test_what_has_no_interval_is_not_decided(kept: Recording) -> None:
    graph, megakernel = (
        replace(entry(rung, first), ratio_first_lo=None, ratio_first_hi=None)
        for rung, first in (("graph", 3.0), ("megakernel", 2.0))
    )
    evidence = with_ladder(kept, entry("x", 1.0), graph, megakernel)
    found = reading("megakernel", evidence)
    assert found.ours == "0.667×"
    assert found.held is None


def test_a_slower_megakernel_and_a_null_assault_hold(kept: Recording) -> None:
    evidence = with_ladder(
        kept, entry("graph", 3.0), entry("megakernel", 2.0), entry("algebra", 2.0), entry("w2-assault", 2.02)
    )
    assert reading("megakernel", evidence).held is True
    assert reading("Rewriting w2", evidence).held is True


def test_hits_are_held_against_each_other_by_source(kept: Recording) -> None:
    sass = entry("sass-fp32", 2.0, source="sass", hit=True)
    intuition = entry("tiled", 1.5, source="intuition", hit=False)
    assert reading("counted instructions", with_ladder(kept, sass, intuition)).held is True
    assert reading("counted instructions", with_ladder(kept, sass)).held is None


def test_products_by_hand_are_held_against_the_librarys(kept: Recording) -> None:
    """Where they lose, what the loop issues and what the library runs stand beside it."""
    whole, *others = (recording.read(path) for path in recording.shipped().values())
    apart = reading("Tensor cores by hand", Evidence((whole,)))
    assert "of wo and w2 no one window holds both" in apart.ours
    assert apart.held is None
    found = reading("Tensor cores by hand", Evidence((whole, *others)))
    assert found.ours.endswith("in one window")
    assert found.held is False
    assert "HMMA.1684" in found.why
    assert "the library runs `" in found.why
    assert "_Z" not in found.why
    assert reading("Tensor cores by hand", Evidence((kept,))) == Reading()


def test_the_naive_ports_bytes_stand_beside_the_compulsory_ones() -> None:
    shipped = recording.read(recording.shipped()["h200"])
    naive = next(window for window in shipped.windows if window.lanes[0].plan == "naive")
    (lane, *_) = naive.lanes

    def with_rows(l2_bytes: float | None, over: float | None = 10.0) -> Evidence:
        """The embedding's traffic changed; every other site asks for 2 MB of 1 MB."""
        rows = (
            replace(row, l2_bytes=l2_bytes, moved_over_compulsory=over, dram_bytes=1e6)
            if row.phase == "embed"
            else replace(row, l2_bytes=2e6, moved_over_compulsory=2.0, dram_bytes=1e6)
            for row in lane.rows
        )
        window = replace(naive, lanes=(replace(lane, rows=tuple(rows)),), comparison=None)
        return Evidence((replace(shipped, windows=(window,)),))

    claim = "Nothing bound the naive port"
    found = reading(claim, with_rows(22e6)).ours
    others = sum(row.phase not in (*TOTAL_ROWS, "embed") for row in lane.rows)
    assert others == 9
    assert "asks L2 for 40.0 MB, 3.57× the compulsory 11.2 MB, weights and activations once" in found
    assert "`moved_over_compulsory`" in found
    assert "L2" not in reading(claim, with_rows(None)).ours
    unknown = reading(claim, with_rows(22e6, over=None)).ours
    assert unknown.endswith("asks L2 for 40.0 MB"), "a recording older than the column"


def test_a_megakernels_occupancy_names_what_limits_it() -> None:
    shipped = recording.read(recording.shipped()["h200"])
    found = reading("megakernel", Evidence((shipped,))).why
    assert "92.2 kB of shared memory a block, occupancy 12.5 %, limited by shared memory" in found


def test_known_to_be_faster_is_by_more_than_copies_differ_by(kept: Recording) -> None:
    """By the pair's own verdict where it has one, in windows as in ladders."""
    after = entry(
        "hopper", 1.01, before="dependent", ratio_before=1.01, ratio_before_lo=1.008, ratio_before_hi=1.012
    )
    for verdict, held in (("FASTER", True), ("UNRESOLVED", False), ("SAME", False)):
        evidence = with_ladder(kept, entry("dependent", 1.0), replace(after, verdict=verdict))
        assert reading("newest instructions", evidence).held is held
    slower = replace(after, rung="megakernel", before="graph", ratio_before=0.99, verdict="UNRESOLVED")
    slower = replace(slower, ratio_before_lo=0.988, ratio_before_hi=0.992)
    assert reading("megakernel", with_ladder(kept, entry("graph", 1.0), slower)).held is False


def test_the_routing_table_says_why_attention_has_no_library_candidate() -> None:
    shipped = recording.read(recording.shipped()["h200"])
    assert "cuBLASLt have none" in reading("table of who", Evidence((shipped,))).why


def test_each_batch_says_which_gate_it_passed(kept: Recording) -> None:
    assert kept.batches is not None
    assert kept.ladder is not None
    one, two = kept.batches.entries
    one = replace(one, gate=replace(one.gate, status="PASS"))
    two = replace(two, gate=replace(two.gate, status="PASS pass-only"))
    rung = replace(kept.ladder.entries[0], rung="batch", batch=32, gate=one.gate)
    sweep = replace(kept.batches, entries=(one, two))
    table = results_table([replace(kept, batches=sweep, ladder=replace(kept.ladder, entries=(rung,)))])
    assert [row.split(" | ")[-1] for row in table.splitlines() if row.startswith(("| 1 |", "| 2 |"))] == (
        ["PASS |", "PASS pass-only |"]
    )
    assert "rung `batch` (batch 32) passed both gates" in table
    assert "pass-only" not in results_table([replace(kept, batches=replace(sweep, entries=(one,)))])


def with_plans(window: Window, current: str, pinned: str) -> Window:
    """The window as if it had paired these."""
    (lane, *_) = window.lanes
    lanes = (replace(lane, plan=current, role="current"), replace(lane, plan=pinned, role="pinned"))
    return replace(window, lanes=lanes, comparison=None)


def test_phases_of_two_rungs_are_compared_only_where_one_window_holds_both() -> None:
    shipped = recording.read(recording.shipped()["h200"])
    assert "in one window" in reading("warps that it lacked", Evidence((shipped,))).ours
    assert "in one window" in reading("shuffle trees", Evidence((shipped,))).ours
    assert "in one window" in reading("start early close", Evidence((shipped,))).ours
    alone = tuple(replace(window, lanes=window.lanes[:1], comparison=None) for window in shipped.windows)
    apart = Evidence((replace(shipped, windows=alone),))
    for claim in ("warps that it lacked", "shuffle trees", "start early close"):
        found = reading(claim, apart)
        assert found.ours == "no one window holds both"
        assert found.held is None


def test_products_by_hand_are_decided_where_one_window_holds_both() -> None:
    shipped = recording.read(recording.shipped()["h200"])
    own = next(window for window in shipped.windows if window.lanes[0].plan == "wmma")
    both = with_plans(own, "wmma", "oracle-tf32")
    found = reading("Tensor cores by hand", Evidence((replace(shipped, windows=(both, *shipped.windows)),)))
    assert "in one window" in found.ours
    assert found.held is False, "the same times"


def test_fp32_products_are_summed_in_the_ladders_window(kept: Recording) -> None:
    def products(rung: str, gemm_s: float | None) -> LadderEntry:
        return entry(rung, 1.0, breakdown=Breakdown(gemm_s=gemm_s))

    claim = "written against their machine code"
    ahead = with_ladder(kept, products("sass-fp32", 9e-4), products("oracle-fp32", 10e-4))
    assert reading(claim, ahead).held is True
    assert "900 µs against 1.00 ms" in reading(claim, ahead).ours
    behind = with_ladder(kept, products("sass-fp32", 10e-4), products("oracle-fp32", 9e-4))
    assert reading(claim, behind).held is False
    assert reading(claim, with_ladder(kept, products("sass-fp32", None))) == Reading()


def test_what_is_checked_in_is_what_the_shipped_recordings_say() -> None:
    """`make findings` writes both."""
    recordings = [recording.read(path) for path in recording.shipped().values()]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert with_results(readme, results_table(recordings)) == readme, "run `make findings`"
    page = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    assert page == findings_page(recordings), "run `make findings`"
