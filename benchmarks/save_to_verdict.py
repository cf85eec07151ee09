"""From the save of a kernel of the user's own to its paired verdict on the screen: [BACKEND], cpu or cuda."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.started import GATE, calibrated_homes, load_line, report, started
from gputop.plan.types import Layout
from gputop.planner.own_kernels.template import template_files

MOST_S = 4.0
SAVES = 5
MISTAKE, VERDICT = "flaot acc", "\n   binds"
"""What the pane quotes of a save that does not compile, and the line that stands below a verdict only."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where the template's kernel goes, and the line that each save changes."""

    workload: str
    rung: str
    layout: Layout
    source: str
    line: str


SITES = {
    "cpu": Site("tiny", "cpu-blas", "row", "my_w1.c", "float acc = 0.0f;"),
    "cuda": Site("gpt2-small", "register-tiled", "transposed", "my_w1.cu", "float acc = 0.0f;"),
}


def main(words: list[str]) -> int:
    backend = words[0] if words else "cpu"
    if backend not in SITES:
        print(f"save_to_verdict: '{backend}' is no backend; allowed: {', '.join(SITES)}", file=sys.stderr)
        return 2
    print(load_line())
    seconds = _seconds(backend, SITES[backend])
    print("each save: " + ", ".join(f"{value:.2f} s" for value in seconds))
    name = f"save to verdict, {backend} {SITES[backend].workload}, median of {SAVES}"
    return 0 if report(name, median(seconds), MOST_S, "s") else 1


def _seconds(backend: str, site: Site) -> list[float]:
    with tempfile.TemporaryDirectory(prefix="gputop-own-") as folder:
        files = template_files("w1", "w1", backend, site.layout)
        for name, text in files.items():
            (Path(folder) / name).write_text(text)
        source = Path(folder) / site.source
        words = ("--backend", backend, "--workload", site.workload, "--rung", site.rung, "--kernels", folder)
        found = []
        with calibrated_homes(backend) as homes, started(words, homes, 140, 50) as program:
            program.until_shown(GATE)
            for save in range(SAVES):
                # The error takes the verdict before from the screen.
                source.write_text(files[site.source].replace(site.line, f"{MISTAKE} = 0.0f;"))
                program.until(lambda: _only(MISTAKE, program.screen.text), "the error alone")
                # Another value each time, so that nothing is known of this code.
                text = files[site.source].replace(site.line, site.line.replace("0.0f", f"{save + 1}e-30f"))
                begun = perf_counter()
                source.write_text(text)
                program.until_shown(VERDICT)
                found.append(perf_counter() - begun)
    return found


def _only(mistake: str, screen: str) -> bool:
    return mistake in screen and VERDICT not in screen


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
