"""The dispatch table of the current plan: which kernel serves each site, and how many could."""

from __future__ import annotations

from collections.abc import Mapping

from rich.style import Style
from rich.text import Text

from gputop.plan.choices import SiteView
from gputop.tui.format import middle_cut
from gputop.tui.layout import LayoutColumn
from gputop.tui.palette import CURRENT, FAINT, MUTED, TEXT
from gputop.tui.state import State
from gputop.tui.widgets.keyed_table import Cells, KeyedTable

KERNEL_WIDTH = 14
COLUMNS = (
    LayoutColumn(
        "site", "site", 11, 0, doc="A phase at its number of rows; enter or a click opens its kernels"
    ),
    LayoutColumn("kernel", "kernel", KERNEL_WIDTH, 0, grows_to=40, doc="The kernel that serves it"),
    LayoutColumn(
        "choice", "others", 6, 2, right=True, doc="How many other kernels could serve it on this plan"
    ),
)


def dispatch_rows(state: State, widths: Mapping[str, int]) -> dict[str, Cells]:
    """Return site -> cells, drawn for columns of these widths."""
    view = state.shown_view
    return {site.site: _cells(site, state.view is None, widths) for site in view.sites} if view else {}


def _cells(site: SiteView, stale: bool, widths: Mapping[str, int]) -> Cells:
    count = 0 if stale else len(site.others)
    kernel = middle_cut(str(site.kernel), widths.get("kernel", KERNEL_WIDTH))
    return {
        "site": Text(site.site, Style(color=FAINT if stale else TEXT)),
        "kernel": Text(kernel, Style(color=CURRENT if count else MUTED)),
        "choice": Text(
            "" if stale else str(count) if count else "none", Style(color=MUTED if count else FAINT)
        ),
    }


def explain_site(state: State, name: str) -> str:
    """Explain which kernels could serve the site."""
    sites = state.shown_view.sites if state.shown_view else ()
    site = next((site for site in sites if site.site == name), None)
    if site is None:
        return ""
    if not site.others:
        return f"{name}: no other kernel can serve it on this plan; enter shows which there are, and why not."
    return f"{name}: enter opens the {len(site.others) + 1} kernels that take it, and says why others do not."


class DispatchTable(KeyedTable):
    """Enter or a click opens the kernels of a site."""

    def __init__(self) -> None:
        super().__init__(COLUMNS, id="dispatch")

    def show(self, state: State) -> None:
        self.show_rows(dispatch_rows(state, self.widths))
