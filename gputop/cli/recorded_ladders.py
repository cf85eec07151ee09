"""Ladders that were recorded on several cards, read and pooled: the card is the unit."""

from __future__ import annotations

from collections.abc import Sequence

from gputop.results import recording
from gputop.results.fleet_pooling import Placed
from gputop.results.ladder import Ladder
from gputop.results.recording import THE_LADDER, Header
from gputop.util.errors import UsageError


def recorded_ladders(names: Sequence[str]) -> list[Placed[Ladder]]:
    """Return the ladder of each recording, as the device that it was made on.

    UsageError for a file that is no recording or has no ladder, for another workload than the first one's,
    and for two recordings of one card: they would count as two.
    """
    placed: list[Placed[Ladder]] = []
    cards: dict[str, str] = {}
    first: Header | None = None
    for name in names:
        kept = recording.read(recording.locate(name))
        if kept.ladder is None:
            why = kept.refusals.get(THE_LADDER, "it was stopped before")
            raise UsageError(f"{name} holds no ladder: {why}.")
        first = first or kept.header
        if kept.header.workload != first.workload:
            both = f"{names[0]} of {first.workload.name}, {name} of {kept.header.workload.name}"
            raise UsageError(f"Ladders of different workloads can't be pooled: {both}.")
        card = kept.header.device.uuid or ""
        if card and card in cards:
            raise UsageError(
                f"{cards[card]} and {name} were made on one card: give one recording of each card."
            )
        cards[card] = name
        placed.append(Placed(len(placed) + 1, name, kept.header.device, kept.ladder))
    return placed
