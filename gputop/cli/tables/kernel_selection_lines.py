"""The routing table as text: every candidate at every site, and what each site should take."""

from __future__ import annotations

from collections.abc import Iterator

from gputop.cli.tables.text_table import Heading, table
from gputop.cli.tables.window_lines import footnotes, records_table
from gputop.cli.terminal import Terminal
from gputop.results.file_rows import routing_records
from gputop.results.kernel_selection import Route, Routing, best_of, headroom
from gputop.results.schemas import ROUTING
from gputop.util import units

KEYS = ("site", "kernel", "time_s", "incumbent_s", "ratio", "ratio_lo", "ratio_hi", "verdict", "standing")
HEADINGS = (
    Heading("site"),
    Heading("take"),
    Heading("best own", right=True, priority=1),
    Heading("best library", right=True, priority=1),
    Heading("own / library", right=True),
)


def routing_lines(routing: Routing, terminal: Terminal) -> list[str]:
    """Candidates site by site, then one line a site. Ratios are paired, of one window each."""
    notes = ((f"{route.kernel} at {route.site}", route.status) for route in routing.routes)
    conclusions = table(HEADINGS, _conclusions(routing), terminal.width)
    return [
        terminal.paint(
            f"routing {routing.plan}: time in the pass, each candidate beside the plan's own", "strong"
        ),
        *records_table(ROUTING, KEYS, routing_records(routing), terminal),
        *footnotes(notes, terminal),
        "",
        terminal.paint(conclusions[0], "strong"),
        *conclusions[1:],
    ]


def _conclusions(routing: Routing) -> Iterator[tuple[str, ...]]:
    for site in routing.sites():
        routes = routing.at(site)
        winner = next((route for route in routes if route.standing == "winner"), None)
        ties = [route.kernel for route in routes if route.standing == "tie"]
        yield (
            site,
            (winner.kernel if winner else units.UNKNOWN) + (f" (tie: {', '.join(ties)})" if ties else ""),
            _time(best_of(routes, library=False)),
            _time(best_of(routes, library=True)),
            units.ratio(headroom(routes)),
        )


def _time(route: Route | None) -> str:
    return units.seconds(route.time_s if route else None)
