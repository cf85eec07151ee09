"""What the screen remembers: kept in a file, and a broken file costs no more than that."""

from __future__ import annotations

from pathlib import Path

import pytest

from gputop.tui.app import GputopApp
from gputop.tui.options import Options
from gputop.tui.settings import Settings, SettingsFile
from gputop.util import paths
from tests.tui.fake.client import ReplayedClient
from tests.tui.fake.records import WORKLOAD
from tests.tui.screen import until, until_shown


def test_settings_come_back_as_they_were_kept(tmp_path: Path) -> None:
    file = SettingsFile(tmp_path / "new" / "screen.json")
    kept = Settings(theme="light", sort="over", sorted_backwards=True, view="roofline")
    assert file.read() == (Settings(), "")
    assert file.write(kept) == ""
    assert file.read() == (kept, "")


@pytest.mark.parametrize(
    "content",
    [b"", b"not json", b'{"theme": "mauve"}', b'{"view": 3}', b"[" * 50_000, b"\xff\xfe", b"{}" * 40_000],
)
def test_a_broken_file_costs_the_settings_only(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "screen.json"
    path.write_bytes(content)
    settings, trouble = SettingsFile(path).read()
    assert settings == Settings()
    assert str(path) in trouble
    assert SettingsFile(path).write(settings) == ""
    assert SettingsFile(path).read() == (settings, "")


def test_a_newer_files_fields_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "screen.json"
    path.write_text('{"theme": "light", "density": "compact"}')
    assert SettingsFile(path).read() == (Settings(theme="light"), "")


def test_a_folder_that_cant_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    trouble = SettingsFile(tmp_path / "taken" / "screen.json").write(Settings())
    assert trouble.startswith("The settings are not kept")


def test_they_lie_where_the_user_keeps_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert SettingsFile.of_user().path == tmp_path / "gputop" / "screen.json"
    monkeypatch.setattr(paths, "config_dir", lambda: None)
    assert SettingsFile.of_user().write(Settings()) == ""


async def test_theme_sort_and_view_are_as_they_were_left(tmp_path: Path) -> None:
    file = SettingsFile(tmp_path / "screen.json")

    def app() -> GputopApp:
        return GputopApp(Options("cpu", WORKLOAD), ReplayedClient(tmp_path), update_s=0.02, settings=file)

    first = app()
    async with first.run_test(size=(140, 45)) as pilot:
        await until_shown(pilot, "13.4")
        await pilot.press("T", "s", "4")
        await until(pilot, lambda: first.theme == "gputop-light", "the light theme")
    second = app()
    async with second.run_test(size=(140, 45)) as pilot:
        await until_shown(pilot, "timer perf_counter")
        assert second.theme == "gputop-light"
        assert (second.state.view_name, second.state.sort) == ("inspect", "time_s")
