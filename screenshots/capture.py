"""Draw the screenshots from the running app: `python screenshots/capture.py [NAME...]`.

Each picture is the real screen over a real worker, on the cpu backend or on the shipped recording, driven by
keys and exported by Textual as SVG. Headless Chromium makes the PNG: it alone keeps the cells of the SVG
aligned. Needs `chromium` and the Fira Code font (Debian: chromium, fonts-firacode).
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic

from textual.pilot import Pilot

from gputop.ipc.connection import Connection
from gputop.model.workloads import parse_workload
from gputop.plan.types import PlanRequest
from gputop.tui.app import GputopApp
from gputop.tui.options import Options

HERE = Path(__file__).parent
PATIENCE_S = 300.0
VIEW_BOX = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
WEB_FONT = re.compile(r".*cdnjs.*\n")
LOCAL_FONT = re.compile(r'local\("FiraCode-[A-Za-z]*"\),')


@dataclass(frozen=True, slots=True)
class Picture:
    """One PNG: the workload or recording, and what is pressed. `…` waits for a window of the plan chosen."""

    name: str
    columns: int
    rows: int
    workload: str
    rung: str
    keys: tuple[str, ...]


WAIT = "…"
RECORDED = "h200"
"""A shipped recording in the place of a workload."""
PICTURES = (
    Picture("main-80x24", 80, 24, "gpt2-small", "cpu-blas", (WAIT,)),
    Picture("main-140x45", 140, 45, "gpt2-small", "cpu-blas", (WAIT, "g", "down", "enter", WAIT)),
    Picture("kernels-100x30", 100, 30, "gpt2-small", "cpu-blas", (WAIT, "d", "down", "down", "enter")),
    Picture("h200-140x45", 140, 45, RECORDED, "", (WAIT)),
    Picture("h200-80x24", 80, 24, RECORDED, "", (WAIT)),
    Picture("roofline-140x45", 140, 45, RECORDED, "", (WAIT, "2")),
    Picture("ladder-140x45", 140, 45, RECORDED, "", (WAIT, "3")),
    Picture("inspect-140x45", 140, 45, RECORDED, "", (WAIT, "4")),
    Picture("whatif-140x45", 140, 45, RECORDED, "", (WAIT, "5", *("down",) * 4, "left", WAIT)),
    Picture("diff-140x45", 140, 45, RECORDED, "", (WAIT, "6")),
    Picture("help-100x40", 100, 40, "tiny", "cpu-blas", (WAIT, "question_mark")),
)


async def draw(picture: Picture) -> str:
    """The screen as SVG."""
    options = Options("cpu", parse_workload("tiny"), request=PlanRequest(picture.rung))
    if picture.workload == RECORDED:
        options = Options("replay", options.workload, device=RECORDED)
    else:
        options = replace(options, workload=parse_workload(picture.workload))
    app = GputopApp(options, Connection())
    async with app.run_test(size=(picture.columns, picture.rows)) as pilot:
        for key in picture.keys:
            if key == WAIT:
                await window_of_the_plan(app, pilot)
            else:
                await pilot.press(key)
        await pilot.pause()
        return app.export_screenshot(title="gputop")


async def window_of_the_plan(app: GputopApp, pilot: Pilot[int]) -> None:
    """Wait until the plan chosen has been measured and drawn."""
    deadline = monotonic() + PATIENCE_S
    recorded = app.options.backend == "replay"
    await pilot.pause()
    while (
        app.state.lane is None
        or app.state.pending
        or not app.is_drawn
        or (recorded and not (app.state.ladder and app.state.recorded and app._sampler.is_idle))
    ):
        if monotonic() > deadline or app.state.trouble:
            raise SystemExit(f"no window: {app.state.trouble or 'out of patience'}")
        await pilot.pause(0.05)


def to_png(svg: str, target: Path) -> None:
    """By Chromium, without a look at the network: the font is the local one."""
    found = VIEW_BOX.search(svg)
    if found is None:
        raise SystemExit("Textual's SVG has no viewBox.")
    width, height = (int(float(size)) + 1 for size in found.groups())
    drawing = LOCAL_FONT.sub('local("FiraCode"),', WEB_FONT.sub("", svg))
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text(f'<body style="margin:0">{drawing}', encoding="utf-8")
        command = [
            "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            f"--user-data-dir={folder}/profile", f"--window-size={width},{height}",
            f"--screenshot={target}", page.as_uri(),
        ]  # fmt: skip
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def main(names: list[str]) -> None:
    for picture in PICTURES:
        if not names or picture.name in names:
            to_png(asyncio.run(draw(picture)), HERE / f"{picture.name}.png")
            print(f"{picture.name}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
