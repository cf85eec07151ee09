"""The shape tax: how badly tiles fit the work, and the grid fits the device."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from gputop.errors import BadInput


class Fit(NamedTuple):
    """Two factors, each 1 where nothing is wasted."""

    padding: float
    """Padded over real outputs."""
    idling: float
    """Time over what it would be with every SM busy to the end."""

    @property
    def shape_factor(self) -> float:
        return self.padding * self.idling


def fit(
    rows: int, columns: int, tile: tuple[int, int], blocks: int, blocks_per_sm: int, sm_count: int
) -> Fit:
    """Padding of `rows` x `columns` outputs by `tile` (rows, columns), and idling by a grid of `blocks`.

    A grid of one wave or more idles ceil(waves) / waves. In less than a wave no block waits for
    another's slot, so it is SMs that idle: the busiest holds ceil(blocks / SMs) blocks where the
    mean holds blocks / SMs.

    BadInput where a size is below 1: there is no factor then.
    """
    if min(rows, columns, *tile, blocks, blocks_per_sm, sm_count) < 1:
        raise BadInput("A shape factor needs sizes of at least 1: rows, columns, tile, blocks, SMs.")
    padded = ceil(rows / tile[0]) * tile[0] * ceil(columns / tile[1]) * tile[1]
    waves = blocks / (blocks_per_sm * sm_count)
    per_sm = blocks / sm_count
    return Fit(
        padding=padded / (rows * columns),
        idling=ceil(waves) / waves if waves >= 1 else ceil(per_sm) / per_sm,
    )


def shape_factor(
    rows: int, columns: int, tile: tuple[int, int], blocks: int, blocks_per_sm: int, sm_count: int
) -> float:
    """(padded / real work) x (ceil(waves) / waves), idle SMs counted: both factors of `fit`."""
    return fit(rows, columns, tile, blocks, blocks_per_sm, sm_count).shape_factor
