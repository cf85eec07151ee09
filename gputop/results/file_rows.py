"""The rows of each table that gputop writes, made of what was measured.

A row is a mapping from column key to raw SI value, None if unknown; `export` writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gputop.results.fleet_row import FleetRow
from gputop.results.kernel_selection import Routing, headroom
from gputop.results.ladder import Ladder
from gputop.results.records import Ceilings, Comparison, Delta, Gate, Row, Window
from gputop.results.schemas import (
    BREAKDOWN,
    CEILINGS,
    COMPARE,
    FLEET,
    LADDER,
    PHASES,
    ROUTING,
    SEARCH,
    WINDOWS,
    Schema,
)
from gputop.results.search_result import SearchResult

Value = str | int | float | bool | None
Record = Mapping[str, Value]


def phase_records(rows: tuple[Row, ...]) -> Iterator[Record]:
    for row in rows:
        yield {column.key: getattr(row, column.key) for column in PHASES.columns}


def compare_records(comparison: Comparison) -> Iterator[Record]:
    plans = {key: getattr(comparison, key) for key in ("plan_a", "plan_b", "windows")}
    for delta in comparison.deltas:
        yield _fields(COMPARE, delta, **plans)


def window_records(windows: tuple[Window, ...]) -> Iterator[Record]:
    for window in windows:
        delta = window.comparison.get("device") if window.comparison else None
        for lane in window.lanes:
            yield _fields(
                WINDOWS,
                lane,
                time_utc=window.time_utc,
                window=window.number,
                seconds=window.seconds,
                backend=window.device.backend,
                device=window.device.name,
                driver=window.device.driver,
                workload=window.workload,
                **_gate(lane.gate),
                **_paired(delta if lane.role == "current" else None),
                sm_clock_hz=window.health.sm_clock_hz,
                memory_clock_hz=window.health.memory_clock_hz,
                power_w=window.health.power_w,
                temperature_c=window.health.temperature_c,
                throttle=_listed(window.health.throttle),
                others=_listed(window.health.others),
                stopped_because=window.stopped_because,
                versions=window.device.versions,
                status=_sentences(lane.gate.where, delta.status if delta else "", *window.notes),
                host_cores=window.health.host_cores,
                others_cores=window.health.others_cores,
                throttled_s=window.health.throttled_s,
                cpu_quota_cores=window.device.cpu_quota_cores,
            )


def ladder_records(ladder: Ladder) -> Iterator[Record]:
    for entry in ladder.entries:
        yield _fields(
            LADDER,
            entry,
            time_utc=ladder.time_utc,
            device=ladder.device.name,
            driver=ladder.device.driver,
            workload=ladder.workload,
            **_gate(entry.gate),
            kernels=" ".join(entry.kernels),
            files=" ".join(file for file in entry.files if file) or None,
            **{column.key: getattr(entry.breakdown, column.key, None) for column in BREAKDOWN},
            versions=ladder.device.versions,
        )


def routing_records(routing: Routing) -> Iterator[Record]:
    for route in routing.routes:
        yield _fields(
            ROUTING,
            route,
            time_utc=routing.time_utc,
            device=routing.device.name,
            driver=routing.device.driver,
            workload=routing.workload,
            plan=routing.plan,
            headroom=headroom(routing.at(route.site)),
        )


def search_records(result: SearchResult) -> Iterator[Record]:
    for row in result.rows:
        yield _fields(
            SEARCH,
            row,
            device=result.device.name,
            driver=result.device.driver,
            workload=result.workload,
            plan=result.plan,
            found=result.found,
            seed=result.seed,
        )


def ceiling_records(ceilings: Ceilings) -> Iterator[Record]:
    for item in ceilings.items:
        yield _fields(
            CEILINGS,
            item,
            time_utc=ceilings.time_utc,
            device=ceilings.device,
            driver=ceilings.driver,
            versions=ceilings.versions,
        )


def fleet_records(rows: tuple[FleetRow, ...]) -> Iterator[Record]:
    for row in rows:
        yield _fields(FLEET, row)


def _fields(schema: Schema, record: object, **given: Value) -> Record:
    """The schema's columns: `given` first, then the record's own attributes."""
    values: dict[str, Value] = {"schema": schema.name, **given}
    return {c.key: values[c.key] if c.key in values else getattr(record, c.key, None) for c in schema.columns}


def _gate(gate: Gate) -> dict[str, Value]:
    logits: tuple[float | None, ...] = (*gate.logits[:2], None, None)
    return {"gate": gate.status, "gate_error": gate.pass_error, "logit0": logits[0], "logit1": logits[1]}


def _paired(delta: Delta | None) -> dict[str, Value]:
    keys = ("ratio", "ratio_lo", "ratio_hi", "verdict")
    return {key: getattr(delta, key, None) for key in keys}


def _sentences(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _listed(words: tuple[str, ...] | None) -> str | None:
    """Format a list. None means not readable, which differs from empty."""
    return None if words is None else " ".join(words) or "none"
