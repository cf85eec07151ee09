"""Writes the results in README.md and the pages of docs/ that hold measured figures: `make results`.

    python -m docs.write_results [RECORDING...]

Without names it takes every recording shipped with gputop. It states what they hold and nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.counters.counted_file import read_counted_file
from benchmarks.counters.page import counters_page
from benchmarks.proofs.evidence import read_evidence
from benchmarks.proofs.page import proofs_page
from docs.model import markdown_row, model_page
from gputop.cli.batch_sweep import rate
from gputop.cli.tables.ladder_lines import hit_word, other_sites, prediction_words, score_lines
from gputop.results import recording
from gputop.results.ladder import LadderEntry
from gputop.results.prediction_score import score_words
from gputop.results.recording import Recording
from gputop.results.row_figures import binds_words
from gputop.session.recorded_model import remodelled
from gputop.util import units
from gputop.util.errors import GputopError, UsageError
from gputop.util.interval import Interval

ROOT = Path(__file__).resolve().parents[1]
BEGIN = "<!-- results: written by `make results` -->"
END = "<!-- end of results -->"
NO_RECORDING = "No recording is shipped with this version: `gputop record FILE` makes one."
UNTOLD = ("SAME", "UNRESOLVED")
"""Verdicts that a ratio does not tell by lying above or below 1."""

RESULT_COLUMNS = ("#", "rung", "device", "wall", "vs before", "vs first", "predicted", "binds", "gate error")


def results_table(recordings: Sequence[Recording]) -> str:
    """The ladder of the first recording that has one, as a Markdown table."""
    kept = next((kept for kept in recordings if kept.ladder is not None), None)
    if kept is None or kept.ladder is None:
        return NO_RECORDING
    entries = kept.ladder.entries
    known = any(entry.ratio_before_lo is not None for entry in entries)
    intervals = "with 99 % intervals" if known else "of too few rounds for intervals"
    lines = [
        f"{_source(kept)} All of one window; ratios are paired, {intervals}; `vs before` is against the row "
        "above where it names no rung, by the device; `wall` is the pass as used, host included; a batch is "
        "compared by the time of one sequence. One card: another may differ by more than an interval says.",
        "",
        markdown_row(RESULT_COLUMNS),
        markdown_row(["---"] * len(RESULT_COLUMNS)),
        *(markdown_row(_result(*each)) for each in zip(entries, other_sites(entries), strict=True)),
        "",
        *score_lines(entries),
        *filter(None, [score_words(entries)]),
        *_sweep(kept),
    ]
    return "\n".join(lines).rstrip()


def with_results(readme: str, table: str) -> str:
    """README.md with the text between its markers replaced. UsageError where it has none."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise UsageError(f"README.md has no place for the results: {BEGIN} and {END}, each on its own line.")
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


def main(argv: Sequence[str]) -> int:
    """Exit code 0, or that of the fault, told on stderr."""
    try:
        paths = [recording.locate(word) for word in argv] or list(recording.shipped().values())
        kept = {path.stem: recording.read(path) for path in paths}
        recordings = [remodelled(each) for each in kept.values()]
        readme = ROOT / "README.md"
        text = with_results(readme.read_text(encoding="utf-8"), results_table(recordings))
    except GputopError as error:
        print(f"write_results: {error}", file=sys.stderr)
        return error.exit_code
    readme.write_text(text, encoding="utf-8")
    docs = ROOT / "docs"
    (docs / "model.md").write_text(model_page(kept), encoding="utf-8")
    if counted := read_counted_file(docs / "counters.json"):
        page = counters_page(counted, dict(zip(kept, recordings, strict=True)))
        (docs / "counters.md").write_text(page, encoding="utf-8")
    if proofs := read_evidence(docs / "proofs.json"):
        (docs / "proofs.md").write_text(proofs_page(proofs), encoding="utf-8")
    return 0


def _source(kept: Recording) -> str:
    device = kept.header.device
    clocks = sorted(w.health.sm_clock_hz for w in kept.windows if w.health.sm_clock_hz)
    clock = f", {units.hertz(clocks[len(clocks) // 2])} in the median window" if clocks else ""
    driver = f", driver {device.driver}" if device.driver else ""
    cut = "" if kept.whole else " It was stopped before its end."
    label = recording.label(kept.header)
    return f"{label[0].upper()}{label[1:]}{driver}{clock}: {kept.header.workload.name}.{cut}"


def _result(entry: LadderEntry, before: str) -> tuple[str, ...]:
    """One line of the table; without a time, the reason stands in its place. `before`: of `elsewhere`."""
    if not entry.device_s:
        reason = (entry.gate.where or entry.status).replace("|", "/")
        return (str(entry.number), f"`{entry.rung}`", reason, "", "", "", _predicted(entry), "", "")
    return (
        str(entry.number),
        f"`{entry.rung}`",
        units.seconds(entry.device_s),
        f"{units.seconds(entry.wall_s)}{', host-bound' if entry.host_bound else ''}",
        _against_before(entry, before),
        units.ratio(entry.ratio_first),
        _predicted(entry),
        binds_words(entry, ""),
        units.scientific(entry.gate.pass_error),
    )


def _against_before(entry: LadderEntry, before: str) -> str:
    """The ratio, a verdict that it does not tell, and the rung that it is against where that is named."""
    interval = _interval(entry.ratio_before_interval)
    untold = f", {entry.verdict}" if entry.verdict in UNTOLD else ""
    return f"{interval}{untold}{f' (`{before}`)' if before else ''}"


def _predicted(entry: LadderEntry) -> str:
    if entry.predicted is None:
        return ""
    interval = _interval(entry.predicted_interval)
    first = f"; first {prediction_words(entry.foretold)}" if entry.foretold else ""
    return f"{interval} ({', '.join(filter(None, (entry.source, hit_word(entry))))}{first})"


def _interval(found: Interval) -> str:
    return "" if found.value is None else units.ratio_within(found)


def _sweep(kept: Recording) -> Iterator[str]:
    """One rung by batch, in a window of its own."""
    if kept.batches is None:
        return
    head = ("batch", "a sequence", "tokens/s", "rate", "rate vs first", "gate")
    yield from ("", "By batch, in one window:", "", markdown_row(head), markdown_row(["---"] * len(head)))
    for entry in kept.batches.entries:
        if not entry.device_s or not entry.batch:
            reason = entry.gate.where or entry.status
            yield markdown_row((units.whole(entry.batch), reason, "", "", "", entry.gate.status))
            continue
        yield markdown_row(
            (
                str(entry.batch),
                units.seconds(entry.device_s / entry.batch),
                units.si(entry.tokens_per_s, "/s"),
                units.si(rate(entry), "FLOP/s"),
                _interval(entry.ratio_first_interval),
                entry.gate.status,
            )
        )
    yield from _gate_note(kept.batches.entries, kept.ladder.entries if kept.ladder else ())


def _gate_note(batches: Sequence[LadderEntry], rungs: Sequence[LadderEntry]) -> Iterator[str]:
    """What a batch's gate leaves unchecked, and where a rung of several sequences had it checked."""
    if not any(entry.gate.status == "PASS pass-only" for entry in batches):
        return
    whole = [e for e in rungs if (e.batch or 1) > 1 and e.gate.status == "PASS"]
    both = "".join(f"; rung `{entry.rung}` (batch {entry.batch}) passed both gates" for entry in whole)
    yield from ("", f"PASS: both gates. PASS pass-only: the answers were checked, phase by phase not{both}.")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
