"""What the parts measured, as it is kept between runs."""

from __future__ import annotations

from pathlib import Path

import msgspec

from gputop.results.records import Delta, Window
from gputop.util.output_file import open_target


class Measured(msgspec.Struct, frozen=True):
    """One window's whole pass."""

    label: str
    """Which of a part's conditions it was measured in."""
    device_s: float
    """Of the current plan."""
    delta: Delta | None = None
    """The pinned plan against the current one, if there are two."""
    launch_s: float | None = None
    """What an empty launch cost in the window."""
    expected_ratio: float | None = None
    """Time of the pinned plan / time of the current one, if the difference was made on purpose."""


class Evidence(msgspec.Struct, frozen=True):
    """One part's windows, all on one device with one version."""

    part: str
    time_utc: str
    """When its last window ended."""
    seconds: float
    """What its windows took, opening and preparing included."""
    plan: str
    backend: str
    device: str
    driver: str | None
    versions: str
    gputop: str
    workload: str
    windows: tuple[Measured, ...] = ()

    def labelled(self, label: str) -> tuple[Measured, ...]:
        return tuple(window for window in self.windows if window.label == label)

    def same_setting(self, other: Evidence) -> bool:
        """Return whether windows of both can stand together."""
        mine, theirs = (
            (kept.plan, kept.backend, kept.device, kept.driver, kept.versions, kept.gputop, kept.workload)
            for kept in (self, other)
        )
        return mine == theirs


_decoder = msgspec.json.Decoder(dict[str, Evidence])


def read_evidence(file: Path) -> dict[str, Evidence]:
    """Return what a file holds by part; nothing if it is not there. Raise ValueError for another file."""
    return _decoder.decode(file.read_bytes()) if file.exists() else {}


def keep_evidence(file: Path, parts: dict[str, Evidence]) -> None:
    """Write all parts."""
    open_target(str(file)).write(msgspec.json.format(msgspec.json.encode(parts)).decode() + "\n")


def measured_of(label: str, window: Window, expected_ratio: float | None = None) -> Measured | None:
    """Return a window's whole pass; None if a gate failed, for then there is no time."""
    lane = window.lane("current")
    if lane is None or lane.device_s is None:
        return None
    delta = window.comparison.get("device") if window.comparison else None
    return Measured(label, lane.device_s, delta, window.health.launch_s, expected_ratio)
