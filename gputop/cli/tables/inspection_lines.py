"""One phase taken apart, as text for a person."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gputop.cli.terminal import Terminal
from gputop.plan.types import Kernel
from gputop.results.inspection import Inspection, heading, sections, term_lines
from gputop.results.kernel_code import KernelCode, code_lines
from gputop.util.printable import printable
from gputop.util.units import seconds

VALUE_CELLS = 9
BAR_CELLS = 30
BARS = {"measured": "░", "unexplained": "░"}


def inspection_lines(inspection: Inspection, terminal: Terminal) -> list[str]:
    """Return heading, time by term, and every section that has something to say."""
    return list(_lines(inspection, terminal))


def kernel_lines(kernel: Kernel, codes: Iterable[KernelCode], terminal: Terminal) -> list[str]:
    """Return a kernel's idea and the code of each of its entries."""
    lines = (line for code in codes for line in code_lines(code))
    return [
        terminal.paint(printable(f"{kernel.name} · {'+'.join(kernel.covers)}"), "strong"),
        printable(f"  {kernel.idea}"),
        terminal.paint("code", "strong"),
        *(printable(f"  {line}") for line in lines),
    ]


def _lines(inspection: Inspection, terminal: Terminal) -> Iterator[str]:
    row = inspection.row
    yield terminal.paint(printable(heading(inspection)), "strong")
    yield terminal.paint(
        printable(f"  {row.plan} on {row.device}, {row.workload}, window {row.window}"), "quiet"
    )
    terms = term_lines(row)
    full_s = max((line.value_s or 0.0 for line in terms), default=0.0)
    labels = max(len(line.label) for line in terms)
    yield terminal.paint("time by term", "strong")
    for line in terms:
        length = round(BAR_CELLS * max(0.0, line.value_s or 0.0) / full_s) if full_s else 0
        bar = BARS.get(line.term, "█") * length
        figure = f"{line.label:<{labels}} {seconds(line.value_s):>{VALUE_CELLS}}"
        yield f"  {figure} {bar:<{BAR_CELLS}} {line.aside}".rstrip()
    for section in sections(inspection, terminal.width):
        yield terminal.paint(section.title, "strong")
        yield from (printable(f"  {line}") for line in section.lines)
