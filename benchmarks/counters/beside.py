"""Counted figures beside the rows of a recording: how far declared bytes are off, and what is busiest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from gputop.perf.roofline.launch_terms import RESOURCES
from gputop.results.counters import Counted
from gputop.results.recording import Recording
from gputop.results.records import TOTAL_ROWS, Ceilings, Row

LEAST_SHARE = 0.01
"""Of its pass: kernels that take less are left out."""
DRAM_WITHIN, L2_WITHIN = 0.05, 0.10
BUSY = 0.5
"""A resource that is in use for less of the time does not bind."""


@dataclass(frozen=True, slots=True)
class Beside:
    """One site of one plan: what one instance was counted at, and its row in a recording."""

    plan: str
    row: Row
    recording: str
    same_build: bool
    """Whether the recording's machine code is what was counted."""
    values: Mapping[str, float]
    """Counter's key -> figure: sums of an instance's launches, shares of its longest."""
    ceilings: Ceilings

    @property
    def dram_off(self) -> float | None:
        """Declared / counted - 1 of the bytes read from DRAM; None if one of them is unknown or nothing."""
        return _off(self.row.dram_bytes, self.row.count, self.values.get("dram_read_bytes"))

    @property
    def l2_counted_bytes(self) -> float | None:
        """What SMs took from L2 and wrote; where that was not counted, what L2 served, which may be less."""
        values = self.values
        parts = [values.get(key) for key in ("sm_read_bytes", "sm_write_bytes", "sm_shared_bytes")]
        read, written, shared = parts
        if read is None or written is None or shared is None:
            return values.get("l2_bytes")
        return read - shared + written

    @property
    def l2_off(self) -> float | None:
        return _off(self.row.l2_bytes, self.row.count, self.l2_counted_bytes)

    @property
    def busy(self) -> dict[str, float]:
        """Resource -> share of the time that it was in use, as counted; without what is unknown."""
        return dict(_busy(self))

    @property
    def agrees(self) -> bool | None:
        """Whether what the model names is what the counters show.

        A resource that is named has to be the busiest; a wait that is named (a launch, a first load, an end)
        leaves each of them idle half of the time. None where the model names nothing.
        """
        named, busy = self.row.binds, self.busy
        if named in (None, "unknown") or not busy:
            return None
        if named in RESOURCES:
            return max(busy, key=busy.__getitem__) == named
        return max(busy.values()) < BUSY


def beside(counted: Sequence[Counted], recordings: Mapping[str, Recording]) -> Iterator[Beside]:
    """Yield each kernel and shape once, by the first recording and plan that has it and 1 % of a pass."""
    seen = set()
    for (plan, site), launches in groupby(counted, key=lambda item: (item.launch.plan, item.launch.site)):
        found = tuple(launches)
        for name, kept in recordings.items():
            row = _row(kept, plan, site)
            if row is None or row.library_kernel is not None:
                continue
            shape = (row.kernel, row.grid, site.partition("@")[0])
            if shape not in seen and _share(kept, row) >= LEAST_SHARE:
                seen.add(shape)
                same = row.cubin in {item.launch.cubin for item in found}
                yield Beside(plan, row, name, same, _instance(found, row), kept.header.ceilings)
            break


def _row(kept: Recording, plan: str, site: str) -> Row | None:
    """Return the last one with a time: a later window is of a warmer device."""
    rows = (
        row
        for window in reversed(kept.windows)
        for lane in window.lanes
        if lane.plan == plan
        for row in lane.rows
        if row.phase == site and row.time_s
    )
    return next(rows, None)


def _share(kept: Recording, row: Row) -> float:
    """Of its plan's pass, by the rows of the same window."""
    window = next(window for window in kept.windows if window.number == row.window)
    rows = next(lane.rows for lane in window.lanes if lane.plan == row.plan)
    whole_s = sum(other.time_s or 0.0 for other in rows if other.phase not in TOTAL_ROWS)
    return (row.time_s or 0.0) / whole_s if whole_s else 0.0


def _instance(launches: Sequence[Counted], row: Row) -> dict[str, float]:
    """All launches of one instance: ncu counted alike ones once."""
    alike = (row.launches or 1) / (row.count or 1) / len(launches)
    longest = max(launches, key=lambda item: item.values.get("time_s", 0.0))
    keys = dict.fromkeys(key for item in launches for key in item.values)
    return {
        key: sum(item.values.get(key, 0.0) for item in launches) * alike
        if key.endswith(("_bytes", "_s", "wavefronts", "instructions"))
        else longest.values.get(key, 0.0)
        for key in keys
    }


def _off(declared: float | None, count: int | None, counted: float | None) -> float | None:
    return declared / count / counted - 1 if declared and count and counted else None


def _busy(one: Beside) -> Iterable[tuple[str, float]]:
    row, values = one.row, one.values
    time_s = (row.time_s or 0.0) / (row.count or 1)
    if not time_s:
        return
    for resource, keys, ceiling in (
        ("dram", ("dram_read_bytes", "dram_write_bytes"), "dram_read"),
        ("l2", ("l2_bytes",), "l2_read"),
    ):
        peak = next((item.value for item in one.ceilings.items if item.name == ceiling), None)
        if peak and all(key in values for key in keys):
            yield resource, sum(values[key] for key in keys) / time_s / peak
    for resource, keys in (("compute", ("tensor_share", "fma_share")), ("issue", ("issue_share",))):
        known = [values[key] for key in keys if key in values]
        if known:
            yield resource, max(known)
