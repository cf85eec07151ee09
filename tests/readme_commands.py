"""Runs the commands that README shows: `python -m tests.readme_commands`.

Each runs in one empty folder, in the order of the page: `replay ladder.jsonl` reads what `record` wrote.
A command that measures gets the cpu backend and the smallest workload: all of them take a minute.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"
QUICK = ("--backend", "cpu", "--workload", "tiny", "--seconds", "0.2")
APPENDED: dict[str, tuple[str, ...]] = {
    "run": QUICK,
    "compare": QUICK,
    "ladder": QUICK,
    "record": (*QUICK, "--rungs", "cpu-loops,cpu-blas"),
    "calibrate": QUICK[:2],
    "search": ("--backend", "cpu", "--seconds", "0.1"),
    "emit": (),
    "doctor": (),
    "inspect": (),
    "list": (),
    "replay": (),
    "whatif": (),
}
"""What a command gets so that it is quick and needs no GPU."""
SERVES_UNTIL_STOPPED = frozenset({"serve", "fleet"})
"""Tested by themselves."""
UNDECIDED = 5
"""Exit code of `--require`: a window this short may leave two plans undecided."""
FENCE = re.compile(r"^```\w*\n(.*?)^```", re.M | re.S)


def commands(text: str) -> Iterator[str]:
    """Yield each gputop command of a page's code blocks, without the remark beside it."""
    for block in FENCE.findall(text):
        for line in block.splitlines():
            if line.startswith("gputop"):
                yield re.split(r"\s{2,}|\s#", line)[0].strip()


def words_of(command: str) -> list[str]:
    """Split a command as a shell does, up to the first pipe."""
    words = shlex.split(command)
    return words[: words.index("|")] if "|" in words else words


def main() -> int:
    """Run them all; return how many failed."""
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for command in commands(README.read_text(encoding="utf-8")):
            words = words_of(command)
            name = words[1] if len(words) > 1 else ""
            if name in SERVES_UNTIL_STOPPED:
                continue
            done = subprocess.run(
                (sys.executable, "-m", *words, *APPENDED[name]),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
            allowed = {0, UNDECIDED} if "--require" in words else {0}
            ok = done.returncode in allowed
            failed += not ok
            print(f"{'ok' if ok else 'FAILED':7}  {command}", flush=True)
            if not ok:
                print(f"exit code {done.returncode}\n{done.stderr}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
