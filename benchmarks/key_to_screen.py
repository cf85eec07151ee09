"""From a key to the screen that answers it: the recording, every view, two sizes of terminal."""

from __future__ import annotations

import sys
from statistics import median, quantiles

from benchmarks.started import GATE, calibrated_homes, load_line, report, started

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
            times_ms = _times_ms(homes, columns, rows)
            p95 = quantiles(times_ms, n=20)[-1]
            print(f"{columns}x{rows}: {len(times_ms)} keys answered, median {median(times_ms):.1f} ms")
            held.append(report(f"key to screen, {columns}x{rows}, 95th percentile", p95, MOST_MS, "ms"))
    return 0 if all(held) else 1


def _times_ms(homes: dict[str, str], columns: int, rows: int) -> list[float]:
    with started(("replay", "h200"), homes, columns, rows) as program:
        program.until_shown(GATE)
        program.answer_s("", 1.0)
        answers = (program.answer_s(key, QUIET_S) for _ in range(ROUNDS) for key in KEYS)
        return [1e3 * seconds for seconds in answers if seconds is not None]


if __name__ == "__main__":
    sys.exit(main())
