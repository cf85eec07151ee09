"""The search itself: rank, measure pairs, accept what is faster, until a rule stops it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gputop.plan.types import KernelChoice
from gputop.results.records import Delta
from gputop.search.experiment import Option, Ranking, batches, ranking
from gputop.search.journal import CellResult, Ended, Line, Measured, Stage, Struck
from gputop.search.measurer import Fault, Measurer, Paired, Trial
from gputop.search.menu import Cell, Menu
from gputop.search.policies import Policy
from gputop.search.prediction import Forecast, Predictor
from gputop.search.progress import Progress
from gputop.search.score import Score, Stopped, StopRules, score, stopped

NO_TIME = "its time in the pass is not known"


class Sink(Protocol):
    """Where the lines of a search go, each before the next window is begun."""

    def add(self, line: Line) -> None: ...


Accepts = Callable[[Delta, Progress, str], bool]
"""Whether a candidate takes the place of the incumbent beside it, of the delta between them at a site."""


def faster_in_its_pair(delta: Delta, progress: Progress, site: str) -> bool:
    """Only what is faster than the incumbent in the same window by more than copies differ. A tie is the
    incumbent's."""
    return delta.verdict == "FASTER"


@dataclass(frozen=True, slots=True)
class Now:
    """Where the search stands between two windows."""

    ranking: Ranking
    score: Score
    stopped: Stopped | None


class Search:
    """One search. Its state is what its lines say; the next step follows from that and the seed alone."""

    def __init__(
        self,
        menu: Menu,
        measurer: Measurer,
        sink: Sink,
        rules: StopRules,
        *,
        seed: int = 0,
        together: int = 1,
        progress: Progress | None = None,
        accepts: Accepts = faster_in_its_pair,
        policy: Policy = ranking,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        """`progress`: of a search that is resumed. `together`: sites that may change in one window."""
        self.menu, self.rules, self.seed = menu, rules, seed
        self.progress = progress or Progress(menu)
        self._measurer, self._sink, self._together = measurer, sink, together
        self._accepts, self._policy, self._say = accepts, policy, say
        self._predictor = Predictor(menu)
        self._last_number = 0

    def now(self) -> Now:
        """Rank what is left, and ask the stop rules."""
        progress = self.progress
        forecasts = self._predictor.forecast(progress.cells_s)
        rng = random.Random(f"{self.seed}/{progress.trials}")
        ranked = self._policy(progress.left, forecasts, progress.table, progress.times_s, rng)
        found = score(self.menu, progress.times_s)
        why = stopped(
            self.rules,
            found,
            measured=progress.measured,
            left=len(progress.left),
            gain_s=ranked.gain_s if progress.times_s or not ranked.options else None,
        )
        return Now(ranked, found, why)

    def run(self) -> Stopped:
        """Search until a rule stops it."""
        while (why := self.step()) is None:
            pass
        self.add(Ended(rule=why.rule, why=why.why))
        return why

    def step(self) -> Stopped | None:
        """Measure what is best next; or measure nothing and return the rule that stops the search."""
        now = self.now()
        if now.stopped is None:
            room = self.rules.budget - self.progress.measured
            self._measure(batches(now.ranking.options, self._measurer.width, self._together, room))
        return now.stopped

    def pair(self, stage: Stage, candidates: Mapping[str, KernelChoice]) -> list[Measured]:
        """Measure candidates beside the incumbents once more, halved if they fail together."""
        (number,) = self._numbers(1)
        trial = Trial(number, dict(self.progress.table), candidates)
        return list(self._windows([trial], {}, stage))

    def against_start(self, candidates: Mapping[str, KernelChoice]) -> list[Measured]:
        """Measure candidates beside the plan's own table, as the closing check does."""
        (number,) = self._numbers(1)
        return list(self._windows([Trial(number, self.menu.start, candidates)], {}, "closing"))

    def without(self, site: str) -> list[Measured]:
        """Measure the table beside the same with the plan's own kernel back at one site."""
        (number,) = self._numbers(1)
        back = {**self.progress.table, site: self.menu.start[site]}
        return list(self._windows([Trial(number, back, {site: self.progress.table[site]})], {}, "ablation"))

    def add(self, line: Line) -> None:
        """Write a line, then know it."""
        self._sink.add(line)
        self.progress.take(line)

    def _measure(self, windows: Sequence[Sequence[Option]]) -> None:
        table = dict(self.progress.table)
        trials = [
            Trial(number, table, {option.cell[0]: option.cell[1] for option in options})
            for number, options in zip(self._numbers(len(windows)), windows, strict=True)
        ]
        forecasts = {option.cell: option.forecast for options in windows for option in options}
        for trial in trials:
            words = ", ".join(f"{site}:{choice}" for site, choice in trial.candidates.items())
            self._say(f"{self.progress.measured} of {self.rules.budget} measured; next {words}")
        for _ in self._windows(trials, forecasts, "search"):
            pass

    def _windows(
        self, trials: Sequence[Trial], forecasts: Mapping[Cell, Forecast], stage: Stage
    ) -> Iterator[Measured]:
        waiting = list(trials)
        while waiting:
            batch, waiting = waiting, []
            for outcome in self._measurer.run(batch):
                if isinstance(outcome, Fault):
                    waiting += self._halves(outcome)
                    continue
                yield self._read(outcome, forecasts, stage)

    def _halves(self, fault: Fault) -> list[Trial]:
        """Each half by itself; a single candidate is struck with the reason."""
        entries = list(fault.trial.candidates.items())
        if len(entries) > 1:
            middle = len(entries) // 2
            halves = entries[:middle], entries[middle:]
            return [
                Trial(number, fault.trial.incumbent, dict(half))
                for number, half in zip(self._numbers(2), halves, strict=True)
            ]
        for site, kernel in entries:
            self._say(f"{kernel} is struck at {site}: {fault.reason}")
            self.add(Struck(trial=fault.trial.number, site=site, kernel=kernel, reason=fault.reason))
        return []

    def _read(self, paired: Paired, forecasts: Mapping[Cell, Forecast], stage: Stage) -> Measured:
        trial = paired.trial
        results: list[CellResult] = []
        for site, kernel in trial.candidates.items():
            delta, forecast = paired.sites.get(site), forecasts.get((site, kernel))
            if delta is None or not delta.ratio:
                self.add(Struck(trial=trial.number, site=site, kernel=kernel, reason=NO_TIME))
                continue
            # A window of another device may end after the incumbent changed: it was paired with the former.
            beside = trial.incumbent[site] == self.progress.table[site]
            results.append(
                CellResult(
                    site=site,
                    kernel=kernel,
                    incumbent=trial.incumbent[site],
                    delta=delta,
                    forecast_s=forecast.time_s if forecast else None,
                    forecast_sd=forecast.sd if forecast else None,
                    accepted=beside
                    and stage in ("search", "finals")
                    and self._accepts(delta, self.progress, site),
                )
            )
        line = Measured(
            stage=stage,
            trial=trial.number,
            time_utc=paired.time_utc,
            window=paired.window,
            device=paired.device,
            gate=paired.gate,
            cells=tuple(results),
            incumbent_s={site: delta.a_s for site, delta in paired.sites.items() if delta.a_s is not None},
            whole=paired.whole,
        )
        self.add(line)
        return line

    def _numbers(self, count: int) -> range:
        """Numbers of new trials, of which none was given out before."""
        first = max(self._last_number, self.progress.trials) + 1
        self._last_number = first + count - 1
        return range(first, first + count)
