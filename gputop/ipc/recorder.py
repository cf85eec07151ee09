"""Walks the rungs through a worker and yields the lines of a recording as they are measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from gputop import __version__
from gputop.ipc.opened_worker import OpenedWorker
from gputop.model.workloads import without_folder
from gputop.plan.choices import RungView
from gputop.plan.types import PlanRequest
from gputop.results.recorded_plan import recorded
from gputop.results.recording import (
    THE_BATCHES,
    THE_LADDER,
    BatchesLine,
    EndLine,
    GateLine,
    Header,
    LadderLine,
    Line,
    PlanLine,
    RefusalLine,
    WindowLine,
)
from gputop.results.records import Gate
from gputop.util.errors import GputopError, WorkerLost


@dataclass(frozen=True, slots=True)
class RecordingSettings:
    """What is recorded of each rung, besides the rung."""

    change: PlanRequest
    """The changes that every rung gets; its own rung does not count."""
    windows: int = 1
    """Windows of each pair."""
    batches: tuple[int, ...] = ()
    """Batches at which the rung that the session opens on is recorded too."""

    def request(self, rung: str) -> PlanRequest:
        """Return the rung with the changes."""
        return PlanRequest(rung, self.change.sets, self.change.uses)


class Recorder:
    """One recording. A rung that can't run here is recorded with its reason, and the next one follows.

    Each rung is paired with the rung that it changes, or the nearest above that passes its gate (a step of
    the ladder before an oracle or a peer), and with the rung that the session opens on; the first one is
    measured alone.
    """

    def __init__(self, worker: OpenedWorker, settings: RecordingSettings) -> None:
        self._worker = worker
        self._settings = settings
        self._gates: dict[str, Gate] = {}
        """By rung, of those that could be prepared."""

    @property
    def gates(self) -> tuple[Gate, ...]:
        return tuple(self._gates.values())

    def lines(self, rungs: Sequence[RungView]) -> Iterator[Line]:
        """Yield all lines, the header first. Raises WorkerLost only if no new worker starts."""
        yield self._header()
        opening = next((rung for rung in rungs if rung.id == self._worker.opened.default_rung), None)
        if opening is not None:
            yield from self._check(opening)
        for number, rung in enumerate(rungs, 1):
            self._worker.note(f"{number} of {len(rungs)}: {rung.id}")
            if rung is not opening:
                yield from self._check(rung)
            if rung.id in self._gates:
                yield from self._windows(rung, self.partners(rung, rungs[: number - 1], opening))
        yield from self._ladder(rungs)
        if self._settings.batches:
            yield from self._batches()
        yield EndLine()

    def _header(self) -> Header:
        worker = self._worker
        time_utc = datetime.now(UTC).isoformat(timespec="seconds")
        ceilings = worker.calibrate()
        opened = worker.opened
        return Header(
            version=__version__,
            time_utc=time_utc,
            device=opened.device,
            ceilings=ceilings,
            workload=without_folder(opened.workload),
            rungs=opened.rungs,
            default_rung=opened.default_rung,
        )

    def _check(self, rung: RungView) -> Iterator[Line]:
        """The plan and its gates, or why not."""
        worker, request = self._worker, self._request(rung)
        if rung.refused:
            yield self._refusal(rung.id, rung.refused)
            return
        try:
            view = worker.client.resolve(request)
            gate = worker.check(request)
        except GputopError as error:
            yield self._refusal(rung.id, self._reason(error))
            return
        self._gates[rung.id] = gate
        yield PlanLine(view=recorded(view))
        yield GateLine(plan=view.word, gate=gate)

    def partners(
        self, rung: RungView, above: Sequence[RungView], opening: RungView | None
    ) -> tuple[RungView | None, ...]:
        """Return the rungs to pair this one with, one window each; None is a window alone."""
        if not self._passes(rung):
            return (None,)
        passing = [other for other in above if self._passes(other)]
        steps = [other for other in passing if other.kind == "ladder"]
        own = next((other for other in passing if other.id == rung.before), None)
        nearest = next(reversed(steps or passing), None)
        found = {other.id: other for other in (own or nearest, opening) if other}
        partners = tuple(other for other in found.values() if other is not rung and self._passes(other))
        return partners or (None,)

    def _passes(self, rung: RungView) -> bool:
        return rung.id in self._gates and self._gates[rung.id].ok

    def _windows(self, rung: RungView, partners: Sequence[RungView | None]) -> Iterator[Line]:
        for partner in partners:
            pinned = self._request(partner) if partner else None
            for _ in range(self._settings.windows):
                try:
                    window = self._worker.measure(self._request(rung), pinned, check_phases=True)
                except GputopError as error:
                    yield self._refusal(rung.id, self._reason(error))
                    break
                # Earlier windows are no part of what this recording saw.
                yield WindowLine(window=replace(window, pooled=None))

    def _ladder(self, rungs: Sequence[RungView]) -> Iterator[Line]:
        worker = self._worker
        worker.note("the whole ladder in one window")
        requests = [self._request(rung) for rung in rungs if rung.id in self._gates]
        if not requests:
            # Asked for no rung in particular, a session measures all that it has.
            yield self._refusal(THE_LADDER, "none of these rungs can be measured here")
            return
        try:
            yield LadderLine(
                ladder=worker.measure_ladder(
                    requests, seconds=self._seconds(len(requests)), check_phases=True
                )
            )
        except GputopError as error:
            yield self._refusal(THE_LADDER, self._reason(error))

    def _batches(self) -> Iterator[Line]:
        """The rung that the session opens on, at each batch asked for."""
        worker = self._worker
        rung = worker.opened.default_rung
        batches = [str(batch) for batch in self._settings.batches]
        worker.note(f"{rung} at batches {', '.join(batches)}")
        requests = [self._settings.request(rung).with_set("batch", batch) for batch in batches]
        try:
            yield BatchesLine(
                ladder=worker.measure_ladder(
                    requests, seconds=self._seconds(len(requests)), check_phases=True
                )
            )
        except GputopError as error:
            yield self._refusal(THE_BATCHES, self._reason(error))

    def _seconds(self, plans: int) -> float | None:
        """Return the time of a window of this many plans.

        The option is that of one pair: half of it is a plan's.
        """
        seconds = self._worker.seconds
        return None if seconds is None else seconds * max(1.0, plans / 2)

    def _request(self, rung: RungView) -> PlanRequest:
        return self._settings.request(rung.id)

    def _reason(self, error: GputopError) -> str:
        """Return the reason in words. Starts a new worker if one was lost."""
        if isinstance(error, WorkerLost):
            self._worker.client.restart(on_progress=self._worker.progress)
        return str(error)

    def _refusal(self, what: str, reason: str) -> RefusalLine:
        self._worker.note(f"{what} is not recorded: {reason}")
        return RefusalLine(what=what, reason=reason)
