"""C functions of the user's own: compiled by the system's compiler, and bound to the memory of a plan.

They run in the worker's process, as the user's own code: a fault costs the worker, which is started again.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from gputop.backends.argument_words import pack_words
from gputop.backends.cpu.activation_calls import Call
from gputop.backends.cpu.kernels import Bind
from gputop.backends.cpu.memory import Memory
from gputop.model.activation_functions import FUNCTIONS
from gputop.plan.types import Activation, Dims, Kernel, Plan, Step, Task
from gputop.plan.work import Work
from gputop.planner.kernel_calls import launches_of
from gputop.util.errors import CompileFailed, DeviceLost, Unavailable, UsageError
from gputop.util.input_file import read_input_text

COMPILER = "cc"
OPTIONS = ("-O3", "-march=native", "-shared", "-fPIC", "-Wall")
LONGEST_COMPILE_S = 60.0
MOST_SOURCE_BYTES = 4 << 20
FIRST_RUN_S = 15.0
"""What the first run of a kernel may take beside its work. One that is still running then never ends."""
SLOWEST_FLOPS = 1e8
"""Per second, of plain loops without vectors on a slow core."""

_ERROR = re.compile(r"^(?P<file>.+?):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<why>.*)$", re.MULTILINE)


def why_no_compiler() -> str | None:
    """Return why no C function can be compiled here, as a sentence, or None."""
    if shutil.which(COMPILER):
        return None
    return f"There is no {COMPILER} here, which compiles a kernel in C; on Debian and Ubuntu: apt install gcc"


def deadline_s(work: Work) -> float:
    """Return what the first run of a kernel may take in a pass of this work."""
    return FIRST_RUN_S + work.flops / SLOWEST_FLOPS


def bind_of(kernel: Kernel, folder: Path, activation: Activation) -> Bind:
    """Return what binds a kernel, compiled from its source below `folder` for a model's activation.

    Raise CompileFailed, or UsageError if its source or its function is missing.
    """
    library = compiled(folder / kernel.source, kernel.source, activation)
    try:
        function = library[kernel.entries[0]]
    except AttributeError:
        raise UsageError(
            f"{kernel.source} has no function {kernel.entries[0]} that others can call."
        ) from None
    function.argtypes, function.restype = (ctypes.c_void_p,), None
    return functools.partial(_bind, kernel, function)


def code_digest(kernel: Kernel, folder: Path, activation: Activation) -> str:
    """Return which code a time of the kernel belongs to: 12 digits, as those of a CUBIN."""
    text = read_input_text(folder / kernel.source, "kernel source", MOST_SOURCE_BYTES)
    parts = (COMPILER, *OPTIONS, FUNCTIONS[activation].macro, text)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def compiled(source: Path, name: str, activation: Activation) -> ctypes.CDLL:
    """Return the library that a source makes; `name` is how messages call it.

    Raise CompileFailed with the first error, Unavailable without a compiler.
    """
    macro = FUNCTIONS[activation].macro
    return _load(read_input_text(source, "kernel source", MOST_SOURCE_BYTES), name, macro)


@functools.lru_cache(maxsize=16)
def _load(text: str, name: str, macro: str) -> ctypes.CDLL:
    """Each text by itself: a library that is loaded under one name is never loaded anew."""
    if (why := why_no_compiler()) is not None:
        raise Unavailable(f"{why}.")
    with tempfile.TemporaryDirectory(prefix="gputop-") as folder:
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        library = Path(folder) / f"{digest}.so"
        source = Path(folder) / os.path.basename(name)
        source.write_text(text, encoding="utf-8")
        defined = (f"-D{macro}",) if macro else ()
        command = (COMPILER, *OPTIONS, *defined, str(source), "-o", str(library), "-lm")
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                timeout=LONGEST_COMPILE_S,
                stdin=subprocess.DEVNULL,
                # Its messages in English, whose form is known.
                env={**os.environ, "LC_ALL": "C"},
            )
        except subprocess.TimeoutExpired:
            why = f"{COMPILER} was still at it after {LONGEST_COMPILE_S:.0f} s"
            raise CompileFailed(name, None, why, "this processor") from None
        said = done.stderr.decode(errors="replace")
        if done.returncode:
            raise _failure(name, said)
        # Loaded before its file is removed with the folder.
        return ctypes.CDLL(str(library), mode=os.RTLD_NOW | os.RTLD_LOCAL)


def _failure(name: str, said: str) -> CompileFailed:
    found = _ERROR.search(said)
    if found is None:
        return CompileFailed(name, None, said.strip()[-400:], "this processor")
    of_own = os.path.basename(found["file"]) == os.path.basename(name)
    file = name if of_own else found["file"]
    return CompileFailed(file, int(found["line"]), found["why"], "this processor")


def _bind(
    kernel: Kernel, function: ctypes._NamedFuncPointer, task: Task, memory: Memory, plan: Plan, dims: Dims
) -> tuple[Call, ...]:
    """A call for each product of the task, with the struct that it is given."""
    packed = (
        pack_words(launch.args, memory.address) for launch in launches_of(Step(kernel, (task,)), plan, dims)
    )
    return tuple(
        functools.partial(_call, function, ctypes.create_string_buffer(arguments), memory)
        for arguments in packed
    )


def _call(function: ctypes._NamedFuncPointer, arguments: ctypes.Array[ctypes.c_char], memory: Memory) -> None:
    """`memory` is what the arguments point into: it stays as long as anyone may still be in the call."""
    function(ctypes.addressof(arguments))


def first_run(steps: Sequence[Step], bound: Sequence[Sequence[Call]], deadline_s: float) -> None:
    """Run every step once. Raise DeviceLost, naming the step, if the user's own kernel in it does not end.

    What never ends can't be ended: it is left behind on its thread, and this process is given up.
    """
    for step, calls in zip(steps, bound, strict=True):
        if not step.kernel.record:
            for call in calls:
                call()
            continue
        thread = threading.Thread(target=_run_all, args=(calls,), name=step.kernel.name, daemon=True)
        thread.start()
        thread.join(deadline_s)
        if thread.is_alive():
            what = f"{step.choice} at {step.site}"
            raise DeviceLost(f"{what} was still running after {deadline_s:.0f} s; its process is given up.")


def _run_all(calls: Sequence[Call]) -> None:
    for call in calls:
        call()
