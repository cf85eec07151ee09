"""The screen over a real worker: a change is paired at once, and the export reads back."""

from __future__ import annotations

from pathlib import Path

from textual.widgets import Input

from gputop.ipc.connection import Connection
from gputop.model.workloads import parse_workload
from gputop.results.export import phase_csv, read_phase_csv
from gputop.tui.app import GputopApp
from gputop.tui.options import Options
from tests.tui.screen import table, until, until_shown


async def test_a_flip_is_paired_and_exported(tmp_path: Path) -> None:
    options = Options("cpu", parse_workload("tiny"), seconds=0.3)
    app = GputopApp(options, Connection(log_path=tmp_path / "worker.log"))
    target = tmp_path / "phases.csv"
    async with app.run_test(size=(140, 45)) as pilot:
        await until(pilot, lambda: app.state.lane is not None and app.state.view is not None, "a window")
        app.action_go_toggles()
        # The state is ahead of what is drawn of it.
        await until(pilot, lambda: table(app, "toggles").row_count > 1, "the toggles")
        table(app, "toggles").highlight("prune")
        await pilot.press("enter")
        await until(
            pilot,
            lambda: app.state.window is not None and app.state.window.comparison is not None,
            "the pair",
        )
        window = app.state.window
        assert window is not None
        assert window.comparison is not None
        assert (window.comparison.plan_a, window.comparison.plan_b) == ("cpu-blas", "cpu-blas,prune=on")
        await pilot.press("e")
        await until_shown(pilot, "Export window")
        app.screen.query_one(Input).value = str(target)
        await pilot.press("enter")
        await until(pilot, target.exists, "the file")
    text = target.read_text(encoding="utf-8")
    rows = read_phase_csv(text)
    assert text.splitlines()[0] == phase_csv(()).splitlines()[0]
    assert {row.gate for row in rows} == {"PASS"}
    assert {row.plan for row in rows} == {"cpu-blas,prune=on"}
    assert {row.pinned_plan for row in rows} == {"cpu-blas"}
