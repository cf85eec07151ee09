"""docs/proofs.md, from what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.proofs.evidence import Evidence
from benchmarks.proofs.findings import Finding, findings
from gputop.util.units import seconds

WORDS = {True: "holds", False: "does not hold", None: "undecided"}
TITLES: Mapping[str, str] = {
    "copies": "Copies of one plan",
    "spin": "A wait of known length",
    "split": "A small difference between two kernels",
    "state": "What else the process did",
    "watched": "Who is watching",
}


def proofs_page(parts: Mapping[str, Evidence]) -> str:
    """The page, its parts in the order of `TITLES`."""
    lines = [
        "# Does the instrument tell the truth?",
        "",
        "Each claim was tried on a device by `python -m benchmarks.proofs`, which says what each part does. "
        "A window here times whole passes alone, in short samples; its rule for a verdict is that of every "
        "window.",
    ]
    for part in TITLES:
        if part in parts:
            lines += _section(parts[part])
    lines += ["", "Written by `make results` from docs/proofs.json."]
    return "\n".join(lines) + "\n"


def _section(evidence: Evidence) -> Iterator[str]:
    yield from ("", f"## {TITLES[evidence.part]}", "")
    driver = f", driver {evidence.driver}" if evidence.driver else ""
    yield (
        f"{evidence.device}{driver}, {evidence.versions}, gputop {evidence.gputop}, {evidence.workload}; "
        f"{evidence.time_utc}, {len(evidence.windows)} windows in {seconds(evidence.seconds)}."
    )
    yield from ("", "| claim | found | |", "| --- | --- | --- |")
    yield from map(_row, findings(evidence))


def _row(finding: Finding) -> str:
    return f"| {finding.claim} | {finding.found} | {WORDS[finding.holds]} |"
