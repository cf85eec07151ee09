"""How near the model comes to what was recorded, by plan: docs/model.md, and what a test holds it to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gputop.results.kindred_ceilings import completed
from gputop.results.recording import Recording
from gputop.results.records import Window
from gputop.session.recorded_model import RecordedModel
from gputop.session.timed_site import TimedSite, residual
from gputop.util import units

CLOSE = frozenset({"cublaslt", "flash", "graph", "dependent", "hopper"})
CLOSE_BOUND, BOUND = 0.15, 0.25
"""Largest residual of these rungs, and of every other."""


@dataclass(frozen=True, slots=True)
class Ratchet:
    """A plan whose residual is above the bound."""

    held: float
    """What it may be at most: as it is, so that it can only get better."""
    why: str


EXCEPTIONS: Mapping[str, Ratchet] = {
    "wmma": Ratchet(0.26, "products by wmma take longer than the rate of its instructions alone allows."),
    "algebra": Ratchet(0.32, "as `wmma`, with less beside its products."),
    "w2-assault": Ratchet(0.31, "as `algebra`."),
    "megakernel": Ratchet(
        0.62, "its products wait for each other's tiles inside one launch; no term says so."
    ),
    "tma": Ratchet(0.28, "attention is modelled too long and the products too short."),
    "fp32-dependent": Ratchet(0.35, "products in fp32 take longer than their instructions need to issue."),
    "graph,math=fp32": Ratchet(0.31, "as `fp32-dependent`."),
}
"""By plan."""


@dataclass(frozen=True, slots=True)
class Explained:
    """A plan of a recording, all its windows together."""

    recording: str
    plan: str
    rung: str
    device_s: float
    """Mean of the windows, without sequences of a batch taken apart."""
    modelled_s: float
    """The same, by the model, with the gaps between launches."""
    residual: float
    worst: TimedSite
    """The site that is furthest off, in seconds."""

    @property
    def bound(self) -> float:
        """That the residual has to keep if the plan is no exception."""
        return CLOSE_BOUND if self.plan in CLOSE else BOUND

    @property
    def exception(self) -> Ratchet | None:
        return EXCEPTIONS.get(self.plan)


def explained(name: str, kept: Recording) -> Iterator[Explained]:
    """Yield each plan of a recording whose sites are ours to model, in the order of its windows."""
    model = RecordedModel(kept)
    lanes: dict[str, list[tuple[Window, tuple[TimedSite, ...]]]] = {}
    rungs: dict[str, str] = {}
    for window in kept.windows:
        for lane in window.lanes:
            sites = model.sites(window, lane)
            if sites:
                lanes.setdefault(lane.plan, []).append((window, sites))
                rungs[lane.plan] = lane.rung
    for plan, found in lanes.items():
        every = [timed for _, sites in found for timed in sites]
        off = residual(every)
        assert off is not None
        yield Explained(
            recording=name,
            plan=plan,
            rung=rungs[plan],
            device_s=sum((timed.time_s or 0.0) + (timed.gap_s or 0.0) for timed in every) / len(found),
            modelled_s=sum((timed.terms.modelled_s or 0.0) + (timed.gap_s or 0.0) for timed in every)
            / len(found),
            residual=off,
            worst=max(every, key=_off_s),
        )


def _off_s(timed: TimedSite) -> float:
    return abs((timed.terms.modelled_s or 0.0) - (timed.time_s or 0.0))


COLUMNS = ("recording", "plan", "time", "modelled", "residual", "at most", "furthest off")


def model_page(recordings: Mapping[str, Recording]) -> str:
    """docs/model.md."""
    every = [one for name, kept in recordings.items() for one in explained(name, kept)]
    close = ", ".join(f"`{rung}`" for rung in sorted(CLOSE))
    lines = [
        "# How near the model comes",
        "",
        "The model of a launch is a sum of terms; [reading-a-profile.md](reading-a-profile.md) says what"
        " each is. Here it is held against every plan of ours in the shipped recordings. Nothing in it is"
        " fitted to a pass: each constant is a ceiling that a probe of its own measures.",
        "",
        "The residual of a plan is the mean over its sites of |sum of terms - time| / time, weighted by time,"
        " with the gaps between launches in both. Explaining too much counts as much as too little. It may"
        f" be at most {units.percent(CLOSE_BOUND)} for {close}, and {units.percent(BOUND)} for every other"
        " plan. Exceptions are named below.",
        "",
        *(_ceilings_line(name, kept) for name, kept in recordings.items()),
        "",
        markdown_row(COLUMNS),
        markdown_row(["---"] * len(COLUMNS)),
        *(markdown_row(_cells(one)) for one in every),
        "",
        "## Exceptions",
        "",
        *(f"- `{plan}`: {ratchet.why}" for plan, ratchet in EXCEPTIONS.items()),
        "",
        "Written by `make results`; edit `docs/model.py` instead.",
    ]
    return "\n".join(lines) + "\n"


def _ceilings_line(name: str, kept: Recording) -> str:
    own = {item.name for item in kept.header.ceilings.items}
    lent = [item for item in completed(kept.header.ceilings).items if item.name not in own]
    if not lent:
        return f"- `{name}` has every ceiling that the model needs."
    return f"- `{name}` lacks {len(lent)} ceilings: for each, {lent[0].how.partition(':')[0]} stands in."


def _cells(one: Explained) -> tuple[str, ...]:
    most = one.exception.held if one.exception else one.bound
    worst = one.worst
    off = f"`{worst.model.name}`: {units.seconds(worst.terms.modelled_s)} of {units.seconds(worst.time_s)}"
    return (
        one.recording,
        f"`{one.plan}`",
        units.seconds(one.device_s),
        units.seconds(one.modelled_s),
        units.percent(one.residual),
        units.percent(most) + (" (exception)" if one.exception else ""),
        off,
    )


def markdown_row(cells: Iterable[str]) -> str:
    """Return a row of a table in Markdown."""
    return f"| {' | '.join(cells)} |"
