"""Nsight Compute's report as figures: the CSV of its raw page, one line a kernel launch."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence

from gputop.results.counters import COUNTERS, Counted, CountedLaunch
from gputop.util.errors import WorkerLost

NAME, GRID, BLOCK = "Kernel Name", "Grid Size", "Block Size"
PREFIXES = {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
SECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
"""Unit of a time as newer versions spell it -> nanoseconds."""
_UNIT = re.compile(r"(?P<prefix>[numKMGT]?)(?P<base>byte|second|sector|request|inst|cycle|warp|block|hz)s?$")
_LONG_TIMES = {"nsecond": "ns", "usecond": "us", "msecond": "ms", "second": "s"}


def counted_launches(text: str, expected: Sequence[CountedLaunch]) -> tuple[Counted, ...]:
    """Return what ncu counted of each expected launch, in order.

    `text` is what `ncu --csv --page raw` writes. Raise WorkerLost if it holds no table, or not exactly those
    launches: figures of one kernel would be taken for another's.
    """
    units, rows = _table(text)
    names = [row.get(NAME, "") for row in rows]
    if names != [launch.name for launch in expected]:
        raise WorkerLost(
            f"ncu counted {_listed(names)}, but the pass launched "
            f"{_listed([launch.name for launch in expected])}: nothing of it is used."
        )
    return tuple(
        Counted(_shaped(launch, row), _values(row, units)) for launch, row in zip(expected, rows, strict=True)
    )


def _table(text: str) -> tuple[Mapping[str, str], list[dict[str, str]]]:
    """Return (column -> unit, rows). ncu writes lines of its own (`==PROF==`) before the table."""
    lines = text.splitlines()
    first = next((at for at, line in enumerate(lines) if line.startswith('"ID"')), None)
    if first is None:
        raise WorkerLost("ncu wrote no table of counters: nothing was counted.")
    found = list(csv.DictReader(line for line in lines[first:] if not line.startswith("==")))
    if not found:
        raise WorkerLost("ncu's table of counters has no lines: nothing was counted.")
    # The line below the heading holds units, and no kernel.
    units, rows = found[0], found[1:]
    return {key: unit or "" for key, unit in units.items() if key}, rows


def _shaped(launch: CountedLaunch, row: Mapping[str, str]) -> CountedLaunch:
    """Return a launch with the grid and block that ncu saw."""
    grid, block = _extent(row.get(GRID)), _extent(row.get(BLOCK))
    return CountedLaunch(
        launch.plan, launch.site, launch.name, grid or launch.grid, block or launch.block, launch.cubin
    )


def _extent(text: str | None) -> tuple[int, int, int] | None:
    """Return `(112, 1, 1)` as three numbers."""
    numbers = [int(part) for part in re.findall(r"\d+", text or "")]
    return (numbers[0], numbers[1], numbers[2]) if len(numbers) == 3 else None


def _values(row: Mapping[str, str], units: Mapping[str, str]) -> dict[str, float]:
    """Return every counter that has a figure; `n/a` and what is missing are left out."""
    found = {}
    for counter in COUNTERS:
        value = figure(row.get(counter.metric), units.get(counter.metric, ""))
        if value is not None:
            found[counter.key] = value * counter.scale
    return found


def figure(text: str | None, unit: str) -> float | None:
    """Return a cell in base units: bytes, nanoseconds, percent, counts. None for no figure.

    ncu groups digits (`1,234.5`) and may scale units (`Mbyte`, `us`) whatever it is asked for.
    """
    try:
        value = float((text or "").replace(",", ""))
    except ValueError:
        return None
    if not math.isfinite(value):
        return None
    spelled = _LONG_TIMES.get(unit, unit)
    if spelled in SECONDS:
        return value * SECONDS[spelled]
    scaled = _UNIT.match(unit)
    return value * PREFIXES[scaled["prefix"]] if scaled else value


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    shown = ", ".join(names[:4])
    return f"{len(names)} kernels ({shown}{', ...' if len(names) > 4 else ''})"
