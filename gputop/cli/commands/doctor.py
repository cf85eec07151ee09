"""`gputop doctor`: what works here, what does not, and the command that fixes it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from gputop import __version__
from gputop.cli.command import Command
from gputop.cli.options import add_backend_option
from gputop.util.errors import Unavailable

if TYPE_CHECKING:
    from gputop.cli.doctor_checks import Probe
    from gputop.cli.doctor_findings import Finding
    from gputop.cli.terminal import Narrator, Terminal
    from gputop.util.output_file import Target

DEFAULT_FILE = "gputop-report.txt"
TONES = {"ok": "good", "missing": "quiet", "broken": "bad"}
NEEDED_BY = {"always": "everything", "cuda": "the cuda backend", "extra": "an extra"}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_backend_option(parser)
    parser.add_argument(
        "--report", nargs="?", const=DEFAULT_FILE, metavar="FILE|-",
        help=f"also write what a bug report needs, without names of yours (default {DEFAULT_FILE})",
    )  # fmt: skip


def _run(options: argparse.Namespace) -> int:
    from gputop.cli.doctor_checks import PROBES
    from gputop.cli.doctor_process import Asking
    from gputop.cli.terminal import Narrator, Terminal, print_data
    from gputop.util.output_file import open_target

    target = None if options.report is None else open_target(options.report)
    narrator = Narrator()
    findings: list[tuple[Probe, Finding]] = []
    asking = Asking()
    with ThreadPoolExecutor(max_workers=4) as pool:
        try:
            for probe, answer in [(probe, pool.submit(asking.answer, probe)) for probe in PROBES]:
                narrator.progress(f"looking for {probe.name}, {len(findings) + 1} of {len(PROBES)}")
                findings.append((probe, answer.result()))
        except BaseException:
            # Whoever ends it does not wait for a package that takes its time to load.
            pool.shutdown(wait=False, cancel_futures=True)
            asking.give_up()
            raise
    narrator.clear()
    if target is None or not target.is_stdout:
        print_data(*_lines(findings, Terminal.of(sys.stdout)))
    if target is not None:
        _write_report(findings, target, narrator)
    needed = ("always", "cuda") if options.backend == "cuda" else ("always",)
    absent = [(probe, found) for probe, found in findings if probe.need in needed and found.state != "ok"]
    if absent:
        raise Unavailable(wanting(absent))
    return 0


def _write_report(findings: Sequence[tuple[Probe, Finding]], target: Target, narrator: Narrator) -> None:
    from gputop.cli.doctor_report import report
    from gputop.ipc.log import default_log_path

    target.write(report(findings, usable_backends(findings), default_log_path()))
    if not target.is_stdout:
        narrator.note(
            f"The report is in {target.word}. Names and values of yours are left out; read it all the same."
        )


def wanting(absent: Sequence[tuple[Probe, Finding]]) -> str:
    """The first, and what it takes besides, command by command."""
    (probe, first), *others = absent
    besides: dict[str, list[str]] = {}
    for other, finding in others:
        if finding.fix != first.fix:
            besides.setdefault(finding.fix, []).append(other.name)
    sentence = f"{probe.name}, which {NEEDED_BY[probe.need]} needs: {first.detail}. Fix it: {first.fix}"
    more = (f"{', '.join(names)}: {fix}" for fix, names in besides.items())
    return "\nMissing besides: ".join((sentence, *more))


def _lines(findings: Sequence[tuple[Probe, Finding]], terminal: Terminal) -> list[str]:
    """One line a probe, and below what is not ok the command that fixes it."""
    lines = [terminal.paint(f"gputop {__version__}", "strong")]
    width = max(len(probe.name) for probe, _ in findings)
    for probe, finding in findings:
        state = terminal.paint(f"{finding.state:<7}", TONES[finding.state])
        lines.append(state + f"  {probe.name:<{width}}  {finding.detail}  ({probe.purpose})")
        if finding.fix:
            lines.append(f"{'':<{9 + width}}  fix: {finding.fix}")
    return [*lines, "", f"backends: {usable_backends(findings)}"]


def usable_backends(findings: Sequence[tuple[Probe, Finding]]) -> str:
    """Return which backends work here, in words."""
    failed = {probe.need for probe, finding in findings if finding.state != "ok"}
    if "always" in failed:
        return "neither cpu nor cuda works here"
    return "cpu works here, cuda does not" if "cuda" in failed else "cpu and cuda work here"


COMMAND = Command(
    name="doctor",
    summary="what works here, what does not, and the command that fixes it",
    examples=(
        "gputop doctor",
        "gputop doctor --backend cuda    (exit code 3 unless a GPU can be used)",
        "gputop doctor --report          (what a bug report needs, in one file)",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
