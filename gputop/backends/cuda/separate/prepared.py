"""The measuring process's side of a plan that runs in a process of its own."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection, Pipe
from typing import TYPE_CHECKING, Any

from gputop.backends.base import PassTimes, PhaseTimes, Say, TimedRun
from gputop.backends.cuda.separate.messages import Call, Done, Failed, Prepare, Read, Request, Said
from gputop.plan.launch_shape import LaunchInfo
from gputop.plan.types import Plan, Step, View
from gputop.results.records import Tuned
from gputop.util import host_cpu
from gputop.util.child_environment import child_environment
from gputop.util.errors import DeviceLost, WorkerLost

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Tokens = NDArray[np.int32]

MODULE = "gputop.backends.cuda.separate"
END_S = 10.0
"""How long the process may take to give its memory back before it is killed."""


class SeparateTrace:
    """A pass that kept every layer's buffers, in the other process."""

    def __init__(self, process: _Process, logits: Floats) -> None:
        self._process = process
        self.logits = logits

    def read(self, view: View) -> Floats:
        array: Floats = self._process.ask(Read(view))
        return array


class SeparatePrepared:
    """See `backends.base.Prepared`; every method runs in the other process.

    A fault there ends that process alone: WorkerLost, with what it said, and the plan is lost.
    """

    def __init__(self, request: Prepare, steps: tuple[Step, ...], say: Say) -> None:
        """Raise what preparing the plan raises there."""
        self.plan: Plan = request.plan
        self.steps = steps
        self._process = _Process(request.plan.word or request.plan.rung)
        try:
            self._process.ask(request, say)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def run(self, tokens: Tokens, poison: float) -> Floats:
        logits: Floats = self._call("run", tokens, poison)
        return logits

    def run_each(self, runs: Sequence[tuple[Tokens, float]]) -> list[TimedRun]:
        done: list[TimedRun] = self._call("run_each", list(runs))
        return done

    def trace(self, tokens: Tokens, poison: float) -> SeparateTrace:
        return SeparateTrace(self._process, self._call("trace", tokens, poison))

    def sample_pass(self, passes: int) -> PassTimes:
        times: PassTimes = self._call("sample_pass", passes)
        return times

    def sample_phases(self, passes: int) -> tuple[PhaseTimes, ...]:
        times: tuple[PhaseTimes, ...] = self._call("sample_phases", passes)
        return times

    def facts(self) -> tuple[LaunchInfo, ...]:
        facts: tuple[LaunchInfo, ...] = self._call("facts")
        return facts

    def tuned(self) -> tuple[Tuned, ...]:
        tuned: tuple[Tuned, ...] = self._call("tuned")
        return tuned

    def close(self) -> None:
        self._process.end()

    def _call(self, method: str, *arguments: Any) -> Any:
        return self._process.ask(Call(method, arguments))


class _Process:
    """The process with its end of the pipe."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._connection, theirs = Pipe()
        with theirs:
            # -P: no file of where the user stands takes the place of one of Python's modules.
            command = (sys.executable, "-P", "-m", MODULE, str(theirs.fileno()))
            self._popen = subprocess.Popen(
                command, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, env=child_environment()
            )
        host_cpu.measures_for_us(self.pid)

    @property
    def pid(self) -> int:
        return self._popen.pid

    def ask(self, request: Request, say: Say | None = None) -> Any:
        """The answer's value. Raise its error, or WorkerLost when the process is gone or lost its device."""
        connection: Connection = self._connection
        try:
            connection.send(request)
            while isinstance(answer := connection.recv(), Said):
                if say is not None:
                    say(answer.text)
        except (EOFError, OSError):
            code = self.end()
            raise WorkerLost(
                f"The process that runs {self._what} ended by itself (exit code {code}); "
                "the log has the details."
            ) from None
        if isinstance(answer, Failed):
            if isinstance(answer.error, DeviceLost):
                # What was lost is that process's context: ours goes on.
                self.end()
                raise WorkerLost(str(answer.error)) from None
            raise answer.error
        assert isinstance(answer, Done)
        return answer.value

    def end(self) -> int:
        """Hang up and wait for its exit; kill it when it does not come. Returns the exit code."""
        with contextlib.suppress(OSError):
            self._connection.close()
        try:
            return self._popen.wait(END_S)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            return self._popen.wait()
        finally:
            host_cpu.has_ended(self.pid)
