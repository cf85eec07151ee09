"""A device that answers from times that were recorded: policies are tried and compared on it without a GPU.

Nothing is invented: a cell that was not recorded can't be measured. A window draws what the recording says
of windows, a factor common to both tables, which pairs cancel, and of each cell a spread of its own.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gputop.perf import verdicts
from gputop.results.records import Delta
from gputop.search.measurer import Fault, Paired, Trial
from gputop.search.menu import Cell, Table

ROUNDS = 20
"""That a window is said to have: enough for a verdict."""
COPIES = verdicts.Floor(verdicts.MIN_FLOOR, verdicts.MIN_FLOOR)
"""What copies of one plan are said to differ by."""
HALF_WIDTH_SDS = 2.58
"""Of a 99 % interval."""


@dataclass(frozen=True, slots=True)
class CellTime:
    """What is known of one kernel at one site."""

    time_s: float
    """Of all instances in a pass."""
    spread: float
    """Standard deviation of its logarithm between windows, the windows' own factor taken out."""


class SimulatedDevice:
    """Measures by drawing. The same seed and the same trials give the same windows."""

    def __init__(
        self,
        times: Mapping[Cell, CellTime],
        *,
        seed: int,
        window_spread: float = 0.0,
        drift: Callable[[int], float] = lambda window: 1.0,
        faults: Mapping[Cell, str] | None = None,
        width: int = 1,
    ) -> None:
        """`window_spread`: of the logarithm of a window's factor. `drift`: a factor of each window, as of a
        device that warms up. `faults`: cells that can't be timed, each with the reason."""
        self.width = width
        self.windows = 0
        self._times, self._faults = times, faults or {}
        self._window_spread, self._drift = window_spread, drift
        self._rng = random.Random(seed)

    def run(self, trials: Sequence[Trial]) -> Iterator[Paired | Fault]:
        """Yield each trial's window, or why it has none. KeyError for a cell that was not recorded."""
        for trial in trials:
            faults = [self._faults[cell] for cell in trial.candidates.items() if cell in self._faults]
            yield Fault(trial, faults[0]) if faults else self._window(trial)

    def _window(self, trial: Trial) -> Paired:
        self.windows += 1
        factor = self._drift(self.windows) * math.exp(self._rng.gauss(0.0, self._window_spread))
        sites = {site: self._delta(site, trial.incumbent, trial.table, factor) for site in trial.incumbent}
        a_s, b_s = (sum(getattr(delta, lane) for delta in sites.values()) for lane in ("a_s", "b_s"))
        variance = sum(
            (self._half_width(site, trial) * (sites[site].a_s or 0.0) / a_s) ** 2 for site in sites
        )
        whole = _delta("device", a_s, b_s, math.sqrt(variance))
        return Paired(trial, "", self.windows, sites, whole, gate="PASS")

    def _delta(self, site: str, incumbent: Table, table: Table, factor: float) -> Delta:
        a, b = (self._times[site, lane[site]] for lane in (incumbent, table))
        a_s, b_s = (cell.time_s * factor * math.exp(self._rng.gauss(0.0, cell.spread)) for cell in (a, b))
        return _delta(site, a_s, b_s, HALF_WIDTH_SDS * math.hypot(a.spread, b.spread))

    def _half_width(self, site: str, trial: Trial) -> float:
        a, b = (self._times[site, lane[site]] for lane in (trial.incumbent, trial.table))
        return HALF_WIDTH_SDS * math.hypot(a.spread, b.spread)


def _delta(name: str, a_s: float, b_s: float, half_width: float) -> Delta:
    effect = math.log(a_s / b_s)
    pair = verdicts.Paired(effect, effect - half_width, effect + half_width, ROUNDS)
    verdict, why = verdicts.verdict(pair, COPIES)
    return Delta(
        phase=name,
        a_s=a_s,
        b_s=b_s,
        delta_s=b_s - a_s,
        delta_lo_s=a_s * math.expm1(-pair.hi),
        delta_hi_s=a_s * math.expm1(-pair.lo),
        ratio=pair.ratio,
        ratio_lo=pair.ratio_lo,
        ratio_hi=pair.ratio_hi,
        samples=ROUNDS,
        aa_floor=COPIES.apart,
        verdict=verdict,
        status=why,
        same_within=COPIES.same,
    )
