"""A kernel of the user's own over a real worker: saved wrong, broken, right, and as one that crashes."""

from __future__ import annotations

from pathlib import Path

import pytest

from gputop.backends.cpu.own_kernels import why_no_compiler
from gputop.ipc.connection import Connection
from gputop.model.workloads import parse_workload
from gputop.planner.own_kernels.template import template_files
from gputop.tui.app import GputopApp
from gputop.tui.kernel_watch import is_source
from gputop.tui.options import Options
from tests.tui.screen import text_of, until, until_shown

pytestmark = pytest.mark.skipif(why_no_compiler() is not None, reason="there is no C compiler")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "kernels"
    folder.mkdir()
    for name, text in template_files("w1", "w1", "cpu", "row").items():
        (folder / name).write_text(text)
    return folder / "my_w1.c"


@pytest.mark.parametrize(
    ("name", "counts"),
    [("my_w1.cu", True), ("my_w1.toml", True), ("include/tile.cuh", True), ("my_w1.c", True),
     (".#my_w1.cu", False), ("#my_w1.cu#", False), (".my_w1.cu.swp", False), ("my_w1.cu~", False)],
)  # fmt: skip
def test_what_an_editor_keeps_beside_a_source_is_no_save(name: str, counts: bool) -> None:
    assert is_source(f"/folder/{name}") == counts


async def test_each_save_is_answered_and_the_session_lives(source: Path, tmp_path: Path) -> None:
    right = source.read_text()
    options = Options("cpu", parse_workload("tiny"), kernels_dir=str(source.parent), seconds=0.2)
    app = GputopApp(options, Connection(log_path=tmp_path / "worker.log"), update_s=0.05)

    async with app.run_test(size=(140, 50)) as pilot:
        await until(pilot, lambda: app.state.lane is not None, "a window")

        # A save may come before the folder is watched.
        def saved(text: str) -> None:
            source.write_text(text)

        saved(right.replace("acc += args->bias[column]", "acc -= args->bias[column]"))
        await until_shown(pilot, "✖ FAIL")
        await until_shown(pilot, "No time is shown for a wrong answer")
        assert app.state.current is not None
        assert app.state.current.uses == ()

        saved(right.replace("float acc = 0.0f;", "flaot acc = 0.0f;"))
        await until_shown(pilot, "unknown type name 'flaot'")
        # The pane grows with the next drawing.
        shown = await until_shown(pilot, "flaot acc = 0.0f;")
        assert any("▸" in line and "flaot acc = 0.0f;" in line for line in shown.splitlines())

        saved(right)
        await until_shown(pilot, "✔ PASS")
        await until(
            pilot,
            lambda: app.state.window is not None and app.state.window.comparison is not None,
            "the pair",
        )
        window = app.state.window
        assert window is not None
        assert window.comparison is not None
        assert (window.comparison.plan_a, window.comparison.plan_b) == ("cpu-blas", "cpu-blas,w1:my_w1")
        await until_shown(pilot, "binds")
        assert app.state.pairs

        saved(right.replace("float acc = 0.0f;", "float acc = -0.0f;"))
        measured = app.state.own
        await until(pilot, lambda: app.state.own is not measured, "the next trial")
        of_one_code = all(len(kept) <= 1 for kept in app.state.pairs.values())
        assert of_one_code, "windows of the code before would be pooled with those of this"
        await until_shown(pilot, "✔ PASS")

        saved(right.replace("float acc = 0.0f;", "float acc = *(volatile float*)8;"))
        await until_shown(pilot, "SIGSEGV")
        await until(pilot, lambda: app.state.worker == "ready", "a new worker")
        before = app.state.window
        await until(pilot, lambda: app.state.window is not before, "another window")
        assert app.state.current.uses == ()

        await pilot.press("y")
        await until(pilot, lambda: "your kernel: my_w1.c" not in text_of(app), "the pane closed")
