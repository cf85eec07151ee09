"""From the start of the process to the first time on the screen: [BACKEND...], cpu if none is named."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from benchmarks.started import GATE, LIVE, calibrated_homes, load_line, report, started

RUNS = 5


@dataclass(frozen=True, slots=True)
class Start:
    """One way to start, and the most that its first number may take."""

    name: str
    words: tuple[str, ...]
    most_s: float


STARTS = {
    "cpu": (
        Start("cpu gpt2-small", (*LIVE, "--workload", "gpt2-small"), 2.0),
        Start("cpu tiny", (*LIVE, "--workload", "tiny"), 1.0),
        Start("replay h200", ("replay", "h200"), 1.0),
    ),
    "cuda": (Start("cuda gpt2-small", ("--backend", "cuda"), 2.0),),
}


def main(backends: list[str]) -> int:
    if unknown := [name for name in backends if name not in STARTS]:
        print(f"first_number: '{unknown[0]}' is no backend; allowed: {', '.join(STARTS)}", file=sys.stderr)
        return 2
    print(load_line())
    held = []
    for backend in backends or ["cpu"]:
        with calibrated_homes(backend) as homes:
            for start in STARTS[backend]:
                name = f"first number, {start.name}, median of {RUNS}"
                held.append(report(name, _seconds(start, homes), start.most_s, "s"))
    return 0 if all(held) else 1


def _seconds(start: Start, homes: dict[str, str]) -> float:
    found = []
    for _ in range(RUNS):
        begun = perf_counter()
        with started(start.words, homes, 140, 45) as program:
            program.until_shown(GATE)
            found.append(perf_counter() - begun)
    return median(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
