"""The export, from the question to the file: both gates run in between."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from gputop.tui.export import BY_KIND, Kind, default_file, export_text
from gputop.tui.messages import CheckFailed, GateChecked
from gputop.tui.plan_choices import PlanChoices
from gputop.tui.screens.export import ExportChoice, ExportScreen
from gputop.tui.state import TimedWindow
from gputop.util.errors import UsageError
from gputop.util.output_file import STDOUT, open_target


@dataclass(frozen=True, slots=True)
class PendingExport:
    """What is to be written once the gates have passed."""

    shot: TimedWindow
    choice: ExportChoice


class Exporting(PlanChoices):
    """Writes what was asked for, or says why not."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._export: PendingExport | None = None

    def action_export(self) -> None:
        shot, lane = self.state.shot, self.state.lane
        if shot is None or lane is None or not lane.rows:
            self._notice("Nothing to export: no window with times is on the screen.")
            return

        def named(kind: Kind) -> str:
            return default_file(shot, kind)

        def begin(choice: ExportChoice | None) -> None:
            if choice is None:
                return
            if not BY_KIND[choice.kind].gated:
                # The dialog is still on the screen: it is gone with the next drawing.
                self.call_after_refresh(self._write_screen, choice.file)
                return
            self._export = PendingExport(shot, choice)
            self._sampler.check(shot.pair.current)
            self._set_state(replace(self.state, doing="checking every phase before the export"))

        self.push_screen(
            ExportScreen(f"Export window {shot.window.number} ({lane.plan}) to:", named, unwritable), begin
        )

    def on_check_failed(self, message: CheckFailed) -> None:
        self._export = None
        self._set_state(replace(self.state, doing=""))
        self._show_error(f"Not exported: {message.reason}")

    def on_gate_checked(self, message: GateChecked) -> None:
        wanted, self._export = self._export, None
        self._set_state(replace(self.state, doing=""))
        if wanted is None:
            return
        if not message.gate.ok:
            self._show_error(f"Not exported, the gate failed: {message.gate.where}")
            return
        pair = wanted.shot.window.comparison
        pooled = pair and self.state.pooled.get((pair.plan_a, pair.plan_b), pair)
        text = export_text(wanted.choice.kind, wanted.shot, pooled, message.gate)
        self._write(wanted.choice, text)

    def _write_screen(self, file: str) -> None:
        self._write(ExportChoice("svg", file), self.export_screenshot(title="gputop"))

    def _write(self, choice: ExportChoice, text: str) -> None:
        try:
            open_target(choice.file).write(text)
        except UsageError as error:
            self._show_error(f"Not exported: {error}")
            return
        self._notice(f"Written to {choice.file}: {BY_KIND[choice.kind].title.replace('this', 'the')}.")


def unwritable(name: str) -> str:
    """Why a file can't be written, or nothing."""
    if name == STDOUT:
        return "The terminal is taken by this screen: name a file."
    try:
        open_target(name)
    except UsageError as error:
        return str(error)
    return ""
