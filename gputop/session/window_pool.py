"""Windows of a pair of plans, kept between processes and days, so that waiting tightens the interval.

One SQLite file in this user's data folder, in WAL mode: several processes may write at once, and one that is
killed in the middle leaves what was there before. The host's name is part of the file's, as WAL does not work
between hosts that share a home folder.
"""

from __future__ import annotations

import platform
import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import groupby
from pathlib import Path

import msgspec

from gputop.plan.types import Workload
from gputop.results.launch_state import is_one_state
from gputop.results.meta_analysis import pool, turned
from gputop.results.records import Comparison, Pooled, Window
from gputop.util.json_decode import BrokenJson, decode_json
from gputop.util.paths import data_dir

SCHEMA = 1
BUSY_S = 5.0
"""How long a window waits for another process that writes."""
MOST_KEPT = 400
"""Newest windows of one pair: older ones are forgotten."""

_TABLE = """
CREATE TABLE IF NOT EXISTS windows (
    id INTEGER PRIMARY KEY,
    pair TEXT NOT NULL,
    unit TEXT NOT NULL,
    time_utc TEXT NOT NULL,
    launch_s REAL,
    comparison BLOB NOT NULL
)
"""
_INDEX = "CREATE INDEX IF NOT EXISTS windows_by_pair ON windows (pair, unit, id)"
_comparisons = msgspec.json.Decoder(Comparison)


class PoolUnusable(Exception):
    """The file can't be used; the message says what to do. Windows are measured all the same."""


@dataclass(frozen=True, slots=True)
class KeptWindow:
    """One window as it is kept."""

    unit: str
    time_utc: str
    launch_s: float | None
    comparison: Comparison


def pool_file() -> Path | None:
    """Return where this host's windows are kept; None for a user without a home folder."""
    folder = data_dir()
    host = re.sub(r"[^A-Za-z0-9.-]", "-", platform.node()) or "host"
    return None if folder is None else folder / f"windows-{SCHEMA}-{host}.sqlite"


def pooled(path: Path, window: Window, workload: Workload, unit: str) -> Pooled | None:
    """Keep the window and return it pooled with those of the same pair in the same state.

    `unit`: what prepared the two plans, for its windows share one placement in memory. A window of another
    device, driver, machine code, version or launch cost is pooled with none of these. Returns None for a
    window without a comparison that tells anything. Raises PoolUnusable.
    """
    comparison = window.comparison
    device = comparison.get("device") if comparison else None
    if comparison is None or device is None or not device.ratio_lo or device.ratio_hi is None:
        return None
    backwards = comparison.plan_b < comparison.plan_a
    kept = KeptWindow(
        unit, window.time_utc, window.health.launch_s, turned(comparison) if backwards else comparison
    )
    try:
        alike = [
            other
            for other in _add(path, pair_key(window, workload), kept)
            if is_one_state(other.launch_s, kept.launch_s)
        ]
        together = by_unit(alike)
    except (sqlite3.Error, OSError, BrokenJson) as error:
        raise PoolUnusable(
            f"{path} can't be used ({error}): this window is not pooled with earlier ones. "
            f"Make it writable, or delete it to begin anew."
        ) from error
    return replace(together, comparison=turned(together.comparison)) if backwards else together


def pair_key(window: Window, workload: Workload) -> str:
    """Return what must be equal in windows that are pooled, as one digest.

    The device, its driver and how much of the host may be used; the sizes; both plans, in either order; the
    machine code of their kernels, and the versions of everything else.
    """
    facts = window.device
    rows = [row for lane in window.lanes for row in lane.rows]
    parts = (
        *(facts.backend, facts.uuid or facts.name, facts.driver, facts.sm_count, facts.cpu_quota_cores),
        repr(workload),
        *(sorted((found.plan_a, found.plan_b)) if (found := window.comparison) else ()),
        *sorted({f"{row.plan} {row.phase} {row.kernel} {row.cubin}" for row in rows}),
        *sorted({str(row.versions) for row in rows}),
    )
    return blake2b("\n".join(map(str, parts)).encode(), digest_size=16).hexdigest()


def _add(path: Path, pair: str, kept: KeptWindow) -> list[KeptWindow]:
    """Write one window; return all of its pair, those of one unit together, oldest first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path, timeout=BUSY_S)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(_TABLE)
            connection.execute(_INDEX)
            connection.execute(
                "INSERT INTO windows (pair, unit, time_utc, launch_s, comparison) VALUES (?, ?, ?, ?, ?)",
                (pair, kept.unit, kept.time_utc, kept.launch_s, msgspec.json.encode(kept.comparison)),
            )
            connection.execute(
                "DELETE FROM windows WHERE pair = ? AND id NOT IN "
                "(SELECT id FROM windows WHERE pair = ? ORDER BY id DESC LIMIT ?)",
                (pair, pair, MOST_KEPT),
            )
        rows = connection.execute(
            "SELECT unit, time_utc, launch_s, comparison FROM windows WHERE pair = ? ORDER BY unit, id",
            (pair,),
        ).fetchall()
    return [KeptWindow(str(unit), str(at), launch_s, _decoded(blob)) for unit, at, launch_s, blob in rows]


def _decoded(blob: object) -> Comparison:
    if not isinstance(blob, bytes):
        raise BrokenJson("it holds something else than windows")
    return decode_json(_comparisons, blob)


def by_unit(kept: Iterable[KeptWindow]) -> Pooled:
    """The windows of each unit as one, then those as one: what a unit's windows share is not told apart."""
    units = [list(windows) for _, windows in groupby(kept, lambda window: window.unit)]
    since_utc = min(window.time_utc for windows in units for window in windows)
    try:
        together = pool([pool([window.comparison for window in windows]) for windows in units])
    except (ValueError, ArithmeticError) as error:
        raise BrokenJson(f"it holds windows that can't be: {error}") from error
    return Pooled(together, len(units), since_utc)
