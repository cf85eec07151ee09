"""One plan at several batches in one window: what batching repays of the tax that under-filled tiles cost."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gputop.cli.options import whole_number
from gputop.cli.tables.text_table import Heading, table
from gputop.cli.terminal import Terminal
from gputop.results.row_figures import binds_words
from gputop.util import units

if TYPE_CHECKING:
    from gputop.plan.types import PlanRequest
    from gputop.results.ladder import Ladder, LadderEntry

HEADINGS = (
    Heading("batch", right=True),
    Heading("pass", right=True, priority=3),
    Heading("a sequence", right=True),
    Heading("tokens/s", right=True, priority=2),
    Heading("FLOP/s", right=True, priority=1),
    Heading("rate vs first", right=True),
    Heading("forecast", right=True, priority=2),
    Heading("binds", priority=5),
    Heading("gate", priority=4),
)


def batch_list(text: str) -> tuple[int, ...]:
    """`1,2,4` as numbers, each once; an argument type."""
    words = [word for word in text.split(",") if word]
    if not words:
        raise ArgumentTypeError(f"{text!r} names no batch: 1,2,4")
    return tuple(dict.fromkeys(whole_number(word) for word in words))


def at_batches(request: PlanRequest, batches: Sequence[int]) -> list[PlanRequest]:
    """The same plan at each batch."""
    return [request.with_set("batch", str(batch)) for batch in batches]


def batch_lines(ladder: Ladder, terminal: Terminal) -> list[str]:
    """Time of one sequence and rates by batch, then what the model had forecast at the smallest."""
    # Not above: every command's parser imports this module.
    from gputop.cli.tables.window_lines import footnotes, joined

    lines = table(HEADINGS, list(_rows(ladder.entries)), terminal.width)
    notes = ((f"batch {e.batch}" if e.batch else e.rung, e.gate.where or e.status) for e in ladder.entries)
    return [
        joined(ladder.device.name, ladder.workload, ladder.device.versions, ladder.time_utc),
        joined(f"plan {ladder.entries[0].rung}", "by batch, in one window"),
        "",
        terminal.paint(lines[0], "strong"),
        *lines[1:],
        *footnotes((*notes, *_at_the_ideal(ladder.entries)), terminal),
        *(terminal.paint(note, "quiet") for note in ladder.notes),
        *_tax(ladder.entries),
    ]


def _rows(entries: Sequence[LadderEntry]) -> Iterator[tuple[str, ...]]:
    first = next((entry for entry in entries if entry.device_s), None)
    for entry in entries:
        repaid = None if first is None else rate_ratio(first, entry)
        yield (
            units.whole(entry.batch),
            units.seconds(entry.device_s),
            units.seconds(entry.device_s / entry.batch if entry.device_s and entry.batch else None),
            units.si(entry.tokens_per_s, "/s"),
            units.si(rate(entry), "FLOP/s"),
            units.ratio_within(replace(entry.ratio_first_interval, value=repaid)),
            units.ratio(None if first is None else forecast_ratio(first, entry)),
            binds_words(entry),
            entry.gate.status,
        )


def rate(entry: LadderEntry) -> float | None:
    """FLOPs of the plan's work a second."""
    return entry.flops / entry.device_s if entry.flops and entry.device_s else None


def rate_ratio(first: LadderEntry, entry: LadderEntry) -> float | None:
    """FLOP/s of a batch over those of the first: as the work of a sequence is the same, the paired ratio of
    its times."""
    return entry.ratio_first if first.device_s and entry.device_s else None


def forecast_ratio(first: LadderEntry, entry: LadderEntry) -> float | None:
    """Forecast `rate_ratio` from the first batch's time and the term model of both.

    No time of `entry` is in it: its terms are recomputed at its batch, and what the model leaves unexplained
    of the first pass is taken to be paid once a pass. Never above the ideal, where a pass of the larger
    batch takes no longer. None where a model or a time is unknown.
    """
    from gputop.perf.roofline import batched_s

    if not (first.device_s and first.model_s and entry.model_s and first.batch and entry.batch):
        return None
    ahead_s = batched_s(first.device_s, first.model_s, entry.model_s)
    if _known_in_part(first, entry):
        ahead_s = first.device_s
    return (first.device_s / first.batch) / (ahead_s / entry.batch)


def _known_in_part(first: LadderEntry, entry: LadderEntry) -> bool:
    """Return whether the model predicts less time for more sequences than for fewer.

    So it does where a library's kernels take over from ours: of theirs it knows arithmetic and bytes from
    memory, of ours the L2 cache and waits too.
    """
    if not (first.model_s and entry.model_s and first.batch and entry.batch):
        return False
    return (entry.batch - first.batch) * (entry.model_s - first.model_s) < 0


def _at_the_ideal(entries: Sequence[LadderEntry]) -> Iterator[tuple[str, str]]:
    """The batches whose forecast is the ideal for want of terms, and why."""
    first = next((entry for entry in entries if entry.device_s), None)
    for entry in entries:
        if first is not None and _known_in_part(first, entry):
            yield (
                f"batch {entry.batch}",
                f"forecast at its ideal: other kernels than at batch {first.batch} serve it, of which fewer"
                " terms are known",
            )


def _tax(entries: Sequence[LadderEntry]) -> Iterator[str]:
    timed = [entry for entry in entries if entry.device_s]
    if len(timed) < 2:
        return
    first, best = timed[0], max(timed, key=lambda entry: entry.ratio_first or 0.0)
    if best is first:
        yield f"no batch has a higher rate than batch {first.batch}: nothing is repaid"
        return
    yield (
        f"repaid: {units.ratio(best.ratio_first)} at batch {best.batch} over batch {first.batch};"
        f" {_forecast(first, best)}"
    )
    yield _shape_step(first)


def _forecast(first: LadderEntry, best: LadderEntry) -> str:
    ahead = forecast_ratio(first, best)
    if ahead is None or first.device_s is None or first.model_s is None:
        return "not forecast: the terms of these passes are not known"
    by = f"forecast {units.ratio(ahead)} by the terms at batch {best.batch}"
    once_s = first.device_s - first.model_s
    if once_s <= 0:
        return by
    once = f"the {units.seconds(once_s)} of batch {first.batch} that no term explains"
    return f"{by}, with {once} paid once a pass"


def _shape_step(first: LadderEntry) -> str:
    """Return the note for the step of padding and idle SMs."""
    if first.shape_tax is None:
        return f"what padding and idle SMs cost batch {first.batch} is not known: no site's shape factor is"
    speed = units.ratio(first.shape_tax)
    return f"without padding and idle SMs, batch {first.batch} is modelled at {speed} its speed"
