"""A kernel's single by-value parameter struct, packed from a launch's arguments."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from gputop.plan.types import Argument, Scratch, View, WeightView
from gputop.util.errors import UsageError

Address = Callable[[View | WeightView | Scratch], int]
"""Where an operand's first element lies on the device."""


def pack(args: Sequence[Argument], address: Address) -> bytes:
    """The struct's bytes: pointers, then 4-byte scalars, the tail padded to a pointer.

    UsageError when a pointer follows a scalar, or a number fits no 4 bytes.
    """
    layout = "<"
    values: list[int | float] = []
    scalars = 0
    for arg in args:
        if arg is None or isinstance(arg, View | WeightView | Scratch):
            if scalars:
                raise UsageError(f"A kernel's pointers come before its numbers, but {arg!r} follows one.")
            layout += "Q"
            values.append(0 if arg is None else address(arg))
            continue
        scalars += 1
        layout += "f" if isinstance(arg, float) else "i"
        values.append(arg)
    layout += "4x" * (scalars % 2)
    try:
        return struct.pack(layout, *values)
    except struct.error as error:
        raise UsageError(f"Kernel arguments {args!r} do not fit their struct: {error}.") from None
