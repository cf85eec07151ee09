"""Parts that are made of windows of one session: state, copies, split."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.proofs.evidence import Evidence, Measured, measured_of
from benchmarks.proofs.setting import Setting
from gputop.plan.plan_string import parse_word
from gputop.plan.types import PlanRequest
from gputop.session.session import Session
from gputop.util.errors import UsageError

PAIR_S = 1.0
"""The longest that a pair is sampled; it ends earlier where its interval is narrow enough."""
ALONE_S = 0.4
COPIES, SPLITS, ALONE = 100, 20, 8
"""Windows of each part."""
LADDER_S = 12.0
STATES = ("alone", "after another library", "amid the ladder")


def state(setting: Setting, kept: Evidence) -> Iterator[Measured]:
    """Yield the plan alone, then after a visit to another library, then amid all rungs of the ladder."""
    subjects = setting.subjects
    with setting.session() as session:
        for label in STATES[:2]:
            if label == STATES[1]:
                session.measure(PlanRequest(subjects.other), seconds=ALONE_S, whole=True, say=setting.say)
            for _ in range(ALONE - len(kept.labelled(label))):
                yield from _alone(setting, session, label)
        if not kept.labelled(STATES[2]):
            yield from _amid_ladder(setting, session)
        yield from _alone(setting, session, "after the ladder")


def _alone(setting: Setting, session: Session, label: str) -> Iterator[Measured]:
    window = session.measure(PlanRequest(setting.subjects.plan), seconds=ALONE_S, whole=True, say=setting.say)
    yield from found(measured_of(label, window))


def _amid_ladder(setting: Setting, session: Session) -> Iterator[Measured]:
    ready = [
        PlanRequest(view.id)
        for view in session.rung_views()
        if not view.refused and not view.on_request and view.kind != "peer"
    ]
    ladder = session.measure_ladder(ready, min(LADDER_S, setting.left_s), setting.over, setting.say)
    for entry in ladder.entries:
        if entry.rung == setting.subjects.plan and entry.device_s is not None:
            launch_s = ladder.health.launch_s if ladder.health else None
            yield Measured(STATES[2], entry.device_s, None, launch_s)


def copies(setting: Setting, kept: Evidence) -> Iterator[Measured]:
    """Yield windows of the plan against a copy of it, each time prepared anew."""
    request = PlanRequest(setting.subjects.plan)
    with setting.session() as session:
        for _ in range(COPIES - len(kept.windows)):
            window = session.measure(request, aa=True, seconds=PAIR_S, whole=True, say=setting.say)
            yield from found(measured_of("copies", window))


def split(setting: Setting, kept: Evidence) -> Iterator[Measured]:
    """Yield windows of one product in few parts against many."""
    parts = setting.subjects.parts
    if parts is None:
        raise UsageError(f"No kernel of {setting.backend} divides a product: leave the part split out.")
    few, many = (parse_word(word) for word in parts)
    with setting.session() as session:
        yield from pairs(setting, session, few, many, "split", SPLITS - len(kept.windows))


def pairs(
    setting: Setting,
    session: Session,
    pinned: PlanRequest,
    current: PlanRequest,
    label: str,
    windows: int,
    expected_ratio: float | None = None,
) -> Iterator[Measured]:
    """Yield so many windows of two plans."""
    for _ in range(windows):
        window = session.measure(current, pinned, seconds=PAIR_S, whole=True, say=setting.say)
        yield from found(measured_of(label, window, expected_ratio))


def found(measured: Measured | None) -> tuple[Measured]:
    """Return it. Raise UsageError if a gate failed: then nothing is proven."""
    if measured is None:
        raise UsageError("A plan failed its gate, so there is nothing to time: `gputop run` says where.")
    return (measured,)
