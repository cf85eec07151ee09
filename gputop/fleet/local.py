"""A fleet on this machine: a scheduler, and one Dask worker for each GPU or share of the cores."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, Self

from gputop.fleet.dask_library import distributed
from gputop.util import signals
from gputop.util.child_environment import child_environment
from gputop.util.errors import Unavailable, UsageError
from gputop.util.paths import log_dir

FAREWELL_S = 4.0
"""How long a worker may take to end the measuring process that it started."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one worker gets: cores to run on, or the one device that CUDA shows it."""

    name: str
    cores: tuple[int, ...] = ()
    device: str | None = None
    """UUID."""


def cpu_shares(count: int) -> tuple[Share, ...]:
    """Divide this machine's cores. Raise UsageError if there are fewer than workers."""
    if not hasattr(os, "sched_getaffinity"):
        raise UsageError("This system can't divide its cores among workers: leave --local out.")
    cores = sorted(os.sched_getaffinity(0))
    if count > len(cores):
        raise UsageError(
            f"--local {count}: this machine has {len(cores)} cores, and each worker needs one of its own."
        )
    bounds = [len(cores) * place // count for place in range(count + 1)]
    return tuple(
        Share(f"cpu-{place + 1}", tuple(cores[bounds[place] : bounds[place + 1]])) for place in range(count)
    )


def gpu_shares(count: int) -> tuple[Share, ...]:
    """One GPU each. Raise Unavailable without CUDA, UsageError if there are fewer GPUs than workers."""
    from gputop.backends.cuda.availability import available
    from gputop.backends.cuda.runtime.devices import visible_devices

    lacking = available()
    if lacking is not None:
        raise Unavailable(lacking)
    devices = [device for device in visible_devices() if not device.too_old]
    if count > len(devices):
        raise UsageError(
            f"--local {count}: CUDA shows {len(devices)} devices here that gputop can use, and each worker "
            "needs one of its own."
        )
    return tuple(Share(f"gpu-{device.index}", device=device.uuid) for device in devices[:count])


SHARES = {"cpu": cpu_shares, "cuda": gpu_shares}


class LocalFleet:
    """Scheduler and workers for the length of a context; nothing of them is left after it."""

    def __init__(self, shares: tuple[Share, ...]) -> None:
        self._shares = shares
        self._cluster: Any = None
        self.processes: list[subprocess.Popen[bytes]] = []
        """Of the workers, in the order in which they were started."""

    @property
    def address(self) -> str:
        """The scheduler's, on the loopback."""
        return str(self._cluster.scheduler_address)

    def __enter__(self) -> Self:
        library = distributed()
        signals.last_acts.append(self._kill)
        try:
            self._cluster = library.LocalCluster(
                n_workers=0,
                host="127.0.0.1",
                processes=False,
                protocol="tcp://",
                dashboard_address=None,
                silence_logs=False,
            )
            for share in self._shares:
                self.start(share)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.close()
        for process in self.processes:
            try:
                process.wait(FAREWELL_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        with contextlib.suppress(ValueError):
            signals.last_acts.remove(self._kill)
        if self._cluster is not None:
            self._cluster.close(timeout=FAREWELL_S)

    def start(self, share: Share) -> None:
        """Add a worker. Raise Unavailable if its process can't be started."""
        env = child_environment()
        if share.device is not None:
            env["CUDA_VISIBLE_DEVICES"] = share.device
        command = [sys.executable, "-P", "-m", "gputop.fleet.local_worker", self.address, share.name]
        with _log() as log:
            try:
                # A session of its own: ^C is for the front end, and killing the group takes all along.
                process = subprocess.Popen(
                    [*command, *map(str, share.cores)],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    env=env,
                    start_new_session=True,
                )
            except OSError as error:
                raise Unavailable(f"Can't start a worker: {error.strerror}.") from error
        self.processes.append(process)

    def _kill(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()


def _log() -> Any:
    """The file that workers write their complaints to; nowhere without a home folder."""
    folder = log_dir()
    if folder is not None:
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            return (folder / "fleet.log").open("ab")
    return open(os.devnull, "ab")
