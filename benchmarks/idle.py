"""What the screen costs while it only stands there: CPU beside a measurement, bytes where nothing changes."""

from __future__ import annotations

import sys
from time import perf_counter

from benchmarks.started import GATE, LIVE, calibrated_homes, cpu_seconds, load_line, report, started
from tests.tui.terminal import Program

WATCHED_S = 20.0
MOST_SHARE = 5.0
MOST_BYTES_PER_S = 5000.0


def main() -> int:
    print(load_line())
    with calibrated_homes() as homes:
        with started((*LIVE, "--workload", "gpt2-small"), homes, 140, 45) as program:
            program.until_shown(GATE)
            cpu_s, sent, seconds = _watched(program)
        held = [
            report("CPU of the screen while it measures", 100 * cpu_s / seconds, MOST_SHARE, "% of a core")
        ]
        print(f"{'bytes to the terminal while it measures':<44} {sent / seconds:>9.3g} B/s")
        with started(("replay", "h200"), homes, 140, 45) as program:
            program.until_shown(GATE)
            program.answer_s("", 1.0)
            _, sent, seconds = _watched(program)
        name = "bytes to the terminal, nothing changes"
        held.append(report(name, sent / seconds, MOST_BYTES_PER_S, "B/s"))
    return 0 if all(held) else 1


def _watched(program: Program) -> tuple[float, int, float]:
    """Return (CPU seconds of the screen's process, bytes that it wrote, seconds)."""
    begun, cpu_s, sent = perf_counter(), cpu_seconds(program.process.pid), len(program.output.encode())
    end = begun + WATCHED_S
    program.until(lambda: perf_counter() >= end, "the end of watching")
    return (
        cpu_seconds(program.process.pid) - cpu_s, len(program.output.encode()) - sent, perf_counter() - begun
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
