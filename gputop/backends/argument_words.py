"""Pointers and numbers of a kernel's arguments, as C packs them into a struct."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from gputop.plan.types import Argument, Scratch, TensorMap, View, WeightView
from gputop.util.errors import UsageError

Address = Callable[[View | WeightView | Scratch], int]
"""Where an operand's first element lies in the memory of the device."""


def pack_words(args: Sequence[Argument], address: Address) -> bytes:
    """Return pointers, then 4-byte numbers, padded as C pads them.

    Raise UsageError if they come in another order, or a number fits no 4 bytes.
    """
    layout = "<"
    values: list[int | float] = []
    numbers = 0
    for arg in args:
        if isinstance(arg, TensorMap):
            raise UsageError(
                f"A kernel's tensor maps come before its other arguments, but {arg!r} follows one."
            )
        if arg is None or isinstance(arg, View | WeightView | Scratch):
            if numbers:
                raise UsageError(f"A kernel's pointers come before its numbers, but {arg!r} follows one.")
            layout += "Q"
            values.append(0 if arg is None else address(arg))
            continue
        numbers += 1
        layout += "f" if isinstance(arg, float) else "i"
        values.append(arg)
    layout += "4x" * (numbers % 2)
    try:
        return struct.pack(layout, *values)
    except struct.error as error:
        raise UsageError(f"Kernel arguments {args!r} do not fit their struct: {error}.") from None
