"""A plan in one word: RUNG[,TOGGLE=VALUE...][,SITE:KERNEL...]."""

from __future__ import annotations

from gputop.plan.types import PlanRequest
from gputop.util.errors import UsageError

FORM = "RUNG[,TOGGLE=VALUE...][,SITE:KERNEL...]"


def parse_word(word: str) -> PlanRequest:
    """Return the request that a word spells. Names are not looked up here.

    Raise UsageError for a broken form, and for one name with two values.
    """
    rung, *parts = (part.strip() for part in word.split(","))
    if not rung or "=" in rung or ":" in rung:
        raise UsageError(f"A plan begins with a rung: {FORM}, got {word!r}. See `gputop list rungs`.")
    sets: list[tuple[str, str]] = []
    uses: list[tuple[str, str]] = []
    for part in parts:
        for mark, pairs in (("=", sets), (":", uses)):
            name, found, value = part.partition(mark)
            if found and name and value:
                pairs.append((name, value))
                break
        else:
            raise UsageError(
                f"{part!r} in {word!r} is neither TOGGLE=VALUE nor SITE:KERNEL. A plan is {FORM}."
            )
    return checked_once(PlanRequest(rung, tuple(sets), tuple(uses)))


def checked_once(request: PlanRequest) -> PlanRequest:
    """Return the request itself. Raise UsageError if it gives one name two values: one would be ignored."""
    for pairs in (request.sets, request.uses):
        given: dict[str, str] = {}
        for name, value in pairs:
            if given.setdefault(name, value) != value:
                raise UsageError(f"{name} is asked to be {given[name]} and {value}: give it one value.")
    return request


def format_word(request: PlanRequest) -> str:
    """The word that parses to this request."""
    sets = (f"{name}={value}" for name, value in request.sets)
    uses = (f"{site}:{kernel}" for site, kernel in request.uses)
    return ",".join((request.rung, *sets, *uses))
