"""Files are replaced whole or not at all; what is no plain file is written to as it is."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from gputop.results import export
from gputop.util.errors import UsageError
from gputop.util.output_file import LineFile, keep


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


def test_a_terminal_gets_a_csv_that_it_does_not_obey_and_a_file_its_content(tmp_path: Path) -> None:
    text = 'plan,note\n\x1b[2Jcpu,"a\x9b31m\nb"\n'
    ours, theirs = pty.openpty()
    try:
        export.open_target(os.ttyname(theirs)).write(text)
        shown = os.read(ours, 1000).decode().replace("\r\n", "\n")
    finally:
        os.close(ours)
        os.close(theirs)
    assert shown == text.replace("\x1b", "\\x1b").replace("\x9b", "\\x9b")
    export.open_target(str(tmp_path / "t.csv")).write(text)
    assert (tmp_path / "t.csv").read_bytes() == text.encode()


def test_two_writers_of_one_file_have_a_partial_each_and_leave_one_whole_file(tmp_path: Path) -> None:
    name = tmp_path / "t.jsonl"
    one, other = LineFile(str(name)), LineFile(str(name))
    for number in range(3):
        one.add(f"one {number}\n".encode())
        other.add(f"other {number}\n".encode())
    assert {one.left, other.left} == {f"{name}.partial", f"{name}.2.partial"}
    one.finish()
    assert name.read_text() == "one 0\none 1\none 2\n"
    other.finish()
    assert name.read_text() == "other 0\nother 1\nother 2\n"
    assert list(tmp_path.iterdir()) == [name]


def test_what_an_earlier_writer_left_is_not_touched(tmp_path: Path) -> None:
    left = tmp_path / "t.jsonl.partial"
    left.write_text("from before")
    lines = LineFile(str(tmp_path / "t.jsonl"))
    lines.add(b"new\n")
    assert left.read_text() == "from before"
    lines.discard()
    assert list(tmp_path.iterdir()) == [left]


def test_a_name_that_leaves_no_room_for_a_partials_can_be_written(tmp_path: Path) -> None:
    name = tmp_path / ("n" * 255)
    lines = LineFile(str(name))
    lines.add(b"whole\n")
    lines.finish()
    assert name.read_bytes() == b"whole\n"
    export.open_target(str(name)).write("again")
    assert name.read_text() == "again"


def test_looking_whether_a_file_can_be_written_leaves_no_trace(tmp_path: Path) -> None:
    export.open_target(str(tmp_path / "t.csv"))
    LineFile(str(tmp_path / "t.jsonl"))
    assert not list(tmp_path.iterdir())


def test_what_is_kept_reads_back_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "new" / "folder" / "kept"
    for content in (b"first", b"second"):
        keep(file, content)
        assert file.read_bytes() == content
    assert list(file.parent.iterdir()) == [file]


def test_a_cache_that_can_not_be_made_costs_nothing(tmp_path: Path) -> None:
    blocked = tmp_path / "a file where the folder should be"
    blocked.write_bytes(b"")
    keep(blocked / "kept", b"content")
    assert list(tmp_path.iterdir()) == [blocked]


def test_what_can_not_take_its_name_leaves_no_part(tmp_path: Path) -> None:
    taken = tmp_path / "kept"
    (taken / "by a folder").mkdir(parents=True)
    keep(taken, b"content")
    assert list(tmp_path.iterdir()) == [taken]
