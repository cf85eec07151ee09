"""Where the user's caches lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from gputop.util import paths


def test_asking_where_a_cache_lies_makes_no_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    for home in (blocked, tmp_path / "none"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(home))
        assert paths.cache_dir("ceilings").name == "ceilings"
    assert list(tmp_path.iterdir()) == [blocked]
