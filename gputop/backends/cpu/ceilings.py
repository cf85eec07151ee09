"""Peaks of this machine, measured with the same NumPy that runs the pass, and kept on disk.

A peak is the best of several tries: anything that disturbs only makes it smaller.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import perf_counter

import msgspec
import numpy as np

from gputop.backends.base import Say
from gputop.backends.cpu import machine
from gputop.backends.cpu.memory import aligned
from gputop.paths import cache_dir
from gputop.results import SCHEMA_CEILINGS, Ceiling, Ceilings

PEAK_SIDE = 1024
"""Side of the square product that shows the BLAS at its best: far above its blocking sizes."""
READ_BYTES = 340 * 1000 * 1000
"""A read of at least the weight set of gpt2-small, beyond any cache."""
READ_COLUMNS = 4096
TRIES = 4
CALLS = 2000


def measure(say: Say) -> Ceilings:
    """All peaks; takes about a second."""
    say("measuring this machine's ceilings")
    every = machine.blas().all_threads
    items = [
        _peak("fp32", every),
        _peak("fp32_1", 1),
        *_reads(every),
        _call(),
    ]
    return Ceilings(
        device=machine.processor(),
        driver=None,
        time_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        items=tuple(items),
        versions=machine.versions(),
    )


def load() -> Ceilings | None:
    """Those kept for this machine, NumPy, BLAS and number of threads; None when there are none."""
    try:
        return msgspec.json.decode(_cache_file().read_bytes(), type=Ceilings)
    except (OSError, msgspec.DecodeError):
        return None


def save(ceilings: Ceilings) -> None:
    """Keep them. A cache that can't be written costs a second next time, no more."""
    path = _cache_file()
    part = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(msgspec.json.encode(ceilings))
        part.replace(path)
    except OSError:
        return


def timer_floor_s() -> float:
    """Step of the clock plus its spread: two stamps in a row, median and 99th percentile."""
    stamps = [perf_counter() for _ in range(CALLS)]
    between = np.diff(stamps)
    median, high = np.percentile(between, (50, 99))
    return float(median + (high - median))


def _cache_file() -> Path:
    key = (SCHEMA_CEILINGS, machine.processor(), machine.versions(), str(machine.blas().all_threads))
    name = hashlib.sha256("\n".join(key).encode()).hexdigest()[:16]
    return cache_dir("ceilings") / f"cpu-{name}.json"


def _peak(name: str, threads: int) -> Ceiling:
    a, b, out = (aligned((PEAK_SIDE, PEAK_SIDE)) for _ in range(3))
    a.fill(1)
    b.fill(1)
    out.fill(0)
    with machine.blas().threads(threads):
        best_s = _best_s(partial(np.matmul, a, b, out))
    how = f"product of two {PEAK_SIDE} x {PEAK_SIDE} matrices, {_threads(threads)}"
    return Ceiling(name, 2 * PEAK_SIDE**3 / best_s, "FLOP/s", how, machine.clock_hz())


def _reads(every: int) -> list[Ceiling]:
    """Read bandwidth with all threads and with one.

    All threads means whichever of the two reads faster: a few cores may saturate the memory.
    """
    rows = READ_BYTES // (READ_COLUMNS * 4)
    matrix, vector, out = aligned((rows, READ_COLUMNS)), aligned((READ_COLUMNS,)), aligned((rows,))
    matrix.fill(1)
    vector.fill(1)
    read = partial(np.matmul, matrix, vector, out)
    rates = {}
    for threads in sorted({1, every}):
        with machine.blas().threads(threads):
            rates[threads] = matrix.nbytes / _best_s(read)
    best = max(rates, key=lambda threads: rates[threads])
    how = f"product of a {matrix.nbytes / 1e6:.0f} MB matrix and a vector, "
    clock_hz = machine.clock_hz()
    return [
        Ceiling("dram_read", rates[best], "B/s", how + _threads(best), clock_hz),
        Ceiling("dram_read_1", rates[1], "B/s", how + _threads(1), clock_hz),
    ]


def _call() -> Ceiling:
    """What a NumPy call costs before it computes anything worth counting."""
    one = aligned((1,))
    one.fill(1)
    call = partial(np.add, one, one, one)

    def many() -> None:
        for _ in range(CALLS):
            call()

    how = f"adding two arrays of one element, mean of {CALLS}"
    return Ceiling("call", _best_s(many) / CALLS, "s", how, machine.clock_hz())


def _best_s(work: Callable[[], object]) -> float:
    times = []
    for _ in range(TRIES):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times)


def _threads(count: int) -> str:
    return "1 thread" if count == 1 else f"{count} threads"
