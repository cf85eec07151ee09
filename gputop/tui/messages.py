"""What crosses from the sampler's thread to the screen: one frozen fact a message."""

from __future__ import annotations

from textual.message import Message

from gputop.ipc.protocol import Opened
from gputop.plan.choices import PlanView, SiteChoices
from gputop.plan.types import PlanRequest
from gputop.results.flip_forecast import FlipForecasts
from gputop.results.kernel_report import KernelReport
from gputop.results.ladder import Ladder
from gputop.results.recording import Recording
from gputop.results.records import Ceilings, Gate, Window
from gputop.tui.options import Options
from gputop.tui.state import PlanPair, WhatIfAnswer


class DeviceReady(Message):
    """The worker opened its device; also after a restart."""

    def __init__(self, opened: Opened) -> None:
        super().__init__()
        self.opened = opened


class CannotOpen(Message):
    """The device, workload or plan asked for can't be had: there is nothing to show."""

    def __init__(self, reason: str, exit_code: int) -> None:
        super().__init__()
        self.reason = reason
        self.exit_code = exit_code


class Reopened(Message):
    """The worker opened something else in place of what it had."""

    def __init__(self, options: Options, opened: Opened) -> None:
        super().__init__()
        self.options = options
        self.opened = opened


class NotReopened(Message):
    """What was to be opened can't be had."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason


class PlanReady(Message):
    """A plan resolved, with what can be changed on it."""

    def __init__(self, request: PlanRequest, view: PlanView) -> None:
        super().__init__()
        self.request = request
        self.view = view


class PlanRefused(Message):
    """A plan that can't be."""

    def __init__(self, request: PlanRequest, reason: str) -> None:
        super().__init__()
        self.request = request
        self.reason = reason


class ChoicesReady(Message):
    """The kernels of one site of a plan."""

    def __init__(self, request: PlanRequest, choices: SiteChoices) -> None:
        super().__init__()
        self.request = request
        self.choices = choices


class ChoicesFailed(Message):
    """The kernels of a site could not be listed."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason


class WindowReady(Message):
    """One window closed."""

    def __init__(self, pair: PlanPair, window: Window) -> None:
        super().__init__()
        self.pair = pair
        self.window = window


class LadderReady(Message):
    """Every rung of a recording, measured in one window."""

    def __init__(self, ladder: Ladder) -> None:
        super().__init__()
        self.ladder = ladder


class ForecastsReady(Message):
    """What the model expects of the flips of a recorded plan."""

    def __init__(self, forecasts: FlipForecasts) -> None:
        super().__init__()
        self.forecasts = forecasts


class WhatIfReady(Message):
    """What the model said of a change, or why there is no such plan."""

    def __init__(self, answer: WhatIfAnswer) -> None:
        super().__init__()
        self.answer = answer


class RecordingReady(Message):
    """Every window of the recording that is shown, with its device's ceilings."""

    def __init__(self, recording: Recording) -> None:
        super().__init__()
        self.recording = recording


class CeilingsReady(Message):
    """The device's measured peaks."""

    def __init__(self, ceilings: Ceilings) -> None:
        super().__init__()
        self.ceilings = ceilings


class WindowFailed(Message):
    """A window could not be measured; the sampler waits for another wish."""

    def __init__(self, pair: PlanPair, reason: str) -> None:
        super().__init__()
        self.pair = pair
        self.reason = reason


class GateChecked(Message):
    """Both gates of a plan were run for an export."""

    def __init__(self, request: PlanRequest, gate: Gate) -> None:
        super().__init__()
        self.request = request
        self.gate = gate


class CheckFailed(Message):
    """The gates asked for could not be run."""

    def __init__(self, request: PlanRequest, reason: str) -> None:
        super().__init__()
        self.request = request
        self.reason = reason


class WorkerDied(Message):
    """The measuring process is gone, and with it the window under way."""

    def __init__(self, reason: str, retrying: bool) -> None:
        super().__init__()
        self.reason = reason
        self.retrying = retrying


class Said(Message):
    """What the worker is doing just now; a newer one replaces one not yet handled."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, Said)


class KernelsSaved(Message):
    """Files of the user's own kernels were saved, named below their folder."""

    def __init__(self, changed: tuple[str, ...]) -> None:
        super().__init__()
        self.changed = changed


class KernelsNotWatched(Message):
    """The folder of the user's own kernels can't be watched."""

    def __init__(self, reason: str) -> None:
        super().__init__()
        self.reason = reason


class KernelsBuilt(Message):
    """The kernels that a save was part of were compiled; one of them is being checked if it can be tried."""

    def __init__(self, reports: tuple[KernelReport, ...]) -> None:
        super().__init__()
        self.reports = reports


class KernelChecked(Message):
    """Both gates of the plan with the user's own kernel were run."""

    def __init__(self, report: KernelReport, gate: Gate) -> None:
        super().__init__()
        self.report = report
        self.gate = gate


class KernelLost(Message):
    """The check of the user's own kernel could not be ended, or could not be run."""

    def __init__(self, report: KernelReport, reason: str) -> None:
        super().__init__()
        self.report = report
        self.reason = reason
