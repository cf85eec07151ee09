"""python -m benchmarks.proofs FILE [PART...]: what was measured goes into FILE, what it shows to stdout."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

import msgspec

import gputop
from benchmarks.proofs.evidence import Evidence, Measured, keep_evidence, read_evidence
from benchmarks.proofs.findings import findings
from benchmarks.proofs.setting import Setting
from benchmarks.proofs.spin import spin
from benchmarks.proofs.subjects import SUBJECTS
from benchmarks.proofs.watched import watched
from benchmarks.proofs.windows import copies, split, state
from gputop import backends
from gputop.model.workloads import parse_workload
from gputop.results.records import DeviceFacts
from gputop.session.session import Session
from gputop.util.errors import GputopError

Part = Callable[[Setting, Evidence], Iterator[Measured]]
PARTS: Mapping[str, Part] = {
    "copies": copies,
    "spin": spin,
    "split": split,
    "state": state,
    "watched": watched,
}
DEFAULT_S = 120.0


def main(argv: Sequence[str]) -> int:
    """Exit code 1 if a claim does not hold."""
    options = _parser().parse_args(argv)
    try:
        return _run(options)
    except GputopError as error:
        print(f"proofs: {error}", file=sys.stderr)
        return error.exit_code


def _run(options: argparse.Namespace) -> int:
    backend, _ = backends.choose(options.backend)
    workload = parse_workload(options.workload)
    with_device = Session.open(backend, workload, options.device)
    facts = with_device.facts
    with_device.close()
    kept = read_evidence(options.file)
    holds = True
    for part in options.parts or PARTS:
        setting = Setting(backend, workload, options.device, perf_counter() + options.seconds, _say)
        begun = _blank(part, setting, facts)
        earlier = kept.get(part)
        evidence = earlier if earlier is not None and earlier.same_setting(begun) else begun
        try:
            for each in _measured(PARTS[part], setting, evidence):
                kept[part] = evidence = each
        finally:
            keep_evidence(options.file, kept)
        for finding in findings(evidence):
            print(f"{_word(finding.holds):<10} {finding.claim}\n{'':<10} {finding.found}")
            holds = holds and finding.holds is not False
    return 0 if holds else 1


def _measured(part: Part, setting: Setting, kept: Evidence) -> Iterator[Evidence]:
    """Yield the evidence with each window that the part adds, until the time is over."""
    begun, kept_s = perf_counter(), kept.seconds
    for window in part(setting, kept):
        kept = msgspec.structs.replace(
            kept,
            windows=(*kept.windows, window),
            seconds=kept_s + perf_counter() - begun,
            time_utc=_now(),
        )
        yield kept
        if setting.over():
            return


def _blank(part: str, setting: Setting, facts: DeviceFacts) -> Evidence:
    """Evidence of a part that has no window yet."""
    return Evidence(
        part=part,
        time_utc=_now(),
        seconds=0.0,
        plan=setting.subjects.plan,
        backend=setting.backend,
        device=facts.name,
        driver=facts.driver,
        versions=facts.versions or "",
        gputop=gputop.__version__,
        workload=setting.workload.name,
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _say(text: str) -> None:
    """Nobody waits for a step of a window."""


def _word(holds: bool | None) -> str:
    return {True: "holds", False: "FAILS", None: "undecided"}[holds]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.proofs",
        description="Try on a device what gputop claims of its own measuring.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="what was measured, as JSON; it is added to")
    parser.add_argument(
        "parts", nargs="*", metavar="PART", choices=[*PARTS, []], help=f"{', '.join(PARTS)}; default: all"
    )
    parser.add_argument("--seconds", type=float, default=DEFAULT_S, help="the longest that one part may take")
    parser.add_argument("--backend", choices=[*SUBJECTS, "auto"], default="auto")
    parser.add_argument("--device")
    parser.add_argument("--workload", default="gpt2-small")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
