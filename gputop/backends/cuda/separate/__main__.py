"""The process of one separate plan: python -m gputop.backends.cuda.separate DESCRIPTOR

Prepares the plan that the first request names, then does what is asked until the other end hangs up.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any

from gputop.backends.base import Prepared, Trace
from gputop.backends.cuda.availability import open_backend
from gputop.backends.cuda.backend import CudaBackend
from gputop.backends.cuda.separate.messages import Answer, Call, Done, Failed, Prepare, Read, Request, Said
from gputop.planner.resolver import Resolver, plan_dims
from gputop.util.errors import DeviceLost, GputopError, WorkerLost


def main(connection: Connection) -> int:
    """Serve until the other end hangs up, or the device is lost."""
    faulthandler.enable()
    server = _Server(connection)
    try:
        while True:
            answer = server.answer(connection.recv())
            connection.send(answer)
            if isinstance(answer, Failed) and isinstance(answer.error, DeviceLost):
                # Giving memory back would wait for a kernel that does not end.
                os._exit(WorkerLost.exit_code)
    except (EOFError, BrokenPipeError):
        server.close()
    return 0


class _Server:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._backend: CudaBackend | None = None
        self._prepared: Prepared | None = None
        self._trace: Trace | None = None

    def answer(self, request: Request) -> Answer:
        try:
            return Done(self._do(request))
        except GputopError as error:
            return Failed(error)
        except Exception as error:
            traceback.print_exc()
            return Failed(WorkerLost(f"{type(error).__name__}: {error}"))

    def close(self) -> None:
        self._trace = None
        if self._prepared is not None:
            self._prepared.close()
        if self._backend is not None:
            self._backend.close()

    def _do(self, request: Request) -> Any:
        if isinstance(request, Prepare):
            return self._prepare(request)
        assert self._prepared is not None
        if isinstance(request, Read):
            assert self._trace is not None
            return self._trace.read(request.view)
        assert isinstance(request, Call)
        value = getattr(self._prepared, request.method)(*request.arguments)
        if request.method == "trace":
            self._trace = value
            return value.logits
        return value

    def _prepare(self, request: Prepare) -> None:
        plan = request.plan
        catalog = Resolver.load(request.kernels_dir)
        self._backend = open_backend(request.workload, request.device, self._say, catalog)
        steps = catalog.steps(plan, plan_dims(request.workload, plan))
        self._prepared = self._backend.prepare_here(plan, steps, self._say)

    def _say(self, text: str) -> None:
        self._connection.send(Said(text))


if __name__ == "__main__":
    sys.exit(main(Connection(int(sys.argv[1]))))
