"""Decode JSON that may be broken in any way: cut off, of other types, not UTF-8, nested without end."""

from __future__ import annotations

from typing import TypeVar

import msgspec

T = TypeVar("T")


class BrokenJson(ValueError):
    """The bytes are not JSON of the type that is expected; the message says why, in half a sentence."""


def decode_json(decoder: msgspec.json.Decoder[T], data: bytes) -> T:
    """Return the value in `data`. Raise BrokenJson if it can't be decoded, whatever the reason."""
    try:
        return decoder.decode(data)
    except RecursionError:
        raise BrokenJson("it is nested too deep") from None
    except ValueError as error:
        raise BrokenJson(str(error).rstrip(".")) from error
