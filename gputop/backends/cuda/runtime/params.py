"""A kernel's single by-value parameter struct, packed from a launch's arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gputop.backends.argument_words import Address, pack_words
from gputop.backends.cuda.runtime.tensor_map import MAP_ALIGNMENT, encode_tensor_map
from gputop.plan.types import Argument, TensorMap

Encode = Callable[[TensorMap, int], bytes]
"""A tensor map's bytes, given where the tensor lies."""


def pack(args: Sequence[Argument], address: Address, encode: Encode = encode_tensor_map) -> bytes:
    """The struct's bytes: tensor maps, then pointers, then 4-byte numbers, the tail padded as C pads it.

    UsageError when they come in another order, or a number fits no 4 bytes.
    """
    maps = [arg for arg in args if isinstance(arg, TensorMap)]
    head = b"".join(encode(map_, address(map_.operand)) for map_ in maps)
    tail = pack_words(args[len(maps) :], address)
    return head + tail.ljust(-(-len(tail) // MAP_ALIGNMENT) * MAP_ALIGNMENT, b"\0") if maps else tail
