"""From a key to the screen that answers it: the recording, every view, two sizes of terminal."""

from __future__ import annotations

import sys
from statistics import median, quantiles

from benchmarks.started import GATE, calibrated_homes, cpu_seconds, load_line, report, started

SIZES = ((140, 45), (200, 60))
MOST_MS = 50.0
ROUNDS = 4
UP, DOWN = "\x1b[A", "\x1b[B"
VIEWS = ("1", "2", "3", "4", "5", "6")
KEYS = tuple(key for view in VIEWS for key in (view, DOWN, DOWN, UP))
QUIET_S = 0.06
"""After so long without a byte the answer to a key is whole."""


def main() -> int:
    print(load_line())
    held = []
    with calibrated_homes() as homes:
        for columns, rows in SIZES:
            times_ms, cpu_ms = _times_ms(homes, columns, rows)
            p95 = quantiles(times_ms, n=20)[-1]
            figures = f"median {median(times_ms):.1f} ms, {cpu_ms:.1f} ms of CPU a key"
            print(f"{columns}x{rows}: {len(times_ms)} keys answered, {figures}")
            held.append(report(f"key to screen, {columns}x{rows}, 95th percentile", p95, MOST_MS, "ms"))
    return 0 if all(held) else 1


def _times_ms(homes: dict[str, str], columns: int, rows: int) -> tuple[list[float], float]:
    """Return (ms to each key's whole answer, ms of CPU that the screen spent on a key)."""
    with started(("replay", "h200"), homes, columns, rows) as program:
        program.until_shown(GATE)
        program.answer_s("", 1.0)
        cpu_s = cpu_seconds(program.process.pid)
        answers = [program.answer_s(key, QUIET_S) for _ in range(ROUNDS) for key in KEYS]
        cpu_s = cpu_seconds(program.process.pid) - cpu_s
        return [1e3 * seconds for seconds in answers if seconds is not None], 1e3 * cpu_s / len(answers)


if __name__ == "__main__":
    sys.exit(main())
