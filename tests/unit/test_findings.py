"""README's results and the figures of docs/findings.md are those of the recordings."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.counters.counted_file import read_counted_file
from benchmarks.counters.page import counters_page
from docs.figures import figures
from docs.model import model_page
from docs.renew_findings import FIGURE, renewed
from docs.write_results import BEGIN, END, NO_RECORDING, main, results_table, with_results
from gputop.results import recording
from gputop.results.ladder import LadderEntry
from gputop.results.prediction_score import CONSTANT_GUESS, interval_score, prediction_scores, score_words
from gputop.results.recording import Recording
from gputop.results.records import Gate
from gputop.session.recorded_model import remodelled
from gputop.util import units
from gputop.util.errors import UsageError
from tests.homes import homes_in

ROOT = Path(__file__).resolve().parents[2]
UNTOLD = "What the recordings can't tell"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, calibrated: Path) -> Recording:
    """Two rungs and two batches of the cpu at `tiny`, by a real worker."""
    home = tmp_path_factory.mktemp("home")
    path = home / "tiny.jsonl"
    options = ("--backend", "cpu", "--workload", "tiny", "--seconds", "0.1", "--batches", "1,2")
    subprocess.run(
        (sys.executable, "-m", "gputop", "record", str(path), *options, "--rungs", "cpu-folded,cpu-pruned"),
        env={**os.environ, **homes_in(home, calibrated), "PYTHONPATH": str(ROOT)},
        capture_output=True, timeout=120, check=True,
    )  # fmt: skip
    return recording.read(path)


def entry(rung: str, first: float, half: float = 0.01, **fields: object) -> LadderEntry:
    """A rung that is `first` times faster than the ladder's first, give or take `half`."""
    base = LadderEntry(
        rung, 1, "ladder", "", (), Gate("PASS", 1e-7, 1e-5), device_s=1.0 / first, batch=1,
        ratio_first=first, ratio_first_lo=first * (1 - half), ratio_first_hi=first * (1 + half),
    )  # fmt: skip
    return replace(base, **fields)  # type: ignore[arg-type]


def test_the_results_are_those_of_the_recording(kept: Recording) -> None:
    table = results_table([kept])
    assert kept.ladder is not None
    for rung in kept.ladder.entries:
        assert f"| `{rung.rung}` | {units.seconds(rung.device_s)} |" in table
    assert table.count("\n| 1 |") == 1, "no line for batch 1"
    assert {line.count("|") for line in table.splitlines() if "`cpu-" in line} == {10}


def test_the_results_name_the_rung_that_a_ratio_is_against_where_it_is_not_the_row_above(
    kept: Recording,
) -> None:
    above = entry("hopper", 2.0, before="naive", ratio_before=2.0, verdict="FASTER")
    peer = entry(
        "torch-eager", 1.2, before="naive", ratio_before=1.2, ratio_before_lo=1.1, ratio_before_hi=1.3,
        verdict="UNRESOLVED",
    )  # fmt: skip
    assert kept.ladder is not None
    ladder = replace(kept.ladder, entries=(entry("naive", 1.0), above, peer))
    table = results_table([replace(kept, ladder=ladder, windows=(), batches=None)])
    assert "| 2.00× | 2.00× |" in table
    assert "| 1.20× [1.10, 1.30], UNRESOLVED (`naive`) | 1.20× |" in table


def test_without_a_recording_nothing_is_claimed() -> None:
    assert results_table([]) == NO_RECORDING


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


def sections() -> dict[str, str]:
    """Title -> what is said to be measured here, on one line."""
    page = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    parts = (part.partition("\n") for part in page.split("\n## ")[1:])
    return {title: " ".join(text.partition("\nHere: ")[2].split()) for title, _, text in parts}


def shipped() -> dict[str, Recording]:
    return {name: recording.read(path) for name, path in recording.shipped().items()}


def test_each_figure_of_a_finding_is_computed_from_the_recordings() -> None:
    """None is missing on the page, and the page has none of its own."""
    computed, page = figures(shipped()), sections()
    assert [title for title in page if title != UNTOLD] == sorted(computed, key=list(page).index)
    for title, found in computed.items():
        said = page[title]
        assert [figure for figure in found if figure not in said] == [], title
        assert [figure for figure in FIGURE.findall(said) if figure not in found] == [], title


def test_a_new_recording_renews_the_figures_of_the_text_and_nothing_else() -> None:
    page, title = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8"), "One bit of layout"
    known = figures(shipped())
    assert renewed(page, known, known).split() == page.split()
    part = f"# A page\n\n## {title}\n\nThere: 2.00×.\n\nHere: 2.00× and\n2.00× [1.90, 2.10], 3 µs in `a`.\n"
    earlier, newer = ("2.00×", "2.00× [1.90, 2.10]", "3 µs"), ("2.50×", "2.60× [2.50, 2.70]", "4 µs")
    again = renewed(part, {title: earlier}, {title: newer})
    assert again == part.replace(
        "Here: 2.00× and\n2.00× [1.90, 2.10], 3 µs", "Here: 2.50× and 2.60× [2.50, 2.70], 4 µs"
    )


def test_the_results_in_readme_are_those_of_the_shipped_recordings() -> None:
    """`make results` writes them, and the pages on the model and on counters."""
    readme, kept = (ROOT / "README.md").read_text(encoding="utf-8"), shipped()
    today = {name: remodelled(each) for name, each in kept.items()}
    table = results_table(list(today.values()))
    assert with_results(readme, table) == readme, "run `make results`"
    page = (ROOT / "docs" / "model.md").read_text(encoding="utf-8")
    assert page == model_page(kept), "run `make results`"
    counted = read_counted_file(ROOT / "docs" / "counters.json")
    assert counted is not None
    page = (ROOT / "docs" / "counters.md").read_text(encoding="utf-8")
    assert page == counters_page(counted, today), "run `make results`"


ratios = st.floats(0.1, 10)


@given(ratios, ratios, ratios)
def test_an_interval_is_scored_by_its_width_and_what_it_missed_by(
    a: float, b: float, measured: float
) -> None:
    lo, hi = sorted((a, b))
    score, width = interval_score(lo, hi, measured), math.log(hi / lo)
    assert score >= width - 1e-12
    assert math.isclose(score, width, abs_tol=1e-9) == (lo * (1 - 1e-9) <= measured <= hi * (1 + 1e-9))
    upside_down = interval_score(1 / hi, 1 / lo, 1 / measured)
    assert math.isclose(score, upside_down, rel_tol=1e-9, abs_tol=1e-9), "a gain is as good as a loss"


def test_first_predictions_are_scored_beside_a_guess_that_never_changes() -> None:
    told = entry("b", 1.5, predicted=1.5, predicted_lo=1.4, predicted_hi=1.6, ratio_before=1.5)
    found = prediction_scores([entry("a", 1.0), told])
    assert found is not None
    assert found.rungs == 1
    assert found.first == pytest.approx(math.log(1.6 / 1.4))
    assert found.constant == pytest.approx(interval_score(*CONSTANT_GUESS, 1.5))
    assert "1 first predictions" in score_words([told])
    assert prediction_scores([entry("a", 1.0)]) is None
    assert score_words([]) == ""
