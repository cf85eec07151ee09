"""A search as text: the menu before it, then what was measured, why it stopped, and what it found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gputop.cli.tables.text_table import Heading, table
from gputop.cli.tables.window_lines import footnotes, records_table
from gputop.cli.terminal import Terminal
from gputop.plan.types import KernelChoice
from gputop.results.file_rows import search_records
from gputop.results.schemas import SEARCH
from gputop.results.search_result import OF_STRUCK, OF_TABLE, SearchResult
from gputop.search.ablation import Ablation
from gputop.search.closing import Claim, Closing
from gputop.search.loop import Now
from gputop.search.menu import Menu, joint_space
from gputop.search.progress import Progress
from gputop.search.residual import Residuals
from gputop.search.rewrites import Owned
from gputop.search.score import Stopped
from gputop.util import units

MEASURED_KEYS = (
    "stage",
    "trial",
    "site",
    "kernel",
    "incumbent",
    "forecast_s",
    "time_s",
    "ratio",
    "ratio_lo",
    "ratio_hi",
    "verdict",
    "accepted",
)
MENU = (
    Heading("site"),
    Heading("n", right=True, priority=3),
    Heading("offered", right=True, priority=2),
    Heading("able", right=True, priority=2),
    Heading("at knees", right=True),
    Heading("bound", right=True, priority=1),
    Heading("starts with"),
)
RESIDUAL = (
    Heading("feature"),
    Heading("coef", right=True),
    Heading("lo", right=True),
    Heading("hi", right=True),
    Heading("model"),
)
ABLATION = (
    Heading("site"),
    Heading("cell", priority=1),
    Heading("claimed", right=True),
    Heading("effect", right=True),
    Heading("verdict"),
    Heading("of the pass", right=True, priority=2),
    Heading("windows", right=True, priority=3),
)
FOUND = (
    Heading("site"),
    Heading("starts with", priority=1),
    Heading("found"),
    Heading("claimed", right=True, priority=1),
    Heading("closing", right=True),
    Heading("standing"),
    Heading("of bound", right=True, priority=2),
)


def menu_lines(menu: Menu, terminal: Terminal) -> list[str]:
    """Port 1: each site's candidates, the joint space and what is left of it."""
    rows = (
        (
            site.site,
            str(site.count),
            str(site.offered),
            str(menu.able[site.site]),
            str(len(site.candidates)),
            f"{units.seconds(site.bound_s)} ({site.bound})" if site.bound_s else units.UNKNOWN,
            str(site.own),
        )
        for site in menu.sites
    )
    space = joint_space(menu)
    rewrites = sorted({name for site in menu.sites for name in site.rewrites})
    lines = [
        terminal.paint(f"the menu of {menu.plan}", "strong"),
        *table(MENU, rows, terminal.width),
        f"tables: {_power(space.offered)} offered, {_power(space.able)} within the hard constraints, "
        f"{_power(space.left)} at resource knees; at most {space.most_of_a_site} candidates a site",
    ]
    if rewrites:
        lines.append(terminal.paint(f"  rewrites, which no setting contains: {', '.join(rewrites)}", "quiet"))
    return lines


def measured_lines(result: SearchResult, terminal: Terminal) -> list[str]:
    """Every candidate beside its incumbent; what was struck, with why."""
    measured = [row for row in result.rows if row.stage not in (OF_TABLE, OF_STRUCK)]
    struck = [row for row in result.rows if row.stage == OF_STRUCK]
    records = search_records(replace(result, rows=tuple(measured)))
    notes = ((f"{row.kernel} at {row.site}", row.status) for row in measured)
    return [
        terminal.paint("measured: each candidate beside the incumbent, one window a trial", "strong"),
        *records_table(SEARCH, MEASURED_KEYS, records, terminal),
        *footnotes(notes, terminal),
        *(terminal.paint(f"  struck: {row.kernel} at {row.site}: {row.status}", "bad") for row in struck),
    ]


def stop_lines(now: Now, stop: Stopped | None, progress: Progress) -> list[str]:
    """Port 2: what stopped it, how near the pass is to its bound, and what was pruned."""
    why = f"{stop.rule}: {stop.why}" if stop else "interrupted; --resume goes on"
    lines = [f"stopped by {why}", f"{progress.measured} paired measurements in {progress.trials} trials"]
    if now.score.whole is not None:
        lines.append(
            f"the sites take {units.seconds(now.score.time_s)}, their bounds add up to "
            f"{units.seconds(now.score.bound_s)}: {units.percent(now.score.whole)}"
        )
    if now.ranking.pruned:
        cells = ", ".join(f"{site}:{choice}" for site, choice in now.ranking.pruned)
        lines.append(f"pruned before the stopwatch, slower even at their best forecast: {cells}")
    return lines


def found_lines(progress: Progress, checks: Sequence[Closing], now: Now, terminal: Terminal) -> list[str]:
    """The table, with what each changed cell claims and what the closing window says of it."""
    claims = {claim.site: claim for check in checks for claim in check.claims}
    rows = (
        (
            site,
            str(own),
            str(progress.table[site]) if progress.table[site] != own else "",
            *_claim(claims.get(site)),
            units.percent(now.score.sites.get(site)),
        )
        for site, own in progress.menu.start.items()
    )
    lines = [terminal.paint("the table", "strong"), *table(FOUND, rows, terminal.width)]
    for line in progress.returned:
        lines.append(terminal.paint(f"  convicted: {line.kernel} at {line.site} is {line.why}", "bad"))
    return lines + list(_whole(checks, progress))


def diff_lines(
    found: Mapping[str, KernelChoice], other: Mapping[str, KernelChoice], name: str, terminal: Terminal
) -> list[str]:
    """The found table beside another rung's, cell by cell."""
    sites = list(dict.fromkeys((*found, *other)))
    rows = [(site, *(str(side.get(site, units.UNKNOWN)) for side in (found, other))) for site in sites]
    both = [site for site in sites if site in found and site in other]
    same = sum(found[site] == other[site] for site in both)
    headings = (Heading("site"), Heading("found"), Heading(name), Heading(""))
    return [
        terminal.paint(f"cell by cell against {name}: {same} of {len(both)} alike", "strong"),
        *table(headings, ((*row, "" if row[1] == row[2] else "differs") for row in rows), terminal.width),
    ]


def residual_lines(found: Residuals, terminal: Terminal) -> list[str]:
    """Port 3: which feature the model misprices, with coefficient and interval; or that none is."""
    lines = [terminal.paint(f"residual of the term model, {found.cells} measured cells", "strong")]
    if not found.coefficients:
        return [*lines, f"not regressed: {found.why}"]
    rows = []
    for one in found.coefficients:
        figures = (f"{value:+.3f}" for value in (one.value, one.lo, one.hi))
        rows.append((one.feature, *figures, one.direction if one.named else ""))
    lines += table(RESIDUAL, rows, terminal.width)
    if not found.named:
        lines.append("no feature is mispriced: every interval holds 0")
    for one in found.named:
        figure = f"coef {one.value:+.2f} [{one.lo:+.2f}, {one.hi:+.2f}]"
        lines.append(terminal.paint(f"{one.feature}, {figure}, model {one.direction.upper()}", "strong"))
    return lines


def rewrite_lines(owned: Owned, champion: str, differing: Sequence[str], terminal: Terminal) -> list[str]:
    """Port 5: how far settings went of the way to a champion, and what is left to rewrites."""
    lines = [terminal.paint(f"the way from the start to {champion}, {units.ratio(owned.champion)}", "strong")]
    if owned.parameters is None:
        return [*lines, f"{champion} is no faster than the start: there is no way to share out"]
    lines.append(
        f"settings went {units.percent(owned.parameters)} of it ({units.ratio(owned.found)}), "
        f"rewrites own {units.percent(owned.rewrites)}, in logarithms of time"
    )
    if differing:
        lines.append(f"what {champion} has besides its kernels: {', '.join(differing)}")
    return lines


def ablation_lines(ablations: Sequence[Ablation], terminal: Terminal) -> list[str]:
    """What the search claims of each accepted cell, beside what the cell does when it alone is exchanged."""
    rows = (
        (
            one.site,
            str(one.kernel),
            units.ratio(one.claimed),
            units.ratio_within(one.effect.ratio_interval) if one.effect else units.UNKNOWN,
            one.effect.verdict if one.effect else "",
            units.signed_seconds(one.whole.delta_s) if one.whole else units.UNKNOWN,
            str(one.windows),
        )
        for one in ablations
    )
    return [
        terminal.paint("ablation: each accepted cell alone, claim beside paired effect", "strong"),
        *table(ABLATION, rows, terminal.width),
    ]


def _claim(claim: Claim | None) -> tuple[str, str, str]:
    if claim is None:
        return "", "", ""
    closing = units.ratio_within(claim.delta.ratio_interval) if claim.delta else ""
    return units.ratio(claim.claimed), closing, claim.standing


def _whole(checks: Sequence[Closing], progress: Progress) -> Iterator[str]:
    if not checks:
        to_come = "stopped before the closing check, which --resume makes"
        yield to_come if progress.changed else "nothing was changed: there is nothing to check"
        return
    last = checks[-1]
    if last.whole is None:
        yield "the closing check has no time of the whole pass"
        return
    figure = units.ratio_within(last.whole.ratio_interval)
    yield (
        f"closing check, one window: {units.seconds(last.whole.a_s)} -> {units.seconds(last.whole.b_s)}, "
        f"{figure}, {last.whole.verdict}"
    )
    saved_s = None if last.whole.delta_s is None else -last.whole.delta_s
    yield (
        f"saved: {units.seconds(last.claimed_saved_s)} claimed by the search's pairs, "
        f"{units.seconds(saved_s)} seen in the closing window"
    )


def _power(exponent: float) -> str:
    return f"{10**exponent:.0f}" if exponent < 4 else f"10^{exponent:.1f}"
