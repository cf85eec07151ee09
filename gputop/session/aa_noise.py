"""The A/A floors of a session: what independently prepared copies of one plan differ by."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from gputop.perf import paired_stats, verdicts

MOST_KEPT = 12
"""Newest pairs of copies of one plan: a machine's noise changes over an evening."""


class NoiseFloors:
    """Pairs of copies seen so far, by plan word and by phase, `device`, `wall` or `site w1`."""

    def __init__(self, minimum: float) -> None:
        """`minimum`: the smallest |log ratio| that this backend ever reports."""
        self._minimum = minimum
        self._pairs: dict[tuple[str, str], deque[verdicts.Paired]] = {}
        self._of_window: dict[tuple[str, str], list[verdicts.Paired]] = {}

    @property
    def copies_known(self) -> float:
        """The half width to which copies must be known before anything is called the same."""
        return verdicts.copies_known(self._minimum)

    def begin_window(self) -> None:
        """Forget which copies were of the window before."""
        self._of_window.clear()

    def add(self, word: str, name: str, pair: verdicts.Paired) -> None:
        """One more copy paired with its original."""
        if not pair.reason:
            self._pairs.setdefault((word, name), deque(maxlen=MOST_KEPT)).append(pair)
            self._of_window.setdefault((word, name), []).append(pair)

    def count(self, word: str) -> int:
        """Pairs known of a plan's whole pass."""
        return len(self._pairs.get((word, "device"), ()))

    @property
    def any_known(self) -> bool:
        """Return whether any plan has measured copies."""
        return bool(self._pairs)

    def floor(self, word: str, name: str) -> verdicts.Floor:
        """Return what copies differ by: beyond it lies an effect, within it two plans are the same.

        If this plan has no A/A runs, those of other plans serve: placement noise is similar.
        """
        apart = paired_stats.aa_floor(_own_or_others(self._pairs, word, name), self._minimum)
        of_window = _own_or_others(self._of_window, word, name)
        same, unknown = paired_stats.same_within(of_window, self._minimum)
        return verdicts.Floor(apart, None if same is None else min(same, apart), unknown)


def _own_or_others(
    pairs: Mapping[tuple[str, str], Iterable[verdicts.Paired]], word: str, name: str
) -> tuple[verdicts.Paired, ...]:
    own = tuple(pairs.get((word, name), ()))
    return own or tuple(pair for (_, other), alike in pairs.items() if other == name for pair in alike)
