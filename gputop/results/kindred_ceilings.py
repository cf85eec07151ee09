"""Ceilings that a recording lacks, from a shipped recording of another device of the same name."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from gputop.results import recording
from gputop.results.records import Ceiling, Ceilings


def completed(ceilings: Ceilings) -> Ceilings:
    """Return all that is known of this kind of device; of each ceiling `how` says if it is another's."""
    known = {item.name for item in ceilings.items}
    lent = tuple(item for item in _shipped(ceilings.device) if item.name not in known)
    return replace(ceilings, items=(*ceilings.items, *lent))


@cache
def _shipped(device: str) -> tuple[Ceiling, ...]:
    """Of the shipped recording of such a device that has the most."""
    headers = [(name, recording.read_header(path)) for name, path in recording.shipped().items()]
    alike = [(name, header) for name, header in headers if header.device.name == device]
    if not alike:
        return ()
    name, header = max(alike, key=lambda item: len(item[1].ceilings.items))
    source = f"that of the {device} of recording {name}"
    return tuple(replace(item, how=f"{source}: {item.how}") for item in header.ceilings.items)
