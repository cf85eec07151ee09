"""What a search did, as rows of a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gputop.results.records import DeviceFacts
from gputop.results.search_result import OF_STRUCK, OF_TABLE, SearchResult, SearchRow
from gputop.search.closing import Closing
from gputop.search.progress import Progress


def search_result(
    progress: Progress,
    checks: Sequence[Closing],
    device: DeviceFacts,
    workload: str,
    *,
    seed: int,
    time_utc: str,
) -> SearchResult:
    """Return everything that was measured, what was struck, and the found table."""
    rows = (*_measured(progress), *_struck(progress, time_utc), *_table(progress, checks, time_utc))
    found = str(progress.menu.asking(progress.table))
    return SearchResult(time_utc, device, workload, progress.menu.plan, found, seed, rows)


def _measured(progress: Progress) -> Iterator[SearchRow]:
    for window in progress.windows:
        for cell in window.cells:
            yield SearchRow(
                stage=window.stage,
                trial=window.trial,
                window=window.window,
                time_utc=window.time_utc,
                site=cell.site,
                kernel=str(cell.kernel),
                incumbent=str(cell.incumbent),
                forecast_s=cell.forecast_s,
                forecast_sd=cell.forecast_sd,
                accepted=cell.accepted,
                gate=window.gate or None,
                status=cell.delta.status,
            ).paired(cell.delta)


def _struck(progress: Progress, time_utc: str) -> Iterator[SearchRow]:
    for (site, kernel), reason in progress.struck.items():
        own = progress.menu.start[site]
        yield SearchRow(OF_STRUCK, None, None, time_utc, site, str(kernel), str(own), status=reason)


def _table(progress: Progress, checks: Sequence[Closing], time_utc: str) -> Iterator[SearchRow]:
    """Every cell, with what the last closing check says of those that changed."""
    last = {claim.site: claim for claim in checks[-1].claims} if checks else {}
    returned = {line.site: line.why for line in progress.returned}
    start = progress.menu.start
    for site, kernel in progress.table.items():
        claim = last.get(site)
        yield SearchRow(
            stage=OF_TABLE,
            trial=None,
            window=checks[-1].window if checks else None,
            time_utc=time_utc,
            site=site,
            kernel=str(kernel),
            incumbent=str(start[site]),
            status=returned.get(site, claim.standing if claim else ""),
        ).paired(claim.delta if claim else None)
