"""The shape tax: how badly tiles fit the work, and the grid fits the device."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from gputop.util.errors import UsageError


class Fit(NamedTuple):
    """Two factors, each 1 where nothing is wasted."""

    padding: float
    """Padded over real outputs."""
    idling: float
    """Time over what it would be with every SM busy to the end."""

    @property
    def shape_factor(self) -> float:
        return self.padding * self.idling


def fit(rows: int, columns: int, tile: tuple[int, int], blocks: int, sm_count: int) -> Fit:
    """Padding of `rows` x `columns` outputs by `tile` (rows, columns), and idling by a grid of `blocks`.

    Blocks go to whichever SM has room, so the busiest has ceil(blocks / SMs) of them where the mean has
    blocks / SMs: with few blocks SMs stand idle, with a few more than go round most wait for the last. What
    several resident blocks share of an SM takes as long whether they come together or in turn.

    UsageError where a size is below 1: there is no factor then.
    """
    if min(rows, columns, *tile, blocks, sm_count) < 1:
        raise UsageError("A shape factor needs sizes of at least 1: rows, columns, tile, blocks, SMs.")
    padded = ceil(rows / tile[0]) * tile[0] * ceil(columns / tile[1]) * tile[1]
    per_sm = blocks / sm_count
    return Fit(padding=padded / (rows * columns), idling=ceil(per_sm) / per_sm)
