"""Hardware counters of kernels: which are read, what was counted, and what the model declares beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from gputop.plan.types import Dims, Plan, Workload
from gputop.results.records import DeviceFacts, Row
from gputop.util.input_file import read_regular
from gputop.util.json_decode import BrokenJson, decode_json
from gputop.util.output_file import keep
from gputop.util.paths import cache_dir
from gputop.util.units import number, percent, seconds, size_bytes

SECTOR_BYTES = 32
"""Of L1 and L2: what a sector counter counts."""
MOST_KEPT_BYTES = 1 << 20
KEPT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Counter:
    """One figure that ncu collects of a kernel."""

    key: str
    """Name in files, its unit at the end."""
    metric: str
    """As ncu names it."""
    title: str
    show: Callable[[float | None], str]
    scale: float = 1.0
    """Figure / what ncu gives in base units."""
    declared: Callable[[Row], float | None] = lambda row: None
    """The same of one instance, as the model has it."""


def _of_one(column: str) -> Callable[[Row], float | None]:
    """Return a reader of one instance's share of a column of the whole pass."""

    def read(row: Row) -> float | None:
        value = getattr(row, column)
        return value / row.count if value is not None and row.count else None

    return read


def _share(key: str, metric: str, title: str) -> Counter:
    """A counter that ncu gives in percent of the most that is possible."""
    return Counter(key, metric, title, percent, 0.01)


def _stall(reason: str, title: str) -> Counter:
    metric = f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"
    return Counter(f"stall_{reason}", metric, title, number)


LOAD = "pipe_lsu_mem_global_op_ld.sum"
ACTIVE = "avg.pct_of_peak_sustained_active"
COUNTERS = (
    Counter("time_s", "gpu__time_duration.sum", "time under ncu, no measurement", seconds, 1e-9),
    Counter(
        "dram_read_bytes", "dram__bytes_read.sum", "read from DRAM", size_bytes, 1.0, _of_one("dram_bytes")
    ),
    Counter("dram_write_bytes", "dram__bytes_write.sum", "written to DRAM", size_bytes),
    Counter(
        "l2_bytes", "lts__t_sectors_srcunit_tex.sum", "asked of L2", size_bytes, SECTOR_BYTES,
        _of_one("l2_bytes"),
    ),
    Counter("sm_read_bytes", "l1tex__m_xbar2l1tex_read_bytes.sum", "taken by SMs", size_bytes),
    Counter(
        "sm_shared_bytes", "l1tex__m_xbar2l1tex_read_bytes_mem_dshared.sum", "of that from other SMs",
        size_bytes,
    ),
    Counter("sm_write_bytes", "l1tex__m_l1tex2xbar_write_bytes.sum", "written by SMs", size_bytes),
    Counter("global_load_sectors", f"l1tex__t_sectors_{LOAD}", "sectors loaded", number),
    Counter("global_load_requests", f"l1tex__t_requests_{LOAD}", "requests to load", number),
    Counter(
        "shared_wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "wavefronts of shared memory",
        number,
    ),
    Counter("instructions", "smsp__inst_executed.sum", "warp instructions", number),
    _share("issue_share", f"smsp__issue_active.{ACTIVE}", "cycles that issue"),
    _share("tensor_share", f"sm__pipe_tensor_cycles_active.{ACTIVE}", "tensor pipe busy"),
    _share("fma_share", f"sm__pipe_fma_cycles_active.{ACTIVE}", "FMA pipe busy"),
    Counter(
        "occupancy_achieved", f"sm__warps_active.{ACTIVE}", "warps an SM", percent, 0.01,
        lambda row: row.occupancy_theoretical,
    ),
    _stall("long_scoreboard", "warps waiting for L2 or DRAM"),
    _stall("short_scoreboard", "warps waiting for shared memory"),
    _stall("barrier", "warps waiting at a barrier"),
    _stall("wait", "warps waiting a fixed latency"),
    _stall("math_pipe_throttle", "warps waiting for a math pipe"),
    _stall("mio_throttle", "warps waiting for the MIO queue"),
    _stall("lg_throttle", "warps waiting for the load queue"),
    _stall("not_selected", "warps ready, not selected"),
)  # fmt: skip
"""In the order in which they are shown. Stalls are warps in that state an issued instruction."""


class CountRequest(msgspec.Struct, frozen=True):
    """What the profiled process is to run."""

    workload: Workload
    device: str | None
    kernels_dir: str
    plans: tuple[Plan, ...]


@dataclass(frozen=True, slots=True)
class CountedLaunch:
    """One kernel launch as it was run under the profiler."""

    plan: str
    site: str
    name: str
    """The kernel as the driver names it."""
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cubin: str | None = None
    """Digest of its machine code; None of a library's kernel."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted of one launch. A counter that ncu gave no figure for is missing."""

    launch: CountedLaunch
    values: Mapping[str, float] = field(default_factory=dict)
    """Counter's key -> figure of that one launch, in the key's unit."""

    @property
    def sectors_per_request(self) -> float | None:
        """Sectors that a warp's load of global memory touches: 4 if 32 neighbours load 4 bytes each."""
        sectors, requests = (self.values.get(f"global_load_{of}") for of in ("sectors", "requests"))
        return sectors / requests if sectors is not None and requests else None


def counted_lines(counted: Counted, row: Row) -> Iterator[str]:
    """Yield each counted figure of one launch, beside what the model declares of one instance."""
    launch = counted.launch
    grid, block = ("x".join(map(str, extent)) for extent in (launch.grid, launch.block))
    yield f"{launch.name}   grid {grid}   block {block}"
    for counter in COUNTERS:
        value = counted.values.get(counter.key)
        if value is None:
            continue
        declared = counter.declared(row)
        beside = ""
        if declared is not None:
            beside = f"   declared {counter.show(declared)}"
        yield f"  {counter.title:<32} {counter.show(value):>12}{beside}"
    if counted.sectors_per_request is not None:
        yield f"  {'sectors a request':<32} {number(counted.sectors_per_request):>12}"


# Kept


class _Kept(msgspec.Struct, frozen=True):
    """A file of figures that were counted earlier."""

    version: int
    device: str
    time_utc: str
    counted: tuple[Counted, ...]


_decoder = msgspec.json.Decoder(_Kept)


@dataclass(frozen=True, slots=True)
class CounterKey:
    """What counted figures belong to: another device, other sizes or another build make them another's."""

    device: DeviceFacts
    dims: Dims
    row: Row
    """Of the site: its kernel, and the digest of its machine code or the library's name for it."""

    @property
    def digest(self) -> str:
        device, row = self.device, self.row
        code = row.cubin or f"{row.library_kernel} {device.versions}"
        parts = (device.uuid or device.name, device.driver, self.dims, row.phase, row.kernel, row.math, code)
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def keep_counted(key: CounterKey, counted: tuple[Counted, ...], time_utc: str) -> None:
    """Keep what was counted of one site in this user's cache."""
    kept = _Kept(KEPT_VERSION, key.device.name, time_utc, counted)
    keep(cache_dir("counters") / f"{key.digest}.json", msgspec.json.encode(kept))


def kept_counted(key: CounterKey) -> tuple[Counted, ...]:
    """Return what was counted of a site earlier; empty if nothing was, or the file can't be read."""
    file = cache_dir("counters") / f"{key.digest}.json"
    try:
        kept = decode_json(_decoder, read_regular(file, MOST_KEPT_BYTES))
    except (OSError, BrokenJson):
        return ()
    return kept.counted if kept.version == KEPT_VERSION else ()
