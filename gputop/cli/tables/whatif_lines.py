"""A change that nobody has made, as text for a person: what the model gives is marked as such."""

from __future__ import annotations

from collections.abc import Iterator

from gputop.cli.tables.text_table import Heading, table
from gputop.cli.terminal import Terminal
from gputop.perf.block_shape import KNOBS, BlockShape, cliff_text, occupancy_figures
from gputop.results.records import DeviceFacts
from gputop.session.whatif import SiteChange, WhatIf
from gputop.util.units import UNKNOWN, percent, ratio, seconds

FROM_MODEL = "≈"
"""Stands before every time that the model gives."""
Devices = tuple[DeviceFacts, DeviceFacts]


def whatif_lines(found: WhatIf, site: SiteChange, devices: Devices, terminal: Terminal) -> list[str]:
    """Return one site of a plan as measured beside the same changed, then the whole pass by the model."""
    return list(_lines(found, site, devices, terminal))


def _lines(found: WhatIf, site: SiteChange, devices: Devices, terminal: Terminal) -> Iterator[str]:
    yield terminal.paint(f"what-if · {site.site} · from the model, not measured {FROM_MODEL}", "strong")
    for title, names in (("plan", found.plan), ("device", found.device)):
        changed = f" → {names[1]}" if names[0] != names[1] else ""
        yield terminal.paint(f"  {title} {names[0]}{changed}", "quiet")
    if found.source:
        yield terminal.paint(
            f"  figures of {found.device[1]}: {found.source}; no latency, no launch", "quiet"
        )
    yield from _occupancy(site, devices, terminal)
    yield from _times(found, site, terminal)


def _occupancy(site: SiteChange, devices: Devices, terminal: Terminal) -> Iterator[str]:
    before, after = site.shape
    if before is None and after is None:
        yield "  the launch is not known: a library's kernel, or one that was not measured"
        return
    rows = [*_shape_rows(before, after, devices[1]), *_figure_rows(before, after, devices)]
    yield from _painted(("occupancy", "measured", "what-if", "next cliff"), rows, terminal)


def _shape_rows(
    before: BlockShape | None, after: BlockShape | None, device: DeviceFacts
) -> Iterator[tuple[str, ...]]:
    for knob in KNOBS:
        texts = (knob.write(getattr(shape, knob.field)) if shape else UNKNOWN for shape in (before, after))
        yield knob.title, *texts, cliff_text(after, knob, device.arch or "") if after else ""


def _figure_rows(
    before: BlockShape | None, after: BlockShape | None, devices: Devices
) -> Iterator[tuple[str, ...]]:
    figures = [
        occupancy_figures(shape, device.arch or "", device.sm_count or 0) if shape else {}
        for shape, device in zip((before, after), devices, strict=True)
    ]
    for title in figures[0] or figures[1]:
        yield title, *(each.get(title, UNKNOWN) for each in figures), ""


def _times(found: WhatIf, site: SiteChange, terminal: Terminal) -> Iterator[str]:
    if found.is_shape_alone:
        yield "  no time is forecast from occupancy: measure it"
        return
    rows = [
        ("measured", seconds(site.measured_s), UNKNOWN),
        ("floor", *map(seconds, site.floor_s)),
        ("model", *map(_modelled, site.model_s)),
        ("model, whole pass", *map(_modelled, found.pass_model_s)),
    ]
    forecast = site.forecast_s
    if forecast is not None:
        rows.append(("forecast", "", f"{FROM_MODEL} {seconds(forecast[0])} to {seconds(forecast[1])}"))
    yield from _painted(("time in one pass", "now", "what-if"), rows, terminal)
    if not site.is_comparable:
        yield "  no forecast: beside a data sheet's rates the model lacks latencies, launches and L2"
        return
    if forecast is None or site.model_share is None:
        yield "  no forecast: the model does not know one of the two"
        return
    explained = percent(site.model_share)
    yield f"  the model explains {explained} of the measured time; the rest may stay, or change along"
    more = found.tokens[1] / found.tokens[0]
    ends = (ratio(more * (site.measured_s or 0.0) / time_s) for time_s in reversed(forecast))
    yield f"  gain a token {FROM_MODEL} {' to '.join(ends)}: measure it before you believe it"


def _modelled(time_s: float | None) -> str:
    return f"{FROM_MODEL} {seconds(time_s)}"


def _painted(titles: tuple[str, ...], rows: list[tuple[str, ...]], terminal: Terminal) -> Iterator[str]:
    headings = [Heading(title, right=0 < at < 3) for at, title in enumerate(titles)]
    heading, *lines = table(headings, rows, terminal.width)
    yield terminal.paint(heading, "strong")
    yield from (f"  {line}" for line in lines)
