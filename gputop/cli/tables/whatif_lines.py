"""A change that nobody has made, as text for a person: what the model gives is marked as such."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gputop.cli.tables.text_table import Heading, table
from gputop.cli.terminal import Terminal
from gputop.perf.block_shape import KNOBS, BlockShape, cliff_text, occupancy_figures
from gputop.results.records import DeviceFacts
from gputop.results.whatif import FROM_MODEL, SiteChange, WhatIf, time_notes, time_rows
from gputop.util.units import UNKNOWN

Devices = tuple[DeviceFacts, DeviceFacts]


def whatif_lines(found: WhatIf, site: SiteChange, devices: Devices, terminal: Terminal) -> list[str]:
    """Return one site of a plan as measured beside the same changed, then the whole pass by the model."""
    return list(_lines(found, site, devices, terminal))


def _lines(found: WhatIf, site: SiteChange, devices: Devices, terminal: Terminal) -> Iterator[str]:
    yield terminal.paint(f"what-if · {site.site} · from the model, not measured {FROM_MODEL}", "strong")
    for title, names in (("plan", found.plan), ("kernel", site.kernels), ("device", found.device)):
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
    yield from _painted(("time in one pass", "now", "what-if"), list(time_rows(found, site)), terminal)
    yield from (f"  {note}" for note in time_notes(found, site))


def _painted(titles: tuple[str, ...], rows: Sequence[tuple[str, ...]], terminal: Terminal) -> Iterator[str]:
    headings = [Heading(title, right=0 < at < 3) for at, title in enumerate(titles)]
    heading, *lines = table(headings, rows, terminal.width)
    yield terminal.paint(heading, "strong")
    yield from (f"  {line}" for line in lines)
