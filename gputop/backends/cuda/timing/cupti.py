"""Kernels of a run recorded by CUPTI, where it is installed: also those inside a graph."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.utility_kernels import Tools
from gputop.backends.cuda.timing import cupti_ffi
from gputop.backends.cuda.timing.cupti_ffi import Cupti
from gputop.backends.cuda.timing.spans import Span, step_and_spread_s
from gputop.util.errors import Unavailable

FLOOR_LAUNCHES = 64


class KernelRecorder:
    """Records the kernels of a run. On only while it records: it slows everything else down.

    CUPTI is attached on first use only: two attached tools conflict, for example under compute-sanitizer.
    """

    def __init__(self, context: Context, tools: Tools, cupti: Cupti) -> None:
        self._context = context
        self._tools = tools
        self._cupti = cupti
        self.floor_s = 0.0
        """The clock's step and spread; 0 until something was recorded."""

    def record(self, work: Callable[[], None], what: str) -> list[Span]:
        """Spans of every kernel that `work` enqueues. Unavailable where CUPTI lets nobody attach."""
        if not self.floor_s:
            self._cupti.attach()
            spans = self._record(self._empties, "recording empty kernels")
            if len(spans) < FLOOR_LAUNCHES:
                raise Unavailable(f"CUPTI recorded {len(spans)} of {FLOOR_LAUNCHES} kernels here.")
            self.floor_s = step_and_spread_s(spans)
        return self._record(work, what)

    def _empties(self) -> None:
        empty = self._tools.empty()
        for _ in range(FLOOR_LAUNCHES):
            empty()

    def _record(self, work: Callable[[], None], what: str) -> list[Span]:
        self._cupti.start()
        try:
            work()
            self._context.synchronize(what)
        except BaseException:
            # What went wrong is to be told, not that CUPTI fails as well.
            with suppress(Unavailable):
                self._cupti.stop()
            raise
        self._cupti.stop()
        return self._cupti.flush()


def open_recorder(context: Context, tools: Tools) -> tuple[KernelRecorder | None, tuple[str, ...]]:
    """The recorder, or None: with a note where CUPTI is installed and can't be loaded."""
    try:
        cupti = cupti_ffi.load()
    except OSError as error:
        return None, (f"CUPTI can't be loaded here ({error}); phases are timed by events.",)
    return (None if cupti is None else KernelRecorder(context, tools, cupti)), ()
