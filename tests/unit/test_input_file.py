"""Files that a user names: whatever is no file of sense is answered with a sentence, at once."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.cli import main
from gputop.util.errors import UsageError
from gputop.util.input_file import files_below, read_input, read_input_text

MOST = 1000
Makes = Callable[[Path], str]


def not_there(folder: Path) -> str:
    return str(folder / "none")


def long_name(folder: Path) -> str:
    return str(folder / ("n" * 300))


def long_path(folder: Path) -> str:
    return "/".join([str(folder), *["n" * 200] * 30])


def below_a_file(folder: Path) -> str:
    (folder / "file").write_text("")
    return str(folder / "file" / "none")


def a_folder(folder: Path) -> str:
    return str(folder)


def a_pipe(folder: Path) -> str:
    os.mkfifo(folder / "pipe")
    return str(folder / "pipe")


def a_link_to_itself(folder: Path) -> str:
    (folder / "link").symlink_to("link")
    return str(folder / "link")


def a_socket(folder: Path) -> str:
    # By a short name: a socket's may have a hundred bytes.
    here = os.open(folder, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{here}/socket")
    finally:
        os.close(here)
    return str(folder / "socket")


def without_end(folder: Path) -> str:
    return "/dev/zero"


def not_utf8(folder: Path) -> str:
    return os.fsdecode(os.fsencode(folder) + b"/\xff\xfe")


def nothing(folder: Path) -> str:
    return ""


NO_FILES: tuple[Makes, ...] = (
    not_there, long_name, long_path, below_a_file, a_folder, a_pipe, a_link_to_itself, a_socket, without_end,
    not_utf8, nothing,
)  # fmt: skip


@pytest.mark.parametrize("make", NO_FILES)
def test_what_is_no_file_is_refused_by_name_and_reason(make: Makes, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^Can't read workload '.*': .*\.$"):
        read_input(make(tmp_path), "workload", MOST)


COMMANDS = {
    "replay": ("replay", "{}"),
    "device": ("run", "--backend", "replay", "--device", "{}"),
    "workload": ("run", "--backend", "cpu", "--workload", "{}.toml"),
    "kernels": ("list", "sites", "--kernels", "{}"),
}
ANSWERED = [(command, make) for command in ("replay", "workload", "kernels") for make in NO_FILES]


# A worker is started for each of the latter.
@pytest.mark.parametrize(("command", "make"), [*ANSWERED, ("device", a_pipe), ("device", not_utf8)])
def test_every_command_answers_it_with_a_sentence(
    command: str,
    make: Makes,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    name = make(tmp_path)
    if command == "workload" and len(name) < 1000:
        (tmp_path / "model.toml").symlink_to(name or "none")
        name = str(tmp_path / "model")
    assert main([word.format(name) for word in COMMANDS[command]]) == 2
    said = capsys.readouterr().err
    assert said.startswith("gputop: ")
    assert "internal error" not in said


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_below_a_closed_folder_says_that_it_is_closed(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    for read in (
        lambda path: read_input(path, "recording", MOST),
        lambda path: files_below(path, "it", MOST),
    ):
        with pytest.raises(UsageError, match="permission denied"):
            read(tmp_path / "closed" / "t.jsonl")


def test_a_name_that_no_file_can_have_is_refused() -> None:
    with pytest.raises(UsageError, match="null"):
        read_input("a\0b", "recording", MOST)


@given(size=st.integers(MOST - 2, MOST + 2))
def test_a_file_is_read_up_to_its_largest_size(tmp_path_factory: pytest.TempPathFactory, size: int) -> None:
    file = tmp_path_factory.mktemp("sized") / "file"
    file.write_bytes(bytes(size))
    if size <= MOST:
        assert read_input(file, "recording", MOST) == bytes(size)
    else:
        with pytest.raises(UsageError, match=r"more than 1\.00 kB"):
            read_input(file, "recording", MOST)


def test_a_file_that_has_no_size_is_read_whole() -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("no /proc here")
    assert read_input("/proc/self/status", "status", 1 << 20).endswith(b"\n")


def test_text_that_is_none_says_in_which_line(tmp_path: Path) -> None:
    file = tmp_path / "t.toml"
    file.write_bytes(b"fine\nf\xffine\n")
    with pytest.raises(UsageError, match="line 2 is not UTF-8"):
        read_input_text(file, "workload", MOST)
    file.write_bytes(b"\xef\xbb\xbffine")
    assert read_input_text(file, "workload", MOST) == "fine"


def test_files_below_a_folder_are_those_that_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "gemm").mkdir()
    (tmp_path / "gemm" / "01.cu").write_text("")
    os.mkfifo(tmp_path / "gemm" / "02.cu")
    (tmp_path / "gemm" / "03.cu").symlink_to("01.cu")
    (tmp_path / "gemm" / "04.cu").symlink_to("/dev/zero")
    found = {path.as_posix() for path in files_below(tmp_path, "kernels", MOST)}
    assert found == {"gemm/01.cu", "gemm/03.cu"}
    with pytest.raises(UsageError, match="more than 3 files"):
        files_below(tmp_path, "kernels", 3)
