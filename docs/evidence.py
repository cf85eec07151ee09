"""What recordings hold about a rung, a pair of rungs, or a phase: the questions that the findings ask."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gputop.perf.gpu_specs import limits
from gputop.plan.types import Plan
from gputop.results.ladder import LadderEntry
from gputop.results.meta_analysis import pool
from gputop.results.recording import Recording
from gputop.results.records import Comparison, Row, Verdict
from gputop.session.rung_ratio import pair_of
from gputop.util import units

NOT_MEASURED = "not measured here"
NOT_TOGETHER = "no one window holds both"


@dataclass(frozen=True, slots=True)
class Pair:
    """Time of one plan over time of another, of one window or pooled over several; None is unknown."""

    ratio: float
    lo: float | None = None
    hi: float | None = None
    verdict: Verdict | None = None

    @property
    def text(self) -> str:
        interval = "" if self.lo is None or self.hi is None else f" [{_plain(self.lo)}, {_plain(self.hi)}]"
        return f"{units.ratio(self.ratio)}{interval}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """All recordings there are, the one that counts first."""

    recordings: tuple[Recording, ...]

    def pair(self, a: str, b: str) -> Pair | None:
        """Time of a / time of b, paired windows before the ladder, but first what has an interval."""
        for kept in self.recordings:
            found = [p for p in (_windows_pair(kept, a, b), _ladder_pair(kept, a, b)) if p is not None]
            if found:
                return next((pair for pair in found if pair.lo is not None), found[0])
        return None

    def entry(self, rung: str) -> LadderEntry | None:
        """The rung in a recorded ladder."""
        return next((e for kept in self.recordings for e in _entries(kept) if e.rung == rung), None)

    def entries(self) -> tuple[LadderEntry, ...]:
        """The first recorded ladder."""
        return next((found for kept in self.recordings if (found := _entries(kept))), ())

    def batches(self) -> tuple[LadderEntry, ...]:
        """The first recorded sweep that has times."""
        for kept in self.recordings:
            if kept.batches is not None:
                return tuple(entry for entry in kept.batches.entries if entry.device_s)
        return ()

    def plan(self, rung: str) -> Plan | None:
        return next((plan for kept in self.recordings for plan in kept.plans if plan.word == rung), None)

    def rows(self, rung: str) -> dict[str, Row]:
        """The phase table of the rung's first window, by site; empty where there is none."""
        for kept in self.recordings:
            for window in kept.windows:
                lane = window.lane("current")
                if lane is not None and lane.plan == rung and lane.rows:
                    return {row.phase: row for row in lane.rows}
        return {}

    def together(self, a: str, b: str) -> tuple[dict[str, Row], dict[str, Row]] | None:
        """The phase tables of both from one window, by site; None where no one window holds both."""
        for kept in self.recordings:
            for window in kept.windows:
                tables = {
                    lane.plan: {row.phase: row for row in lane.rows} for lane in window.lanes if lane.rows
                }
                if a in tables and b in tables:
                    return tables[a], tables[b]
        return None

    def ceiling(self, rung: str, *names: str) -> float | None:
        """The largest of these measured peaks of the device that ran the rung."""
        for kept in self.recordings:
            if any(plan.word == rung for plan in kept.plans):
                values = [kept.header.ceilings.get(name) for name in names]
                return max((value for value in values if value is not None), default=None)
        return None

    def issue_rate(self, rung: str) -> float | None:
        """Warp instructions a second that the device had slots for at the clock of the rung's window."""
        clock = next((row.sm_clock_hz for row in self.rows(rung).values() if row.sm_clock_hz), None)
        for kept in self.recordings:
            if any(plan.word == rung for plan in kept.plans):
                device = kept.header.device
                if not (device.sm_count and device.arch and clock):
                    return None
                return device.sm_count * limits(device.arch).schedulers * clock
        return None

    def missing(self, *rungs: str) -> str:
        """Why these have no time, as the recordings say."""
        reasons = {
            f"{rung}: {reason}"
            for kept in self.recordings
            for rung in rungs
            if (reason := kept.refusals.get(rung) or _gate_reason(kept, rung))
        }
        return "; ".join(sorted(reasons))

    def binds(self, *rungs: str) -> str:
        """`naive is bound by latency; coalesced by l2`, of those known."""
        known = [(rung, entry.binds) for rung in rungs if (entry := self.entry(rung)) and entry.binds]
        return "; ".join(f"`{rung}`: {binds} binds" for rung, binds in known)


def _windows_pair(kept: Recording, a: str, b: str) -> Pair | None:
    comparisons = list(_comparisons(kept, a, b))
    delta = pool(comparisons).get("device") if comparisons else None
    if delta is None or delta.ratio is None:
        return None
    return Pair(delta.ratio, delta.ratio_lo, delta.ratio_hi, delta.verdict)


def _comparisons(kept: Recording, a: str, b: str) -> Iterator[Comparison]:
    for window in kept.windows:
        found = window.comparison
        if found is not None and (found.plan_a, found.plan_b) == (a, b):
            yield found


def _ladder_pair(kept: Recording, a: str, b: str) -> Pair | None:
    found = pair_of(_entries(kept), a, b)
    if found is None:
        return None
    verdict: Verdict | None = found.verdict or None  # type: ignore[assignment]
    return Pair(found.ratio, found.lo, found.hi, verdict)


def _entries(kept: Recording) -> tuple[LadderEntry, ...]:
    return kept.ladder.entries if kept.ladder else ()


def _gate_reason(kept: Recording, rung: str) -> str:
    gate = kept.gates.get(rung)
    return gate.where if gate is not None and not gate.ok else ""


def _plain(value: float) -> str:
    return units.number(value)
