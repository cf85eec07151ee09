"""The contract between client and worker: typed JSON lines, one message a line, validated on both sides.

The worker greets with `Hello`. Each request carries an id; its answer is any number of `Progress`
events with that id (a Measure's begins with `Planned` if that is asked for), then exactly one closing event
(`Opened`, `Resolved`, `ChoicesListed`, `SpaceListed`, `FlipsForecast`, `WhatIfAnswered`, `Measured`,
`LadderDone`, `Checked`, `Calibrated`, `Rebuilt`, `Failed`). `Stop` and `Bye` have none.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from gputop.plan.choices import PlanView, RungView, SiteChoices
from gputop.plan.types import PlanRequest, Workload
from gputop.results.flip_forecast import FlipForecasts
from gputop.results.kernel_report import KernelReport
from gputop.results.ladder import Ladder
from gputop.results.records import Ceilings, DeviceFacts, Gate, Window
from gputop.results.search_space import SearchSpace
from gputop.results.whatif import WhatIf, WhatIfAsked
from gputop.util.errors import UsageError
from gputop.util.json_decode import BrokenJson, decode_json
from gputop.util.printable import printable

PROTOCOL_VERSION = 5
REPLAY = "replay"
"""What stands in `Open.backend` for a recording: no backend, as what is served was measured elsewhere."""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """Base of everything on the wire. A request's id is stamped by the client when it sends it."""


class Open(Message, tag="open", frozen=True, kw_only=True):
    """Open a backend on a workload. The worker serves one at a time; a second Open replaces it."""

    id: int = 0
    backend: str
    workload: Workload
    device: str | None = None
    kernels_dir: str | None = None


class Resolve(Message, tag="resolve", frozen=True, kw_only=True):
    id: int = 0
    request: PlanRequest


class ListChoices(Message, tag="list-choices", frozen=True, kw_only=True):
    """Which kernels can serve one site of a plan."""

    id: int = 0
    request: PlanRequest
    site: str


class ListSpace(Message, tag="list-space", frozen=True, kw_only=True):
    """All that a search may choose from at the sites of a plan."""

    id: int = 0
    request: PlanRequest


class ForecastFlips(Message, tag="forecast-flips", frozen=True, kw_only=True):
    """What the model expects of the flips of a plan that a recording does not hold."""

    id: int = 0
    request: PlanRequest


class AskWhatIf(Message, tag="what-if", frozen=True, kw_only=True):
    """What the model expects of a recorded plan with something changed about it."""

    id: int = 0
    asked: WhatIfAsked


class Measure(Message, tag="measure", frozen=True, kw_only=True):
    """One window: the current plan, and the pinned one alternately where there is one."""

    id: int = 0
    current: PlanRequest
    pinned: PlanRequest | None = None
    seconds: float | None = None
    aa: bool = False
    """Pair the current plan with an independently prepared copy of itself."""
    check_phases: bool = False
    """Run the phase gate too, before the window."""
    first_look: bool = False
    """Show something soon: advice, and ceilings still to be measured, are left to a later window."""
    views: bool = False
    """Answer first with `Planned`: what the plans are, and what can be chosen on them."""


class MeasureLadder(Message, tag="ladder", frozen=True, kw_only=True):
    id: int = 0
    requests: tuple[PlanRequest, ...]
    seconds: float | None = None
    check_phases: bool = False
    """Run the phase gate of each too, before the window."""


class Check(Message, tag="check", frozen=True, kw_only=True):
    """Both gates of one plan."""

    id: int = 0
    request: PlanRequest


class Calibrate(Message, tag="calibrate", frozen=True, kw_only=True):
    id: int = 0
    force: bool = False


class Rebuild(Message, tag="rebuild", frozen=True, kw_only=True):
    """Read the user's own kernels again, and compile those that a changed file is part of."""

    id: int = 0
    request: PlanRequest
    """The plan that each is to be paired with."""
    site: str | None = None
    """Where it is to be tried, if it can serve it."""
    changed: tuple[str, ...] = ()
    """Files below the folder; empty: all of them."""


class Stop(Message, tag="stop", frozen=True, kw_only=True):
    """End the window under way; its request closes as usual."""


class Bye(Message, tag="bye", frozen=True, kw_only=True):
    """The worker gives everything back and exits 0."""


Request = (
    Open
    | Resolve
    | ListChoices
    | ListSpace
    | ForecastFlips
    | AskWhatIf
    | Measure
    | MeasureLadder
    | Check
    | Calibrate
    | Rebuild
    | Stop
    | Bye
)


class Hello(Message, tag="hello", frozen=True, kw_only=True):
    protocol: int
    version: str
    pid: int
    host: str


class Progress(Message, tag="progress", frozen=True, kw_only=True):
    """Something long goes on; extends the request's deadline."""

    id: int
    text: str


class Planned(Message, tag="planned", frozen=True, kw_only=True):
    """What a Measure is of, before its window; extends the request's deadline."""

    id: int
    current: PlanView
    pinned: PlanView | None = None


class Opened(Message, tag="opened", frozen=True, kw_only=True):
    id: int
    device: DeviceFacts
    workload: Workload
    rungs: tuple[RungView, ...]
    default_rung: str
    note: str = ""
    """What else there would be to measure on and why it is not used; empty where there is nothing."""


class Resolved(Message, tag="resolved", frozen=True, kw_only=True):
    id: int
    view: PlanView


class FlipsForecast(Message, tag="flips-forecast", frozen=True, kw_only=True):
    id: int
    forecasts: FlipForecasts


class WhatIfAnswered(Message, tag="what-if-answered", frozen=True, kw_only=True):
    id: int
    found: WhatIf


class ChoicesListed(Message, tag="choices-listed", frozen=True, kw_only=True):
    id: int
    choices: SiteChoices


class SpaceListed(Message, tag="space-listed", frozen=True, kw_only=True):
    id: int
    space: SearchSpace


class Measured(Message, tag="measured", frozen=True, kw_only=True):
    """Closes a Measure with its one window."""

    id: int
    window: Window


class LadderDone(Message, tag="ladder-done", frozen=True, kw_only=True):
    id: int
    ladder: Ladder


class Checked(Message, tag="checked", frozen=True, kw_only=True):
    id: int
    gate: Gate


class Calibrated(Message, tag="calibrated", frozen=True, kw_only=True):
    id: int
    ceilings: Ceilings


class Rebuilt(Message, tag="rebuilt", frozen=True, kw_only=True):
    id: int
    reports: tuple[KernelReport, ...]


class Failed(Message, tag="failed", frozen=True, kw_only=True):
    """The request could not be done; the worker goes on unless it says `fatal`."""

    id: int
    exit_code: int
    message: str
    fatal: bool = False
    """The device context is lost: the client must start a new worker."""
    refused: PlanRequest | None = None
    """Which of a Measure's plans can't be, if that is why."""


Closing = (
    Opened
    | Resolved
    | ChoicesListed
    | SpaceListed
    | FlipsForecast
    | WhatIfAnswered
    | Measured
    | LadderDone
    | Checked
    | Calibrated
    | Rebuilt
)
"""What a request that was done is answered with."""
Event = Hello | Progress | Planned | Closing | Failed

T = TypeVar("T")

_encoder = msgspec.json.Encoder()
_requests = msgspec.json.Decoder(Request)
_events = msgspec.json.Decoder(Event)


def encode(message: Message) -> bytes:
    """One line, newline included. UsageError for text that is not Unicode: a file name in other bytes."""
    try:
        return _encoder.encode(message) + b"\n"
    except UnicodeEncodeError as error:
        what = f"'{printable(error.object)}' is not UTF-8"
        raise UsageError(f"{what}, and a worker can be sent nothing else: give it another name.") from error


def decode_request(line: bytes) -> Request:
    """UsageError for a line that is no request."""
    return _decode(_requests, line)


def decode_event(line: bytes) -> Event:
    """UsageError for a line that is no event."""
    return _decode(_events, line)


def _decode(decoder: msgspec.json.Decoder[T], line: bytes) -> T:
    try:
        return decode_json(decoder, line)
    except BrokenJson as error:
        raise UsageError(f"Broken protocol line ({error}): {line[:120]!r}") from error
