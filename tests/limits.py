"""Real limits for processes of tests: control groups, where this machine lets one make them."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from gputop.util import cgroups


@contextlib.contextmanager
def control_group(controller: str, files: Mapping[str, str]) -> Iterator[Path]:
    """A group below this process's own with these limits, given by their names in version 1.

    Gives the file to which a process writes its id to join. Skips the test if no group can be made.
    """
    above = next(iter(cgroups.groups(controller)), None)
    if above is None or above.unified:
        pytest.skip(f"no {controller} control group of version 1 to make one below")
    folder = above.folder / f"gputop-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made: {error}")
    try:
        for name, value in files.items():
            (folder / name).write_text(value)
        yield folder / "cgroup.procs"
    finally:
        folder.rmdir()


def joining(procs: Path, command: Sequence[str]) -> list[str]:
    """The command, run by a process that joins the group first."""
    code = (
        "import os, sys; open(sys.argv[1], 'w').write(str(os.getpid())); os.execvp(sys.argv[2], sys.argv[2:])"
    )
    return [sys.executable, "-c", code, str(procs), *command]
