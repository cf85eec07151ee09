"""Whether a ceiling is possible: one from a cache or a recording may be well formed and still be nonsense."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from gputop.results.records import Ceiling, Ceilings

UNITS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(dram|l2)_latency|launch_.*|(grid|cluster)_barrier.*|call"), "s"),
    (re.compile(r"first_load_.*|last_store|block_start|library_start_.*"), "s"),
    (re.compile(r"(dram|l2|dsmem)_(read|copy|panel).*|code_fetch"), "B/s"),
    (re.compile(r"(fp32|tf32|bf16).*"), "FLOP/s"),
)
"""Unit of the ceilings whose name matches."""
MOST: Mapping[str, float] = {"FLOP/s": 1e17, "B/s": 1e16, "s": 1.0}
"""Some forty times what the fastest device does (2e15 FLOP/s dense in bf16, 4e13 B/s from its caches), and a
launch that anybody would notice."""
LEAST: Mapping[str, float] = {"FLOP/s": 1e6, "B/s": 1e6, "s": 1e-10}
"""A launch or a load takes at least a clock cycle."""
MOST_CLOCK_HZ = 1e10


def faults(ceilings: Ceilings) -> Iterator[str]:
    """Yield what can't be of a device's ceilings, half a sentence each."""
    for name, count in Counter(item.name for item in ceilings.items).items():
        if count > 1:
            yield f"ceiling {name} stands {count} times"
    for item in ceilings.items:
        yield from (f"ceiling {item.name}: {fault}" for fault in item_faults(item))


def item_faults(item: Ceiling) -> Iterator[str]:
    """Yield what can't be of one ceiling."""
    unit = next((unit for pattern, unit in UNITS if pattern.fullmatch(item.name)), item.unit)
    if unit != item.unit:
        yield f"its unit is {item.unit} and not {unit}"
        return
    for name in ("value", "sustained", "limit", "library", "datasheet"):
        figure: float | None = getattr(item, name)
        if figure is not None and not LEAST[unit] <= figure <= MOST[unit]:
            yield f"no device has a {name} of {figure:g} {unit}"
    if item.clock_hz is not None and not 0 < item.clock_hz <= MOST_CLOCK_HZ:
        yield f"no device has a clock of {item.clock_hz:g} Hz"
