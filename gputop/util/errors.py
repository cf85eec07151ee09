"""What can go wrong, each with the exit code that the command line promises.

A message is one or two sentences for a person: what is wrong, what is allowed,
and the nearest name or the command that mends it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import ClassVar


class GputopError(Exception):
    """Base of every fault that gputop explains itself."""

    exit_code: ClassVar[int] = 2


class UsageError(GputopError):
    """Unknown name, impossible plan, unreadable or unwritable file."""

    exit_code = 2


class CompileFailed(UsageError):
    """A source of a kernel does not compile."""

    def __init__(self, file: str, line: int | None, why: str, target: str) -> None:
        """`file`: as messages call it; `line`: of the first error, None if the compiler names none; `why`: in
        the compiler's words; `target`: what it was compiled for.
        """
        where = file if line is None else f"{file}, line {line},"
        super().__init__(f"{where} does not compile for {target}: {why}")
        self.file = file
        self.line = line
        self.why = why


class GateFailed(GputopError):
    """Measured, but the answer is wrong."""

    exit_code = 1


class RequirementFailed(GputopError):
    """Measured, and what `--require` asks does not hold."""

    exit_code = 1


class RequirementUnresolved(GputopError):
    """Measured, and what `--require` asks is not decided."""

    exit_code = 5


class Unavailable(GputopError):
    """The device or library asked for is not on this machine."""

    exit_code = 3


class WorkerLost(GputopError):
    """The measuring process died or hung."""

    exit_code = 4


class DeviceLost(WorkerLost):
    """A CUDA fault took the context with it: this process can measure no more and must end."""


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says, else its kind."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def unknown_name(kind: str, name: str, allowed: Iterable[str]) -> UsageError:
    """A `UsageError` saying what `name` is not, the nearest allowed name, and the whole list."""
    names = sorted(allowed)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return UsageError(f"Unknown {kind} {name!r}.{hint} Allowed: {', '.join(names)}.")
