"""The search on simulated devices: what it accepts, strikes and resumes, and what its end convicts."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gputop.plan.types import KernelChoice
from gputop.results.records import Delta
from gputop.search.ablation import ablate
from gputop.search.closing import closing_check, pair_finalists
from gputop.search.journal import Line, Measured
from gputop.search.loop import Search
from gputop.search.progress import Progress
from gputop.search.score import StopRules
from gputop.search.simulated import SimulatedDevice
from tests.unit.search_menus import cell_times, menu

TIMES = {
    "qkv": {"own": 9e-6, "wide": 6e-6, "slow": 30e-6},
    "w1": {"own": 9e-6, "wide": 7e-6, "slow": 20e-6, "tie": 7.01e-6},
    "w2": {"own": 8e-6, "wide": 8.5e-6, "slow": 25e-6},
}
BEST = {"qkv": "wide", "w1": "wide", "w2": "own"}
RULES = StopRules(budget=40)


@dataclass
class Kept:
    """A journal in memory that may stop the process after so many lines."""

    lines: list[Line] = field(default_factory=list)
    most: int = 10_000

    def add(self, line: Line) -> None:
        if len(self.lines) == self.most:
            raise KeyboardInterrupt
        self.lines.append(line)


def device(seed: int = 0, spread: float = 0.002, **more: object) -> SimulatedDevice:
    return SimulatedDevice(cell_times(TIMES, spread), seed=seed, **more)  # type: ignore[arg-type]


def names(table: dict[str, KernelChoice]) -> dict[str, str]:
    """Site -> kernel; which of two that are as fast is chance."""
    return {site: str(choice).replace("tie", "wide") for site, choice in table.items()}


@settings(max_examples=20)
@given(st.integers(0, 1000), st.integers(1, 3), st.integers(1, 3))
def test_it_finds_the_fastest_table_whatever_the_seed_and_however_many_at_once(
    seed: int, together: int, width: int
) -> None:
    search = Search(menu(TIMES), device(seed, width=width), Kept(), RULES, seed=seed, together=together)
    search.run()
    pair_finalists(search)
    checks = closing_check(search)
    assert names(search.progress.table) == BEST
    assert {claim.site: claim.standing for claim in checks[-1].claims} == {
        "qkv": "confirmed",
        "w1": "confirmed",
    }


def test_the_budget_is_paired_measurements_and_is_kept() -> None:
    search = Search(menu(TIMES), device(width=2), Kept(), StopRules(budget=3), together=2)
    assert search.run().rule == "budget"
    assert search.progress.measured == 3


def test_a_tie_is_the_incumbents() -> None:
    times = {"w1": {"own": 9e-6, "twin": 9e-6 * 0.999}}
    search = Search(menu(times), SimulatedDevice(cell_times(times, 1e-4), seed=1), Kept(), RULES)
    search.run()
    pair_finalists(search)
    assert names(search.progress.table) == {"w1": "own"}
    assert all(not cell.accepted for _, cell in search.progress.results)
    assert closing_check(search) == []


def test_what_fails_is_struck_with_its_reason_and_costs_the_others_nothing() -> None:
    broken = ("w1", KernelChoice("wide"))
    search = Search(menu(TIMES), device(faults={broken: "it hangs"}), Kept(), RULES, together=3)
    search.run()
    assert search.progress.struck == {broken: "it hangs"}
    assert search.progress.table["w1"] == KernelChoice("tie")
    assert names(search.progress.table) == BEST


@pytest.mark.parametrize("after", range(1, 5))
def test_stopped_after_any_line_it_goes_on_with_what_is_known(after: int) -> None:
    kept = Kept(most=after)
    with pytest.raises(KeyboardInterrupt):
        Search(menu(TIMES), device(3), kept, RULES).run()
    progress = Progress(menu(TIMES))
    progress.take_all(kept.lines)
    known = set(progress.log_ratio)
    resumed = Search(menu(TIMES), device(4), Kept(), RULES, progress=progress)
    resumed.run()
    later = resumed.progress.results[len(kept.lines) :]
    assert not known & {(cell.site, cell.kernel) for _, cell in later}, "nothing is measured twice"
    assert names(resumed.progress.table) == BEST


def test_the_lines_of_a_search_tell_all_of_it() -> None:
    kept = Kept()
    search = Search(menu(TIMES), device(5), kept, RULES)
    search.run()
    pair_finalists(search)
    closing_check(search)
    told = Progress(menu(TIMES))
    told.take_all(kept.lines)
    assert told == search.progress


def stale(delta: Delta, progress: Progress, site: str) -> bool:
    """A selection rule with the fault that the closing check is for: the incumbent's time is of an earlier
    window."""
    first_s = progress.first_s.get(site)
    return first_s is not None and delta.b_s is not None and delta.b_s < 0.98 * first_s


def test_the_closing_check_convicts_a_table_that_was_chosen_against_a_stale_incumbent() -> None:
    """The first windows are of a warm device: what is timed later looks faster than what was timed then."""
    times = {"qkv": {"own": 9e-6, "other": 9.5e-6}, "w2": {"own": 8e-6, "wide": 8.4e-6, "slow": 8.6e-6}}
    warm = SimulatedDevice(cell_times(times, 1e-3), seed=2, drift=lambda window: 1.0 + 0.3 / window)
    search = Search(menu(times), warm, Kept(), StopRules(budget=40, least_gain=0.0), accepts=stale)
    search.run()
    assert search.progress.changed, "the fault is planted"
    check = closing_check(search)[0]
    assert check.whole is not None
    assert check.whole.verdict == "SLOWER"
    assert {claim.standing for claim in check.convicted} == {"slower"}
    assert names(search.progress.table) == {"qkv": "own", "w2": "own"}
    assert all("slower than own in the closing window" in line.why for line in search.progress.returned)


def test_the_same_selection_by_pairs_is_not_taken_in() -> None:
    times = {"qkv": {"own": 9e-6, "other": 9.5e-6}, "w2": {"own": 8e-6, "wide": 8.4e-6, "slow": 8.6e-6}}
    warm = SimulatedDevice(cell_times(times, 1e-3), seed=2, drift=lambda window: 1.0 + 0.3 / window)
    search = Search(menu(times), warm, Kept(), StopRules(budget=40, least_gain=0.0))
    search.run()
    assert not search.progress.changed


def test_each_candidate_has_its_incumbent_in_the_same_window() -> None:
    kept = Kept()
    Search(menu(TIMES), device(6), kept, RULES).run()
    table = menu(TIMES).start
    for window in (line for line in kept.lines if isinstance(line, Measured)):
        for cell in window.cells:
            assert cell.incumbent == table[cell.site]
            table[cell.site] = cell.kernel if cell.accepted else table[cell.site]


def test_an_accepted_cell_is_worth_what_its_own_pairs_say_and_the_claim_stands_beside_it() -> None:
    search = Search(menu(TIMES), device(8), Kept(), RULES)
    search.run()
    table = dict(search.progress.table)
    found = {one.site: one for one in ablate(search, 3)}
    assert set(found) == set(search.progress.changed)
    for site, one in found.items():
        assert one.windows == 3
        assert one.effect is not None
        assert one.effect.verdict == "FASTER"
        own_s, kernel_s = TIMES[site]["own"], TIMES[site][str(table[site])]
        assert one.effect.ratio == pytest.approx(own_s / kernel_s, rel=0.01)
        assert one.claimed == pytest.approx(own_s / kernel_s, rel=0.02)
    assert search.progress.table == table, "an ablation changes nothing"
