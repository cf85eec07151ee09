"""A recording in a session's place: the same questions, answered by what was measured then and there."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import Any

from gputop.backends import check_sources
from gputop.perf import paired_stats
from gputop.plan.choices import PlanView, RungView, SiteChoices
from gputop.plan.types import Plan, PlanRequest, Workload
from gputop.planner.resolver import Resolver
from gputop.results import recording
from gputop.results.comparison_sentence import sentence
from gputop.results.flip_forecast import FlipForecasts
from gputop.results.kernel_report import KernelReport
from gputop.results.kindred_ceilings import completed
from gputop.results.ladder import Ladder, LadderEntry
from gputop.results.recording import Recording
from gputop.results.records import Ceilings, Delta, DeviceFacts, Gate, PlanResult, Window
from gputop.results.search_space import SearchSpace
from gputop.results.whatif import WhatIf, WhatIfAsked
from gputop.session.flip_forecast import FlipForecaster
from gputop.session.recorded_flips import NOT_RECORDED, RecordedFlips
from gputop.session.recorded_model import RecordedModel
from gputop.session.recorded_whatif import recorded_what_if
from gputop.session.rung_ratio import RungPair, pair_of
from gputop.util import units
from gputop.util.errors import UsageError

CUT_SHORT = "it was stopped before its end, so some rungs may be missing"

AGAINST_FIRST: dict[str, Any] = {f.name: None for f in fields(LadderEntry) if "_first" in f.name}
"""What is not known of a rung without the first one."""


class Replay:
    """Serves a recording. Whatever it gives out says so: `DeviceFacts.recording`, and a note.

    Every method raises UsageError for what was not recorded, with what was.
    """

    note = ""
    """No device was passed over: a recording was asked for."""

    def __init__(self, kept: Recording, word: str | None = None) -> None:
        """`word` is what the recording was asked for by, if it was read from a file."""
        self.word = word
        self._kept = kept
        self._model = RecordedModel(kept)
        self._label = recording.label(kept.header)
        self._note = f"{self._label}, made with gputop {kept.header.version}: nothing is measured here"
        if self._model.needed:
            self._note += ", but for terms and reach, which are by this gputop's model"
        if not kept.whole:
            self._note += f"; {CUT_SHORT}"
        plans = _measured_plans(kept)
        device, dims = kept.header.device, kept.header.workload.dims
        resolver = Resolver.load().on(device.arch, device.sm_count)
        self._flips = RecordedFlips(plans, kept.refused, dims, resolver)
        self._shown: Counter[tuple[str, str | None]] = Counter()
        if not plans:
            raise UsageError(f"This {self._label} holds no window: there is nothing to show.")

    @classmethod
    def open(cls, word: str | None, kernels_dir: str | None = None) -> Replay:
        """Read the recording that `word` means: a shipped one's name, or a file.

        Raise UsageError for one that can't be read, and for kernels that nothing would run.
        """
        check_sources("replay", kernels_dir)
        if word is None:
            names = ", ".join(recording.shipped()) or "none"
            raise UsageError(f"A recording must be named: --device FILE, or one that is shipped: {names}.")
        return cls(recording.read(recording.locate(word)), word)

    @property
    def recording(self) -> Recording:
        """All that was recorded, as it was read."""
        return self._kept

    @property
    def facts(self) -> DeviceFacts:
        """The device that was measured on."""
        return self._marked(self._kept.header.device)

    @property
    def workload(self) -> Workload:
        return self._kept.header.workload

    @property
    def why_no_ladder(self) -> str:
        """Empty where the rungs were measured in one window."""
        if self._kept.ladder is not None:
            return ""
        why = self._kept.refusals.get(recording.THE_LADDER, CUT_SHORT)
        return f"This {self._label} holds no ladder: {why}"

    @property
    def batches(self) -> Ladder | None:
        """One rung at several batches, where that was recorded."""
        kept = self._kept.batches
        if kept is None:
            return None
        return replace(
            self._model.ladder(kept), device=self._marked(kept.device), notes=(self._note, *kept.notes)
        )

    @property
    def default_rung(self) -> str:
        """The one that the recorded session opened on, else the last of its ladder, that passes its gate."""
        opening = self._kept.header.default_rung
        steps = [view.id for view in self.rung_views() if view.kind == "ladder" and self._passes(view)]
        if opening in steps:
            return opening
        return steps[-1] if steps else self._flips.plans[0].rung

    def rung_views(self) -> tuple[RungView, ...]:
        """The recorded session's rungs, each with why it can't be shown where it can't."""
        shown = {plan.rung for plan in self._flips.plans}
        return tuple(
            replace(rung, refused="" if rung.id in shown else self._why_missing(rung))
            for rung in self._kept.header.rungs
        )

    def view(self, request: PlanRequest) -> PlanView:
        """The recorded plan that was asked for; what leads to no other recorded plan can't be chosen."""
        plan = self._find(request)
        return PlanView(plan, self._flips.toggle_views(plan), self._flips.site_views(plan))

    def choices(self, request: PlanRequest, site: str) -> SiteChoices:
        """The kernels of one site that lead to another recorded plan, and those that do not."""
        return self._flips.site_choices(self._find(request), site)

    def search_space(self, request: PlanRequest, *_: object) -> SearchSpace:
        """Raises UsageError: what was not recorded can't be chosen."""
        raise UsageError(f"A {self._label} measures nothing: a search needs a device.")

    @property
    def windows(self) -> tuple[Window, ...]:
        """Every recorded window, as it was recorded."""
        return self._kept.windows

    def first_window(self, request: PlanRequest) -> Window:
        """The plan's first window, as it was recorded: paired with the rung before if there is one."""
        return self._given(self._of(self._find(request).word)[0])

    def measure(
        self, current: PlanRequest, pinned: PlanRequest | None = None, *, aa: bool = False, **_: object
    ) -> Window:
        """The recorded window of that pair, else of the current plan alone; several take turns.

        A difference is shown only where both plans ran in one recorded window. How long to measure, and
        when to stop, mean nothing here.
        """
        plan = self._find(current).word
        other = plan if aa else pinned and self._find(pinned).word
        both = [window for window in self._of(plan) if _plan(window, "pinned") == other]
        if both:
            return self._next(both, plan, other or None)
        if other == plan:
            raise UsageError(f"This recording has no copy of {plan} beside it: its noise floor is not known.")
        windows = sorted(self._of(plan), key=lambda window: len(window.lanes))
        alone = self._next([_alone(window) for window in windows], plan, None)
        if not other:
            return alone
        return replace(alone, verdict=f"{plan} and {other} did not run in one window of this recording.")

    def measure_ladder(self, requests: Sequence[PlanRequest], *_: object, **__: object) -> Ladder:
        """The recorded ladder, or those of its rungs that were asked for, in its order."""
        ladder = self._kept.ladder
        if ladder is None:
            raise UsageError(self.why_no_ladder)
        entries = self._model.ladder(ladder).entries
        wanted = [self._find(request).word for request in requests]
        if wanted:
            there = {entry.rung for entry in entries}
            missing = [word for word in wanted if word not in there]
            if missing:
                raise UsageError(
                    f"Not in the recorded ladder: {', '.join(missing)}. It has {_listed(there)}."
                )
            entries = tuple(entry for entry in entries if entry.rung in wanted)
        if entries and entries[0] != ladder.entries[0]:
            # What they are against the first is against a rung that is not shown.
            first = entries[0]
            entries = tuple(
                _against(first, entry, pair_of(ladder.entries, first.rung, entry.rung)) for entry in entries
            )
        return replace(
            ladder, device=self._marked(ladder.device), entries=entries, notes=(self._note, *ladder.notes)
        )

    def check(self, request: PlanRequest, *_: object) -> Gate:
        """Both gates of a plan, as they came out."""
        word = self._find(request).word
        if word not in self._kept.gates:
            raise UsageError(f"The phases of {word} were not checked in this recording.")
        return self._kept.gates[word]

    def forecast_flips(self, request: PlanRequest) -> FlipForecasts:
        """What the model expects of the flips of a plan that were not recorded."""
        return self._forecaster.forecasts(self._find(request))

    def what_if(self, asked: WhatIfAsked) -> WhatIf:
        """What the model expects of a recorded plan with something changed."""
        return recorded_what_if(self, asked, self._flips.resolver)

    def calibrate(self, force: bool = False, *_: object) -> Ceilings:
        """The recorded device's ceilings."""
        if force:
            raise UsageError("The ceilings of a recording can't be measured again: leave --force out.")
        return self._kept.header.ceilings

    def rebuild(self, request: PlanRequest, *_: object) -> tuple[KernelReport, ...]:
        """Raise UsageError: nothing is compiled for what was measured."""
        raise UsageError("This is a recording: no kernel of your own can be tried in it.")

    def close(self) -> None:
        """Holds nothing to give back."""

    @cached_property
    def _forecaster(self) -> FlipForecaster:
        header = self._kept.header
        return FlipForecaster(
            self._flips.resolver,
            header.workload,
            header.device,
            completed(header.ceilings),
            self._flips.plans,
            self._kept.windows,
            header.rungs,
        )

    def _find(self, request: PlanRequest) -> Plan:
        """The recorded plan that a request means, however it was asked for when it was recorded."""
        found = self._flips.find(request)
        if found is not None:
            return found
        word = str(request)
        rung = next((rung for rung in self.rung_views() if rung.id == word and rung.refused), None)
        if rung is not None:
            raise UsageError(f"{word} was not recorded: {rung.refused}")
        words = [plan.word for plan in self._flips.plans]
        near = difflib.get_close_matches(word, words, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"{word!r} was not recorded.{hint} This recording holds: {_listed(words)}.")

    def _why_missing(self, rung: RungView) -> str:
        return self._kept.refusals.get(rung.id) or rung.refused or NOT_RECORDED

    def _passes(self, rung: RungView) -> bool:
        if rung.refused:
            return False
        lane = self._of(self._find(PlanRequest(rung.id)).word)[0].lane("current")
        return lane is not None and lane.gate.ok

    def _of(self, plan: str) -> list[Window]:
        """The windows that measured this plan."""
        return [window for window in self._kept.windows if _plan(window, "current") == plan]

    def _next(self, windows: Sequence[Window], plan: str, pinned: str | None) -> Window:
        """One after the other, and then from the first again."""
        turn = self._shown[plan, pinned]
        self._shown[plan, pinned] += 1
        return self._given(windows[turn % len(windows)])

    def _given(self, window: Window) -> Window:
        """A recorded window as it is given out, its numbers as they are and its verdict in today's words.

        Where it had too few rounds for a verdict and the ladder knows the same pair, its words say so.
        """
        shown = self._model.window(window)
        return replace(shown, device=self._marked(window.device), verdict=self._verdict(window))

    def _verdict(self, window: Window) -> str:
        found = window.comparison
        if found is None:
            return window.verdict
        whole = found.get("device")
        pair = self._kept.ladder and pair_of(self._kept.ladder.entries, found.plan_a, found.plan_b)
        if whole is not None and _wants_rounds(whole) and pair and pair.gain.is_known:
            told = replace(whole, status="; ".join(part for part in (whole.status, _of_ladder(pair)) if part))
            return sentence(replace(found, deltas=(told,)))
        return sentence(found)

    def _marked(self, facts: DeviceFacts) -> DeviceFacts:
        return replace(facts, recording=self._label, notes=(self._note, *facts.notes))


def _measured_plans(kept: Recording) -> tuple[Plan, ...]:
    """The plans that have a window, once each."""
    measured = {_plan(window, "current") for window in kept.windows}
    return tuple({plan.word: plan for plan in kept.plans if plan.word in measured}.values())


def _plan(window: Window, role: str) -> str | None:
    lane = window.lane(role)
    return lane.plan if lane else None


def _alone(window: Window) -> Window:
    """The current plan's share of a window, without what was said of a pair."""
    if len(window.lanes) == 1:
        return window
    lanes = tuple(_unpaired(lane) for lane in window.lanes if lane.role == "current")
    return replace(window, lanes=lanes, comparison=None, verdict="")


def _wants_rounds(delta: Delta) -> bool:
    return delta.verdict == "UNRESOLVED" and delta.samples < paired_stats.MIN_ROUNDS


def _of_ladder(pair: RungPair) -> str:
    """`in the ladder 5.86× [5.86, 5.87], faster`: in lower case, as it is not this window's verdict."""
    what = f"by both against {pair.through}" if pair.through else pair.verdict.lower()
    figure = units.ratio_within(pair.gain)
    return ", ".join(part for part in (f"in the ladder {figure}", what) if part)


def _against(first: LadderEntry, entry: LadderEntry, pair: RungPair | None) -> LadderEntry:
    """An entry against the first one shown; savings are what the ratio leaves of that one's time."""
    unknown = replace(entry, **AGAINST_FIRST)
    if entry is first:
        return replace(unknown, ratio_first=1.0 if entry.device_s else None)
    if pair is None or first.device_s is None:
        return unknown
    sequence_s = first.device_s / (first.batch or 1)
    gain = pair.gain
    saved_s, saved_lo_s, saved_hi_s = (
        sequence_s * (1 - 1 / ratio) if ratio else None for ratio in (gain.value, gain.lo, gain.hi)
    )
    derived = ""
    if pair.through:
        derived = f"against {first.rung} derived from both against {pair.through}: a wider interval"
    return replace(
        unknown,
        ratio_first=gain.value,
        ratio_first_lo=gain.lo,
        ratio_first_hi=gain.hi,
        saved_first_s=saved_s,
        saved_first_lo_s=saved_lo_s,
        saved_first_hi_s=saved_hi_s,
        through=pair.through,
        status="; ".join(part for part in (entry.status, derived) if part),
    )


def _unpaired(lane: PlanResult) -> PlanResult:
    rows = tuple(
        replace(
            row, pinned_plan=None, delta_s=None, delta_lo_s=None, delta_hi_s=None, ratio=None, verdict=None
        )
        for row in lane.rows
    )
    return replace(lane, rows=rows)


def _listed(words: Sequence[str] | set[str]) -> str:
    return ", ".join(sorted(words))
