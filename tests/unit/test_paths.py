"""The user's caches: whole or not at all, and never in the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from gputop.util import paths


def test_what_is_kept_reads_back_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "new" / "folder" / "kept"
    for content in (b"first", b"second"):
        paths.keep(file, content)
        assert file.read_bytes() == content
    assert list(file.parent.iterdir()) == [file]


def test_a_cache_that_can_not_be_made_costs_nothing(tmp_path: Path) -> None:
    blocked = tmp_path / "a file where the folder should be"
    blocked.write_bytes(b"")
    paths.keep(blocked / "kept", b"content")
    assert list(tmp_path.iterdir()) == [blocked]


def test_what_can_not_take_its_name_leaves_no_part(tmp_path: Path) -> None:
    taken = tmp_path / "kept"
    (taken / "by a folder").mkdir(parents=True)
    paths.keep(taken, b"content")
    assert list(tmp_path.iterdir()) == [taken]


def test_asking_where_a_cache_lies_makes_no_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    for home in (blocked, tmp_path / "none"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(home))
        assert paths.cache_dir("ceilings").name == "ceilings"
    assert list(tmp_path.iterdir()) == [blocked]
