"""Results of several devices as text: names down, devices across, and what was pooled of each model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gputop.cli.tables.text_table import Heading, table
from gputop.cli.tables.window_lines import footnotes, joined
from gputop.cli.terminal import Terminal
from gputop.results.fleet_row import FleetRow
from gputop.util import units

Cell = Callable[[FleetRow], str]


def fleet_lines(rows: Sequence[FleetRow], terminal: Terminal) -> list[str]:
    """A line a device, then a line a figure; footnotes say what else must be known."""
    devices = {row.number: row for row in rows if row.number is not None}
    models = list(dict.fromkeys(row.device for row in rows if row.number is None))
    shown = table(_headings(list(devices), models, rows), _cells(rows, list(devices), models), terminal.width)
    return [
        *(
            joined(f"{number}: {row.device}", f"on {row.host}", row.driver and f"driver {row.driver}")
            for number, row in devices.items()
        ),
        "",
        terminal.paint(shown[0], "strong"),
        *shown[1:],
        *footnotes(((_place(row), row.status or "") for row in rows), terminal),
    ]


def _place(row: FleetRow) -> str:
    return f"{row.name} on {'all' if row.number is None else row.number}"


def _headings(devices: Sequence[int], models: Sequence[str], rows: Sequence[FleetRow]) -> list[Heading]:
    paired = any(row.before for row in rows)
    single = [Heading(f"on {number}", right=True, priority=1) for number in devices]
    gains = [Heading("vs before", right=True, priority=2) for _ in devices] if paired else []
    interleaved = (
        [heading for pair in zip(single, gains, strict=True) for heading in pair] if gains else single
    )
    pooled = [Heading("all" if len(models) == 1 else f"all {model}", right=True) for model in models]
    names = [Heading("name"), *([Heading("before", priority=3)] if paired else [])]
    return [*names, *interleaved, *pooled, *([Heading("", priority=1)] * len(models) if paired else [])]


def _cells(rows: Sequence[FleetRow], devices: Sequence[int], models: Sequence[str]) -> Iterator[list[str]]:
    paired = any(row.before for row in rows)
    for name, before in dict.fromkeys((row.name, row.before) for row in rows):
        same = [row for row in rows if (row.name, row.before) == (name, before)]
        own = {row.number: row for row in same if row.number is not None}
        pooled = {row.device: row for row in same if row.number is None}
        cells = [name, *([before or ""] if paired else [])]
        for number in devices:
            row = own.get(number)
            cells.append(_value(row))
            if paired:
                cells.append(_gain(row))
        cells += [_pooled(pooled.get(model)) for model in models]
        if paired:
            cells += [(pooled[model].verdict or "") if model in pooled else "" for model in models]
        yield cells


def _value(row: FleetRow | None) -> str:
    """The figure; why there is none is in the gate's word or a footnote."""
    if row is None:
        return "-"
    if row.value is None:
        return row.gate or "-"
    return units.seconds(row.value) if row.unit == "s" else units.si(row.value, row.unit or "")


def _gain(row: FleetRow | None) -> str:
    return "" if row is None or row.ratio is None else units.ratio(row.ratio)


def _pooled(row: FleetRow | None) -> str:
    if row is None:
        return ""
    if row.ratio is None:
        return _value(row)
    return units.ratio_within(row.ratio_interval)
