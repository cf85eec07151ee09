"""What tests/gpu/emit_all.sh asks: tools FOLDER | arch | rungs ARCH | compare FOLDER RUNG..."""

from __future__ import annotations

import csv
import re
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from gputop.model.workloads import WORKLOADS
from gputop.plan.types import STORED_MATHS, PlanRequest
from gputop.planner.resolver import Resolver
from gputop.util.errors import UsageError

MOST_GRAPH_DIFFERENCE = 0.02
"""Of device times of a captured graph, the program's against gputop's."""
MOST_LOGIT_DIFFERENCE = 2e-6
"""Of logits printed with six digits by two programs that run the same kernels."""
_LOGITS = re.compile(r"^last pass logits (\S+) (\S+),.* (PASS|FAIL)$", re.MULTILINE)
_TIME = re.compile(r"^device time (\S+) ms", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Result:
    """What one of the two printed."""

    logits: tuple[float, float]
    device_s: float


def tools(words: list[str]) -> int:
    """nvcc's path, then the flags that find cuBLAS. Links to its libraries are made in the folder."""
    from cuda.pathfinder import (
        find_nvidia_binary_utility,
        find_nvidia_header_directory,
        load_nvidia_dynamic_lib,
    )

    nvcc = find_nvidia_binary_utility("nvcc") or shutil.which("nvcc")
    if nvcc is None:
        print("emit_all.sh: nvcc is not here: pip install '.[compile]'", file=sys.stderr)
        return 3
    print(nvcc)
    header = find_nvidia_header_directory("cublas")
    if header is not None:
        print(f"-I{header}")
    # A package has the libraries without the links that a linker looks for.
    folder = Path(words[0]) / "lib"
    folder.mkdir(exist_ok=True)
    print(f"-L{folder}")
    for name in ("cublas", "cublasLt"):
        try:
            library = Path(str(load_nvidia_dynamic_lib(name).abs_path))
        except RuntimeError:
            print(f"emit_all.sh: {name} is not here; rungs that call it will not build", file=sys.stderr)
            continue
        link = folder / f"lib{name}.so"
        link.unlink(missing_ok=True)
        link.symlink_to(library)
        print(f"-Xlinker -rpath -Xlinker {library.parent}")
    return 0


def arch(_: list[str]) -> int:
    from gputop.backends.cuda.runtime.devices import visible_devices

    print(f"sm_{visible_devices()[0].arch}")
    return 0


def rungs(words: list[str]) -> int:
    """Ids of our rungs that run on an architecture."""
    resolver = Resolver.load().on(words[0])
    for rung in resolver.rungs_of("cuda"):
        try:
            plan = resolver.resolve(PlanRequest(rung.id), WORKLOADS[0].dims, "cuda")
        except UsageError as error:
            print(f"emit_all.sh: without {rung.id}: {error}", file=sys.stderr)
            continue
        if not plan.peer and plan.math not in STORED_MATHS:
            print(rung.id)
    return 0


def compare(words: list[str]) -> int:
    """A line a rung; 1 if any is not as it should be."""
    folder, names = Path(words[0]), words[1:]
    faults = [fault for name in names if (fault := _compared(folder, name))]
    return 1 if faults or not names else 0


def _compared(folder: Path, rung: str) -> str:
    """What is wrong with a rung; it is printed."""
    ours, before, after = (
        _recorded(folder / f"{rung}.csv"),
        *(_printed(folder / f"{rung}.{when}.txt") for when in ("before", "after")),
    )
    if ours is None or before is None or after is None:
        fault = "did not build, run or pass: see its files"
        print(f"{rung:<16} {fault}")
        return fault
    device_s = (before.device_s + after.device_s) / 2
    difference = device_s / ours.device_s - 1
    off = max(abs(a - b) for a, b in zip(after.logits, ours.logits, strict=True))
    fault = ""
    if off > MOST_LOGIT_DIFFERENCE and not _chooses_otherwise(folder / f"{rung}.cu"):
        fault = f"logits differ by {off:.1e}"
    elif _is_graph(folder / f"{rung}.cu") and abs(difference) > MOST_GRAPH_DIFFERENCE:
        fault = f"time differs by more than {MOST_GRAPH_DIFFERENCE:.0%}"
    times = f"program {device_s * 1e3:9.4f} ms  gputop {ours.device_s * 1e3:9.4f} ms  {difference:+7.2%}"
    logits = " / ".join(f"{result.logits[0]:.6f} {result.logits[1]:.6f}" for result in (after, ours))
    print(f"{rung:<16} {times}  logits {logits}  {fault or 'ok'}")
    return fault


def _is_graph(source: Path) -> bool:
    return "constexpr bool GRAPH = true;" in source.read_text()


def _chooses_otherwise(source: Path) -> bool:
    """Whether the program may take another algorithm of cuBLASLt than gputop: its header says so then."""
    return "library's heuristic names first" in " ".join(source.read_text().split("\n// "))


def _printed(file: Path) -> Result | None:
    text = file.read_text() if file.is_file() else ""
    logits, time = _LOGITS.search(text), _TIME.search(text)
    if logits is None or time is None or logits[3] != "PASS":
        return None
    return Result((float(logits[1]), float(logits[2])), float(time[1]) * 1e-3)


def _recorded(file: Path) -> Result | None:
    if not file.is_file():
        return None
    with file.open(newline="") as lines:
        row = next((row for row in csv.DictReader(lines) if row["phase"] == "device" and row["time_s"]), None)
    if row is None:
        return None
    return Result((float(row["logit0"]), float(row["logit1"])), float(row["time_s"]))


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    "tools": tools,
    "arch": arch,
    "rungs": rungs,
    "compare": compare,
}


def main(words: Iterable[str]) -> int:
    name, *rest = words
    return COMMANDS[name](rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
