"""A connection to a scheduler: which devices its workers have, and jobs for them. A device that leaves costs
the job that it was on."""

from __future__ import annotations

import contextlib
import queue
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar, cast

from gputop import __version__
from gputop.fleet import on_worker
from gputop.fleet.dask_library import CONNECT_S, distributed
from gputop.fleet.jobs import Job, Met, Opening
from gputop.ipc.opened_worker import Say
from gputop.results.records import DeviceFacts
from gputop.util.errors import GputopError, Unavailable, UsageError, WorkerLost, first_line

Result = TypeVar("Result")
LOOK_S = 1.0
"""How often the scheduler is asked who is still there."""
ARRIVAL_S = 60.0
"""How long workers that were just started may take to register."""
FAREWELL_S = 3.0
SCHEMES = ("tcp", "tls", "ucx", "ws", "wss", "inproc")


@dataclass(frozen=True, slots=True, eq=False)
class FleetDevice:
    """A device of the fleet. One is no other's equal: the same hardware may leave and come back."""

    number: int
    """From 1, by host and place, newcomers last; no number is used twice."""
    address: str
    """Of its Dask worker."""
    met: Met

    @property
    def facts(self) -> DeviceFacts:
        return self.met.opened.device

    @property
    def name(self) -> str:
        """`device 1 (NVIDIA H200 on node7)`."""
        return f"device {self.number} ({self.facts.name} on {self.met.host})"

    @property
    def place(self) -> str:
        """UUID and driver of a GPU, cores of a CPU."""
        facts, cores = self.facts, ", ".join(map(str, self.met.cores))
        if facts.uuid is None:
            return f"cores {cores}" if cores else "all cores"
        return f"{facts.uuid}, driver {facts.driver or 'unknown'}"


KeepLine = Callable[[FleetDevice, bytes], None]


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Result]):
    """What became of a job: a result, or why there is none."""

    device: FleetDevice
    result: Result | None = None
    error: GputopError | None = None


@dataclass(frozen=True, slots=True)
class _Said:
    """What a job sent home before its end."""

    kind: str
    address: str
    text: str


def check_address(address: str) -> str:
    """Return `HOST:PORT` or `tcp://HOST:PORT` as Dask takes it. Raise UsageError for anything else."""
    scheme, separator, rest = address.rpartition("://")
    host, colon, port = rest.rpartition(":")
    if (separator and scheme not in SCHEMES) or not (colon and host and port.isdecimal()):
        raise UsageError(f"{address!r} is no scheduler's address: give HOST:PORT, as tcp://node1:8786.")
    return address


class Fleet:
    """Devices behind one scheduler. From one thread."""

    def __init__(
        self,
        address: str,
        opening: Opening,
        *,
        note: Say,
        progress: Say,
        workers: int = 1,
        one_model: bool = False,
    ) -> None:
        """`workers`: how many to wait for. `one_model`: leave out devices of another model than the first.

        Raise UsageError for an address that can't be one.
        """
        self.address = check_address(address)
        self.devices: tuple[FleetDevice, ...] = ()
        self._opening = opening
        self._note, self._progress = note, progress
        self._workers, self._one_model = workers, one_model
        self._topic = f"gputop-{uuid.uuid4().hex}"
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        """Futures that are done, and `_Said`, from Dask's threads."""
        self._dask: Any = None
        self._running: dict[Any, FleetDevice] = {}
        """By the job's future."""
        self._meeting: dict[Any, str] = {}
        """Address of a worker that was asked for its device, by the future of the answer."""
        self._lobby: list[tuple[str, Met]] | None = None
        """Workers that have answered, until all have; None after that."""
        self._known: set[str] = set()
        """Addresses that were asked."""
        self._count = 0
        self._model: tuple[str, str] | None = None
        """Backend and name of the first device."""
        self._looked = 0.0

    def __enter__(self) -> Self:
        """Raise Unavailable if there is no scheduler, no worker, or none that can measure."""
        self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        """Cancel what runs, which ends it on the workers too."""
        self.disconnect()

    def connect(self) -> None:
        """Find the scheduler and open each worker's device. Raise Unavailable as `__enter__` does."""
        library = distributed()
        try:
            self._dask = library.Client(self.address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, ValueError) as error:
            raise Unavailable(
                f"No Dask scheduler answers at {self.address} ({first_line(error)})."
            ) from error
        try:
            self._dask.subscribe_topic(self._topic, self._on_event)
            self._meet(self._arrived())
            self._lobby = []
            while self._meeting:
                self._step(None)
            lobby, self._lobby = self._lobby, None
            # Numbers do not depend on who answers first.
            for address, met in sorted(lobby, key=lambda pair: (pair[1].order, pair[0])):
                self._admit(address, met)
            if not self.devices:
                raise Unavailable(f"None of the workers at {self.address} can measure.")
        except BaseException:
            self.disconnect()
            raise

    def disconnect(self) -> None:
        """Leave the scheduler; what was under way is cancelled and forgotten. Harmless twice."""
        dask, self._dask = self._dask, None
        self.devices = ()
        self._running.clear()
        self._meeting.clear()
        self._known.clear()
        if dask is not None:
            dask.close(timeout=FAREWELL_S)

    @property
    def connected(self) -> bool:
        """Whether the scheduler answered when it was last asked."""
        return self._dask is not None

    @property
    def expects(self) -> bool:
        """Whether a worker was asked for its device and has not answered yet."""
        return bool(self._meeting)

    @property
    def free(self) -> tuple[FleetDevice, ...]:
        """Devices without a job."""
        busy = set(self._running.values())
        return tuple(device for device in self.devices if device not in busy)

    def start(self, device: FleetDevice, job: Job[Any]) -> None:
        """Give a free device a job; `ended` tells what became of it."""
        future = self._send(device.address, on_worker.measure, self._opening, job, self._topic)
        self._running[future] = device

    def ended(self, keep: KeepLine | None = None) -> Iterator[Outcome[Any]]:
        """Wait until something happens, at most `LOOK_S`, and yield the jobs that have ended.

        A device that failed has an outcome with what it raised, one that left with WorkerLost, and is no
        device of the fleet any more. If the scheduler is lost, all have left and `connected` is False.
        Workers that came meanwhile become devices. `keep` takes the lines that jobs send home.
        """
        yield from self._step(keep)

    def each(
        self, jobs: Mapping[FleetDevice, Job[Result]], keep: KeepLine | None = None
    ) -> Iterator[Outcome[Result]]:
        """Run one job on each device; yield what became of them as they end."""
        for device, job in jobs.items():
            self.start(device, job)
        while self._running:
            yield from self.ended(keep)

    def ask(self, job: Job[Result]) -> Result:
        """Run one job on any device while no other runs; on another if that one leaves.

        Raise what the job raises, WorkerLost if no device is left.
        """
        while self.devices:
            (outcome,) = self.each({self.devices[0]: job})
            if outcome.error is None:
                return cast("Result", outcome.result)
            if outcome.device in self.devices:
                raise outcome.error
        raise WorkerLost(f"The fleet at {self.address} has no device left.")

    def _step(self, keep: KeepLine | None) -> list[Outcome[Any]]:
        if time.monotonic() > self._looked + LOOK_S:
            return self._look()
        try:
            item = self._queue.get(timeout=LOOK_S)
        except queue.Empty:
            return self._look()
        if isinstance(item, _Said):
            self._hear(item, keep)
        elif item in self._meeting:
            self._greet(item, self._meeting.pop(item))
        elif item in self._running:
            return self._outcomes(item, self._running.pop(item))
        return []

    def _look(self) -> list[Outcome[Any]]:
        """Ask the scheduler who is there: outcomes of who is not; newcomers are asked what they have."""
        present = self._addresses()
        self._looked = time.monotonic()
        lost: list[Outcome[Any]] = [
            Outcome(device, error=self._lost(device, present is None))
            for device in self._running.values()
            if present is None or device.address not in present
        ]
        if present is None:
            self.disconnect()
            return lost
        for future in [f for f, address in self._meeting.items() if address not in present]:
            self._note(f"The Dask worker at {self._meeting.pop(future)} left before it was asked anything.")
        gone = {outcome.device for outcome in lost}
        self._cancel([future for future, device in self._running.items() if device in gone])
        self._running = {future: device for future, device in self._running.items() if device not in gone}
        self.devices = tuple(device for device in self.devices if device.address in present)
        self._known &= present
        self._meet(present - self._known)
        return lost

    def _outcomes(self, future: Any, device: FleetDevice) -> list[Outcome[Any]]:
        """What became of a job, and of others if its device is found to have left."""
        try:
            if future.status == "finished":
                return [Outcome(device, result=future.result(timeout=CONNECT_S))]
            error = future.exception(timeout=CONNECT_S) if future.status == "error" else None
        except Exception:
            # Its result went with its worker.
            error = None
        others = self._look()
        if error is not None and device in self.devices:
            return [Outcome(device, error=explained(error, device.name)), *others]
        return [Outcome(device, error=self._lost(device, not self.connected)), *others]

    def _lost(self, device: FleetDevice, all_lost: bool) -> WorkerLost:
        if all_lost:
            return WorkerLost(
                f"The scheduler at {self.address} is gone, and with it what {device.name} measured just now."
            )
        return WorkerLost(f"{device.name} left the fleet: its Dask worker at {device.address} is gone.")

    def _send(self, address: str, function: Callable[..., Any], *arguments: object) -> Any:
        future = self._dask.submit(
            function,
            *arguments,
            key=f"gputop-{function.__name__}-{uuid.uuid4().hex}",
            workers=[address],
            allow_other_workers=False,
            pure=False,
        )
        future.add_done_callback(self._queue.put)
        return future

    def _cancel(self, futures: Sequence[Any]) -> None:
        if futures and self._dask is not None and self._dask.status == "running":
            self._dask.cancel(list(futures), force=True)

    def _on_event(self, event: tuple[float, Mapping[str, str]]) -> None:
        """Called by Dask in a thread of its own."""
        _, message = event
        self._queue.put(_Said(message["kind"], message["address"], message["text"]))

    def _hear(self, said: _Said, keep: KeepLine | None) -> None:
        device = next((device for device in self.devices if device.address == said.address), None)
        if device is None:
            return
        if said.kind == "line" and keep is not None:
            keep(device, said.text.encode())
        elif said.kind == "note":
            self._note(f"device {device.number}: {said.text}")
        elif said.kind == "progress":
            self._progress(f"device {device.number}: {said.text}")

    def _addresses(self) -> set[str] | None:
        """Addresses of the workers that the scheduler knows; None if it is gone."""
        try:
            # Some versions list five of them unless told otherwise.
            return set(self._dask.scheduler_info(n_workers=-1)["workers"])
        except Exception:
            # Dask raises many kinds for a scheduler that left, and all mean the same.
            return None

    def _arrived(self) -> list[str]:
        """Addresses of the workers, once there are as many as asked for or patience ends."""
        deadline = time.monotonic() + ARRIVAL_S
        with contextlib.suppress(TimeoutError):
            self._dask.wait_for_workers(self._workers, timeout=ARRIVAL_S)
        found = self._addresses()
        if found is None:
            raise Unavailable(f"The scheduler at {self.address} left before it named its workers.")
        if not found:
            waited = ARRIVAL_S - max(0.0, deadline - time.monotonic())
            raise Unavailable(
                f"The scheduler at {self.address} has no workers after {waited:.0f} s: start one for each "
                "device (docs/fleet.md)."
            )
        return sorted(found)

    def _meet(self, addresses: Iterable[str]) -> None:
        """Ask workers to open their device."""
        for address in sorted(addresses):
            self._known.add(address)
            self._meeting[self._send(address, on_worker.meet, self._opening)] = address

    def _greet(self, future: Any, address: str) -> None:
        """Take what a worker says of itself, or say why there is nothing."""
        try:
            met: Met = future.result(timeout=CONNECT_S)
        except Exception as error:
            self._note(f"The Dask worker at {address} is left out: {explained(error, 'it')}")
            return
        if self._lobby is None:
            self._admit(address, met)
        else:
            self._lobby.append((address, met))

    def _admit(self, address: str, met: Met) -> None:
        """Make a worker a device of the fleet, or say why it is left out."""
        why_not = self._why_not(met)
        if why_not:
            self._note(f"The Dask worker at {address} is left out: {why_not}.")
            return
        facts = met.opened.device
        self._model = self._model or (facts.backend, facts.name)
        self._count += 1
        device = FleetDevice(self._count, address, met)
        self.devices += (device,)
        self._note(f"{device.name} takes part: {device.place}")
        if met.opened.note:
            self._note(f"device {device.number}: {met.opened.note}")

    def _why_not(self, met: Met) -> str:
        """Why a worker can't be used, as half a sentence: two on one device would disturb each other."""
        if met.version != __version__:
            return (
                f"its gputop is {met.version} and this one {__version__}; install one version on both sides"
            )
        facts = met.opened.device
        if self._one_model and self._model not in (None, (facts.backend, facts.name)):
            return f"{facts.name} is another model than the first device"
        other = next((device for device in self.devices if device.met.places & met.places), None)
        if other is None:
            return ""
        what = "device" if met.opened.device.uuid else "cores"
        return f"device {other.number} is on the same {what}; give each worker its own (docs/fleet.md)"


def explained(error: BaseException, who: str) -> GputopError:
    """What a task raised, as gputop says it."""
    if isinstance(error, GputopError):
        return type(error)(f"{who}: {error}")
    if isinstance(error, ModuleNotFoundError):
        return Unavailable(f"{who}: {error}; install gputop-roofline[fleet] there, in this version.")
    return WorkerLost(f"{who}: {type(error).__name__}: {first_line(error)}")
