"""A kernel's single by-value parameter struct, packed from a launch's arguments."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from gputop.backends.cuda.runtime.tensor_map import MAP_ALIGNMENT, encode_tensor_map
from gputop.plan.types import Argument, Scratch, TensorMap, View, WeightView
from gputop.util.errors import UsageError

Address = Callable[[View | WeightView | Scratch], int]
"""Where an operand's first element lies on the device."""
Encode = Callable[[TensorMap, int], bytes]
"""A tensor map's bytes, given where the tensor lies."""


def pack(args: Sequence[Argument], address: Address, encode: Encode = encode_tensor_map) -> bytes:
    """The struct's bytes: tensor maps, then pointers, then 4-byte numbers, the tail padded as C pads it.

    UsageError when they come in another order, or a number fits no 4 bytes.
    """
    maps = [arg for arg in args if isinstance(arg, TensorMap)]
    head = b"".join(encode(map_, address(map_.operand)) for map_ in maps)
    tail = _pack_words(args[len(maps) :], address)
    return head + tail.ljust(-(-len(tail) // MAP_ALIGNMENT) * MAP_ALIGNMENT, b"\0") if maps else tail


def _pack_words(args: Sequence[Argument], address: Address) -> bytes:
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
