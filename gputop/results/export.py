"""Tables as CSV and JSON text, phase tables back from CSV, and the place where the text goes.

CSV is RFC 4180 in UTF-8 with `\\n` line ends, one header, floats in full (they read back bit for bit)
with `.` whatever the locale, and empty where a value is unknown. JSON has the same names and null.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, asdict, fields
from typing import Any, get_args, get_type_hints

from gputop.results.file_rows import (
    Record,
    Value,
    ceiling_records,
    compare_records,
    fleet_records,
    ladder_records,
    phase_records,
    routing_records,
    search_records,
    window_records,
)
from gputop.results.fleet_row import FleetRow
from gputop.results.inspection import SCHEMA_INSPECT, Inspection, inspection_record
from gputop.results.kernel_code import SCHEMA_CODE, KernelCode
from gputop.results.kernel_selection import Routing
from gputop.results.ladder import Ladder
from gputop.results.records import SCHEMA_PHASES, Ceilings, Comparison, Row, Window
from gputop.results.schemas import CEILINGS, COMPARE, FLEET, LADDER, PHASES, ROUTING, SEARCH, WINDOWS, Schema
from gputop.results.search_result import SearchResult
from gputop.util.errors import UsageError
from gputop.util.output_file import Target, open_target
from gputop.util.printable import printable_json

__all__ = [
    "Target",
    "ceilings_csv",
    "ceilings_json",
    "code_json",
    "compare_csv",
    "compare_json",
    "fleet_csv",
    "fleet_json",
    "inspect_json",
    "ladder_csv",
    "ladder_json",
    "nested_json",
    "open_target",
    "phase_csv",
    "phase_json",
    "read_phase_csv",
    "routing_csv",
    "routing_json",
    "search_csv",
    "search_json",
    "windows_csv",
    "windows_json",
]


def phase_csv(rows: Iterable[Row]) -> str:
    return _csv(PHASES, phase_records(tuple(rows)))


def phase_json(rows: Iterable[Row]) -> str:
    return _json(PHASES, phase_records(tuple(rows)))


def compare_csv(comparison: Comparison) -> str:
    return _csv(COMPARE, compare_records(comparison))


def compare_json(comparison: Comparison) -> str:
    return _json(COMPARE, compare_records(comparison))


def inspect_json(inspections: Iterable[Inspection]) -> str:
    """Return what is known of each phase as nested JSON (`gputop.inspect/1`); null is unknown."""
    return nested_json(SCHEMA_INSPECT, map(inspection_record, inspections))


def nested_json(schema: str, records: Iterable[Mapping[str, object]]) -> str:
    """Return records that hold lists and objects as JSON; null is unknown."""
    table = {"schema": schema, "rows": [_finite_below(record) for record in records]}
    return printable_json(json.dumps(table, indent=1, ensure_ascii=False, allow_nan=False)) + "\n"


def code_json(codes: Iterable[KernelCode]) -> str:
    """Return the machine code of a kernel's entries as nested JSON (`gputop.code/1`); null is unknown."""
    return nested_json(SCHEMA_CODE, map(asdict, codes))


def windows_csv(windows: Iterable[Window]) -> str:
    return _csv(WINDOWS, window_records(tuple(windows)))


def windows_json(windows: Iterable[Window]) -> str:
    return _json(WINDOWS, window_records(tuple(windows)))


def ladder_csv(ladder: Ladder) -> str:
    return _csv(LADDER, ladder_records(ladder))


def ladder_json(ladder: Ladder) -> str:
    return _json(LADDER, ladder_records(ladder))


def routing_csv(routing: Routing) -> str:
    return _csv(ROUTING, routing_records(routing))


def routing_json(routing: Routing) -> str:
    return _json(ROUTING, routing_records(routing))


def search_csv(result: SearchResult) -> str:
    return _csv(SEARCH, search_records(result))


def search_json(result: SearchResult) -> str:
    return _json(SEARCH, search_records(result))


def ceilings_csv(ceilings: Ceilings) -> str:
    return _csv(CEILINGS, ceiling_records(ceilings))


def ceilings_json(ceilings: Ceilings) -> str:
    return _json(CEILINGS, ceiling_records(ceilings))


def fleet_csv(rows: tuple[FleetRow, ...]) -> str:
    return _csv(FLEET, fleet_records(rows))


def fleet_json(rows: tuple[FleetRow, ...]) -> str:
    return _json(FLEET, fleet_records(rows))


def read_phase_csv(text: str, source: str = "CSV") -> tuple[Row, ...]:
    """The rows of a phase table written by `phase_csv`, by this version or one that knew fewer columns.

    Columns are found by name, and a name that this version does not know is passed over: later columns
    are only ever added. UsageError, naming `source`, line and reason, for a newer schema, a missing
    column, a row of the wrong length, or a value that is not of its column's type.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[Row] = []
    try:
        header = next(reader, [])
        _check_header(header, source)
        for cells in reader:
            if len(cells) != len(header):
                reason = f"{len(cells)} fields under {len(header)} columns"
                raise UsageError(_at(source, reader.line_num, reason))
            try:
                rows.append(_row(dict(zip(header, cells, strict=True))))
            except ValueError as error:
                raise UsageError(_at(source, reader.line_num, str(error))) from error
    except csv.Error as error:
        raise UsageError(_at(source, reader.line_num, str(error))) from error
    return tuple(rows)


def _csv(schema: Schema, records: Iterable[Record]) -> str:
    keys = [column.key for column in schema.columns]
    lines = [_csv_line(keys)]
    for record in map(_finite, records):
        lines.append(_csv_line([_csv_cell(record[key]) for key in keys]))
    return "".join(lines)


def _csv_line(cells: list[str]) -> str:
    # csv quotes a lone carriage return only if the line ends with one.
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\r\n").writerow(cells)
    return buffer.getvalue().removesuffix("\r\n") + "\n"


def _csv_cell(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(float(value)) if isinstance(value, float) else str(value)


def _json(schema: Schema, records: Iterable[Record]) -> str:
    keys = [column.key for column in schema.columns]
    rows = [
        {key: None if record[key] == "" else record[key] for key in keys} for record in map(_finite, records)
    ]
    table = {"schema": schema.name, "rows": rows}
    return printable_json(json.dumps(table, indent=1, ensure_ascii=False, allow_nan=False)) + "\n"


def _finite(record: Record) -> Record:
    """`record` with every infinite or undefined number unknown, and its status saying so."""
    broken = [key for key, value in record.items() if isinstance(value, float) and not math.isfinite(value)]
    if not broken:
        return record
    reason = f"not finite: {', '.join(broken)}"
    status = f"{record['status']}; {reason}" if record.get("status") else reason
    return {**record, **dict.fromkeys(broken, None), "status": status}


def _finite_below(value: Any) -> Any:
    """Return a nested value in which every infinite or undefined number is unknown."""
    if isinstance(value, Mapping):
        return {key: _finite_below(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite_below(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _parse_bool(text: str) -> bool:
    return {"true": True, "false": False}[text]


def _parse_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


_PARSERS: Mapping[type, tuple[Any, str]] = {
    str: (str, "text"),
    bool: (_parse_bool, "true or false"),
    int: (int, "a whole number"),
    float: (_parse_float, "a finite number"),
}


def _types(record: type) -> dict[str, tuple[type, bool]]:
    """Field -> its type, and whether it may be unknown."""
    hints = {name: get_args(hint) or (hint,) for name, hint in get_type_hints(record).items()}
    return {name: (parts[0], type(None) in parts) for name, parts in hints.items()}


_ROW_TYPES = _types(Row)
_ROW_DEFAULTS = {field.name: field.default for field in fields(Row)}


def _check_header(header: list[str], source: str) -> None:
    missing = [name for name, default in _ROW_DEFAULTS.items() if default is MISSING and name not in header]
    if missing:
        raise UsageError(_at(source, 1, f"not a phase table; columns missing: {', '.join(missing)}"))
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise UsageError(_at(source, 1, f"columns named twice: {', '.join(twice)}"))


def _row(cells: Mapping[str, str]) -> Row:
    """ValueError with a reason for a cell that does not fit its column."""
    if cells["schema"] != SCHEMA_PHASES:
        raise ValueError(f"schema {cells['schema']!r}; this gputop reads {SCHEMA_PHASES}")
    values: dict[str, Any] = {}
    for name, cell in cells.items():
        if name not in _ROW_TYPES:
            continue
        kind, may_be_unknown = _ROW_TYPES[name]
        if cell == "" and may_be_unknown:
            values[name] = None
            continue
        parse, expected = _PARSERS[kind]
        try:
            values[name] = parse(cell)
        except (ValueError, KeyError):
            raise ValueError(f"{name} is {cell!r}, not {expected}") from None
    return Row(**values)


def _at(source: str, line: int, reason: str) -> str:
    return f"{source}, line {line}: {reason}."
