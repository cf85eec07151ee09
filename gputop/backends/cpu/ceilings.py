"""Peaks of this machine, measured with the same NumPy that runs the pass, and kept on disk.

A peak is the best of several tries: anything that disturbs only makes it smaller.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Literal

import msgspec
import numpy as np

from gputop.backends.base import Say
from gputop.backends.cpu import machine
from gputop.backends.cpu.memory import Floats
from gputop.results import ceiling_checks
from gputop.results.records import SCHEMA_CEILINGS, Ceiling, Ceilings
from gputop.util import cgroups, host_cpu
from gputop.util.aligned_array import aligned
from gputop.util.heartbeat import beat
from gputop.util.host_cpu import CpuUse
from gputop.util.input_file import read_regular
from gputop.util.json_decode import BrokenJson, decode_json
from gputop.util.output_file import keep
from gputop.util.paths import cache_dir
from gputop.util.units import percent

NAMES = ("fp32", "dram_read", "call")
OF_ONE_THREAD = ("fp32_1", "dram_read_1")
"""Measured too if the BLAS can be held to one thread."""
PEAK_SIDE = 768
"""Side of the square product that shows the BLAS at its best: well above its blocking sizes."""
READ_BYTES = 256 << 20
"""What is read in place of a weight set smaller than this: beyond any cache."""
READ_COLUMNS = 4096
PRODUCT_TRIES = 4
READ_TRIES = 3
CALLS = 100
"""Few enough that some run of them is not interrupted."""
CALL_TRIES = 50
STAMPS = 2000
MOST_PER_CORE_CLOCK = {"FLOP/s": 1024, "B/s": 256}
"""No core does more in a clock cycle: AVX-512 makes 64 FLOPs of it, matrix units in fp32 some hundreds."""
MOST_CALL_S = 1e-2
MOST_CACHE_BYTES = 1 << 20
BUSY = 0.25
"""Others' load, as a share of the cores, above which a peak is not to be trusted and not kept."""
OK = "ok"
OK_IN_BURSTS = "ok: reached in bursts only, which a CPU quota of {} cores then holds back"

_ceilings = msgspec.json.Decoder(Ceilings)


def measure(weights: Iterable[Floats], say: Say) -> Ceilings:
    """Measure all peaks, in about half a second. On a busy machine the status of each says so.

    `weights`: a model's tensors, whose reading shows the bandwidth where they exceed any cache.
    """
    say("measuring this machine's ceilings")
    before = host_cpu.cpu_times()
    items = (*_products(), *_reads(weights), _call())
    status = _status(host_cpu.use_between(before, host_cpu.cpu_times()))
    return Ceilings(
        device=machine.processor(),
        driver=None,
        time_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        items=tuple(replace(item, status=status) for item in items),
        versions=machine.versions(),
    )


def load() -> Ceilings | None:
    """Those kept for this machine, NumPy, BLAS, threads and quota; None when there are none to trust."""
    try:
        kept = decode_json(_ceilings, read_regular(_cache_file(), MOST_CACHE_BYTES))
    except (OSError, BrokenJson):
        return None
    return kept if _trusted(kept) else None


def save(ceilings: Ceilings) -> None:
    """Keep them if they can be trusted."""
    if _trusted(ceilings):
        keep(_cache_file(), msgspec.json.encode(ceilings))


def timer_floor_s() -> float:
    """Step of the clock and its spread: the 99th percentile of what lies between two stamps in a row."""
    stamps = [perf_counter() for _ in range(STAMPS)]
    return float(np.percentile(np.diff(stamps), 99))


def _trusted(ceilings: Ceilings) -> bool:
    """Return whether all peaks of this machine are there, measured on a quiet machine, and possible."""
    named = {item.name: item for item in ceilings.items}
    return (
        set(named) == {*NAMES, *(OF_ONE_THREAD if machine.blas().all_threads else ())}
        and (ceilings.device, ceilings.versions) == (machine.processor(), machine.versions())
        and all(item.status.startswith(OK) for item in ceilings.items)
        and not any(ceiling_checks.faults(ceilings))
        and all(item.value <= _most(item) for item in ceilings.items)
        and all(
            named[name].value <= named[name.removesuffix("_1")].value
            for name in OF_ONE_THREAD
            if name in named
        )
    )


def _most(item: Ceiling) -> float:
    """Return what the machine's cores allow at the highest clock, or a bound on what they take."""
    per_core_clock = MOST_PER_CORE_CLOCK.get(item.unit)
    if per_core_clock is None:
        return MOST_CALL_S
    return per_core_clock * (os.cpu_count() or 1) * ceiling_checks.MOST_CLOCK_HZ


def _cache_file() -> Path:
    held_to = f"{machine.blas().all_threads} threads, quota {cgroups.cpu_quota()}"
    key = (SCHEMA_CEILINGS, machine.processor(), machine.versions(), held_to)
    name = hashlib.sha256("\n".join(key).encode()).hexdigest()[:16]
    return cache_dir("ceilings") / f"cpu-{name}.json"


def _products() -> tuple[Ceiling, ...]:
    a, b, out = (aligned((PEAK_SIDE, PEAK_SIDE)) for _ in range(3))
    a.fill(1)
    b.fill(1)
    how = f"product of two {PEAK_SIDE} x {PEAK_SIDE} matrices"
    flops, work = 2.0 * PEAK_SIDE**3, partial(np.matmul, a, b, out)
    return _with_all_and_one("fp32", "FLOP/s", how, flops, work, PRODUCT_TRIES)


def _reads(weights: Iterable[Floats]) -> tuple[Ceiling, ...]:
    """Measure reads by products of matrices and a vector, which read each element once."""
    matrices = [array.reshape(-1, array.shape[-1]) for array in weights if array.ndim > 2]
    if sum(matrix.nbytes for matrix in matrices) < READ_BYTES:
        rows = min(READ_BYTES, machine.free_bytes() // 2) // (READ_COLUMNS * 4)
        matrices = [aligned((max(1, rows), READ_COLUMNS))]
        matrices[0].fill(1)
    reads = [
        partial(np.matmul, matrix, np.ones(matrix.shape[1], np.float32), np.empty(len(matrix), np.float32))
        for matrix in matrices
    ]

    def read_all() -> None:
        for read in reads:
            read()

    read_bytes = float(sum(matrix.nbytes for matrix in matrices))
    how = f"products of {read_bytes / 1e6:.0f} MB of matrices and a vector"
    return _with_all_and_one("dram_read", "B/s", how, read_bytes, read_all, READ_TRIES)


def _with_all_and_one(
    name: str, unit: Literal["FLOP/s", "B/s"], how: str, amount: float, work: Callable[[], object], tries: int
) -> tuple[Ceiling, ...]:
    """The peak of the machine, and that of one thread as NAME_1 if the BLAS can be held to one.

    The machine's is the better of all threads and one: a core may saturate the memory alone.
    """
    all_threads = machine.blas().all_threads
    rates: dict[int | None, float] = {}
    for threads in (None,) if all_threads is None else sorted({1, all_threads}):
        with machine.blas().threads(threads):
            rates[threads] = amount / _best_s(work, tries)
    best = max(rates, key=lambda threads: rates[threads])
    clock_hz = machine.clock_hz()
    peak = Ceiling(name, rates[best], unit, f"{how}, {_threads(best)}", clock_hz)
    if 1 not in rates:
        return (peak,)
    return peak, Ceiling(f"{name}_1", rates[1], unit, f"{how}, {_threads(1)}", clock_hz)


def _call() -> Ceiling:
    """Measure what a NumPy call costs when it computes almost nothing."""
    one = aligned((1,))
    one.fill(1)
    call = partial(np.multiply, one, one, one)

    def many() -> None:
        for _ in range(CALLS):
            call()

    how = f"multiplying two arrays of one element, mean of {CALLS}"
    return Ceiling("call", _best_s(many, CALL_TRIES) / CALLS, "s", how, machine.clock_hz())


def _status(use: CpuUse) -> str:
    """`ok`, or why the peaks are lower than the machine's or can't be held. `use`: of the cores meanwhile."""
    if use.others_cores is None:
        load = machine.load()
        # The load counts this process too.
        busy = load is not None and load > use.cores * BUSY + 1
        others = f"load {load or 0:.1f} on {use.cores} cores"
    else:
        busy = use.others_cores > use.cores * BUSY
        others = f"others use {percent(use.others_cores)} of your {use.cores} cores"
    if busy:
        return f"measured on a busy machine ({others})"
    quota = cgroups.cpu_quota()
    return OK if quota is None else OK_IN_BURSTS.format(f"{quota:.3g}")


def _best_s(work: Callable[[], object], tries: int) -> float:
    times = []
    for _ in range(tries):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
        beat()
    return min(times)


def _threads(count: int | None) -> str:
    if count is None:
        return "threads unknown"
    return "1 thread" if count == 1 else f"{count} threads"
