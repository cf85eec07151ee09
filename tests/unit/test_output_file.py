"""Where an export goes when it is no plain file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gputop.results import export
from gputop.util.errors import UsageError


def test_a_pipe_named_by_its_descriptor_is_written_to() -> None:
    """What a shell makes of `--csv >(gzip > t.csv.gz)`."""
    reading, writing = os.pipe()
    export.open_target(f"/dev/fd/{writing}").write("text")
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert pipe.read() == "text"


def test_stdout_by_its_own_name_is_stdout(tmp_path: Path) -> None:
    """Else the table and the CSV would run into each other, or one replace the other."""
    code = "from gputop.results.export import open_target as open; print(open('/dev/stdout').is_stdout)"
    command = (sys.executable, "-c", code)
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"True\n"
    with (tmp_path / "out").open("wb") as file:
        subprocess.run(command, stdout=file, check=True)
    assert (tmp_path / "out").read_bytes() == b"True\n"


def test_a_full_disk_is_told() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with pytest.raises(UsageError, match="no space left"):
        export.open_target("/dev/full").write("text")
