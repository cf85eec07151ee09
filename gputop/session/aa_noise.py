"""The A/A floors of a session: what independently prepared copies of one plan differ by."""

from __future__ import annotations

from collections import deque

from gputop.perf import paired_stats

MOST_KEPT = 12
"""Newest pairs of copies of one plan: a machine's noise changes over an evening."""


class NoiseFloors:
    """Pairs of copies seen so far, by plan word and by phase, `device`, `wall` or `site w1`."""

    def __init__(self, minimum: float) -> None:
        """`minimum`: the smallest |log ratio| that this backend ever reports."""
        self._minimum = minimum
        self._pairs: dict[tuple[str, str], deque[paired_stats.Paired]] = {}

    def add(self, word: str, name: str, pair: paired_stats.Paired) -> None:
        """One more copy paired with its original."""
        if not pair.reason:
            self._pairs.setdefault((word, name), deque(maxlen=MOST_KEPT)).append(pair)

    def count(self, word: str) -> int:
        """Pairs known of a plan's whole pass."""
        return len(self._pairs.get((word, "device"), ()))

    @property
    def any_known(self) -> bool:
        """Return whether any plan has measured copies."""
        return bool(self._pairs)

    def floor(self, word: str, name: str) -> float:
        """Return the |log ratio| below which nothing counts as an effect.

        If this plan has no A/A runs, those of other plans serve: placement noise is similar.
        """
        own = self._pairs.get((word, name), ())
        alike = [pair for (_, other), pairs in self._pairs.items() if other == name for pair in pairs]
        return paired_stats.aa_floor(tuple(own or alike), self._minimum)
