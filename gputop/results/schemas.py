"""The tables that gputop writes to files, each a named schema: what a row is, and its columns."""

from __future__ import annotations

from dataclasses import dataclass

from gputop.results.columns import COLUMNS, Column
from gputop.results.fleet_row import SCHEMA_FLEET
from gputop.results.kernel_selection import SCHEMA_ROUTING
from gputop.results.records import (
    SCHEMA_CEILINGS,
    SCHEMA_COMPARE,
    SCHEMA_LADDER,
    SCHEMA_PHASES,
    SCHEMA_WINDOWS,
)
from gputop.results.search_result import SCHEMA_SEARCH
from gputop.util.units import (
    flop,
    hertz,
    number,
    percent,
    ratio,
    scientific,
    seconds,
    signed_seconds,
    whole,
    yes_no,
)


@dataclass(frozen=True, slots=True)
class Schema:
    """A table's name and version, what one of its rows is, and its columns in the order of the file."""

    name: str
    row: str
    columns: tuple[Column, ...]


_SCHEMA = Column("schema", "", "schema", "Name and version of this table.")
_TIME_UTC = Column("time_utc", "", "time", "When it began, ISO 8601 in UTC.", width=20)
_DEVICE = Column("device", "", "device", "The device's name.", width=24)
_DRIVER = Column("driver", "", "driver", "The device driver's version.")
_WORKLOAD = Column("workload", "", "workload", "Name of the model's sizes.")
_RUNG = Column("rung", "", "rung", "Name of the rung.", width=14, priority=0)
_DEVICE_S = Column("device_s", "s", "device", "Time of the pass alone, nothing late.", seconds, 8, 1)
_WALL_S = Column("wall_s", "s", "wall", "Time of the pass as used, host included.", seconds, 8, 2)
_GATE = Column("gate", "", "gate", "Outcome of the check; no pass, no time.", width=14, priority=4)
_GATE_ERROR = Column("gate_error", "1", "error", "Relative error of the pass, worst.", scientific, 8, 8)
_VERSIONS = Column("versions", "", "versions", "The libraries that took part.", width=24)
_STATUS = Column("status", "", "status", "Why a field is empty, and what else to know.", width=24)
_AA_FLOOR = Column("aa_floor", "1", "a/a", "|log ratio| that two copies of one plan reach.", percent, 7, 7)
_SAME_WITHIN = Column(
    "same_within", "1", "same", "|log ratio| within which two plans are SAME; empty if unknown.", percent
)
_VERDICT = Column("verdict", "", "verdict", "FASTER, SLOWER, SAME or UNRESOLVED.", width=10, priority=1)

PHASES = Schema(SCHEMA_PHASES, "a phase of a plan, or a total of the pass", COLUMNS)

COMPARE = Schema(
    SCHEMA_COMPARE,
    "a phase of two plans paired in one window, or the whole pass as device and wall",
    (
        _SCHEMA,
        Column("plan_a", "", "a", "The first plan.", width=24),
        Column("plan_b", "", "b", "The second plan.", width=24),
        Column("phase", "", "phase", "The phase, or device or wall.", width=10, priority=0),
        Column("a_s", "s", "a", "Time of the first plan; a sequence's where batches differ.", seconds, 8, 3),
        Column("b_s", "s", "b", "Time of the second plan, likewise.", seconds, 8, 3),
        Column("delta_s", "s", "b - a", "Paired difference, second - first.", signed_seconds, 9, 4),
        Column("delta_lo_s", "s", "lo", "Lower end of its 99 % interval.", signed_seconds, 9, 5),
        Column("delta_hi_s", "s", "hi", "Upper end of its 99 % interval.", signed_seconds, 9, 5),
        Column("ratio", "1", "a / b", "First / second: above 1 the second is faster.", ratio, 7, 0),
        Column("ratio_lo", "1", "lo", "Lower end of its 99 % interval.", ratio, 7, 2),
        Column("ratio_hi", "1", "hi", "Upper end of its 99 % interval.", ratio, 7, 2),
        Column("windows", "1", "windows", "Windows behind the figures.", whole),
        Column("samples", "1", "samples", "Pairs behind the figures.", whole, 7, 6),
        _AA_FLOOR,
        _VERDICT,
        _STATUS,
        _SAME_WITHIN,
    ),
)

WINDOWS = Schema(
    SCHEMA_WINDOWS,
    "a plan in a window",
    (
        _SCHEMA,
        _TIME_UTC,
        Column("window", "1", "window", "Number of the window.", whole, 6, 0),
        Column("seconds", "s", "lasted", "How long the window lasted.", seconds),
        Column("backend", "", "backend", "What measured: cuda, cpu or replay."),
        _DEVICE,
        _DRIVER,
        _WORKLOAD,
        Column("plan", "", "plan", "The plan as `gputop compare` spells it.", width=24, priority=0),
        _RUNG,
        Column("role", "", "role", "current, or pinned for the one it is paired with.", width=7, priority=3),
        _DEVICE_S,
        _WALL_S,
        Column("submit_s", "s", "submit", "Host time to enqueue one pass.", seconds),
        Column("host_bound", "", "host-bound", "Whether the host sets the wall time.", yes_no),
        _GATE,
        _GATE_ERROR,
        Column("logit0", "1", "logit 0", "First logit of the last token.", number),
        Column("logit1", "1", "logit 1", "Second logit of the last token.", number),
        Column("ratio", "1", "ratio", "Pinned / current: above 1 the current is faster.", ratio, 7, 5),
        Column("ratio_lo", "1", "lo", "Lower end of its 99 % interval.", ratio),
        Column("ratio_hi", "1", "hi", "Upper end of its 99 % interval.", ratio),
        _VERDICT,
        Column("sm_clock_hz", "Hz", "clock", "SM clock.", hertz),
        Column("memory_clock_hz", "Hz", "memory", "Memory clock.", hertz),
        Column("power_w", "W", "power", "Board power.", number),
        Column("temperature_c", "°C", "temp", "Temperature.", number),
        Column("throttle", "", "throttle", "Reasons seen for a lowered clock; none where none was."),
        Column("others", "", "others", "Other processes on the device; none where none was."),
        Column("stopped_because", "", "stopped", "What ended the window.", width=24),
        _VERSIONS,
        _STATUS,
        Column("host_cores", "1", "cores", "Cores of the host that the measuring process may run on.", whole),
        Column(
            "others_cores", "1", "others", "Cores' worth of time that other programs used of those.", number
        ),
        Column("throttled_s", "s", "held back", "How long a CPU quota held the process back.", seconds),
        Column("cpu_quota_cores", "1", "quota", "Cores' worth of time that a quota allows.", number),
    ),
)

BREAKDOWN = (
    Column("launches", "1", "launches", "Kernels of one pass.", whole, 8),
    Column("gemm_s", "s", "gemm", "Time of the products in one pass.", seconds, 8),
    Column("attention_s", "s", "attention", "Time of attention in one pass.", seconds, 9),
    Column("pointwise_s", "s", "pointwise", "Time of layernorms and of all by element.", seconds, 9),
    Column("other_s", "s", "other", "Time of kernels whose kind is not known.", seconds, 8),
    Column("gap_s", "s", "gaps", "The device without a kernel.", seconds, 8),
)
"""A pass by what its kernels do: the numbers of `results.Breakdown`."""

LADDER = Schema(
    SCHEMA_LADDER,
    "a rung of a ladder measured in one window",
    (
        _SCHEMA,
        _TIME_UTC,
        _DEVICE,
        _DRIVER,
        _WORKLOAD,
        Column("number", "1", "#", "Place on the ladder.", whole, 3, 6),
        _RUNG,
        Column("kind", "", "kind", "ladder, oracle or peer."),
        Column("idea", "", "idea", "The rung in a sentence.", width=40),
        _DEVICE_S,
        _WALL_S,
        Column("before", "", "before", "The rung that it changes.", width=14),
        Column("ratio_before", "1", "vs before", "That rung's time / this one's.", ratio, 9, 2),
        Column("ratio_before_lo", "1", "lo", "Lower end of its 99 % interval.", ratio, 7, 7),
        Column("ratio_before_hi", "1", "hi", "Upper end of its 99 % interval.", ratio, 7, 7),
        Column("ratio_first", "1", "vs first", "The first rung's time / this one's.", ratio, 8, 3),
        Column("predicted", "1", "predicted", "Gain over the rung before, as predicted.", ratio, 9, 3),
        Column("predicted_lo", "1", "lo", "Lower end of the prediction.", ratio),
        Column("predicted_hi", "1", "hi", "Upper end of the prediction.", ratio),
        Column("source", "", "from", "What the prediction rests on.", width=11, priority=9),
        Column("hit", "", "hit", "Whether the gain (its interval, if known) is as predicted.", yes_no, 3, 5),
        Column("binds", "", "binds", "The term that binds most of the pass.", width=8, priority=6),
        _VERDICT,
        _GATE,
        _GATE_ERROR,
        Column("kernels", "", "kernels", "Kernels in the rung's dispatch.", width=24),
        Column("files", "", "files", "Their sources below kernels/.", width=24),
        Column("batch", "1", "batch", "Sequences in one pass.", whole),
        Column("tokens_per_s", "1/s", "tokens/s", "Tokens of all sequences / device_s.", number),
        Column("flops", "FLOP", "FLOPs", "Work of the plan, all sequences of a pass.", flop),
        Column("shape_tax", "1", "shape tax", "Time / time without idle SMs and padding, modelled.", ratio),
        Column("saved_s", "s", "saved", "Time of the rung before - this one's, a sequence.", signed_seconds),
        Column("saved_lo_s", "s", "lo", "Lower end of its 99 % interval.", signed_seconds),
        Column("saved_hi_s", "s", "hi", "Upper end of its 99 % interval.", signed_seconds),
        Column("ratio_first_lo", "1", "lo", "Lower end of ratio_first's 99 % interval.", ratio),
        Column("ratio_first_hi", "1", "hi", "Upper end of ratio_first's 99 % interval.", ratio),
        Column("saved_first_s", "s", "saved", "First rung's time - this one's, a sequence.", signed_seconds),
        Column("saved_first_lo_s", "s", "lo", "Lower end of its 99 % interval.", signed_seconds),
        Column("saved_first_hi_s", "s", "hi", "Upper end of its 99 % interval.", signed_seconds),
        _VERSIONS,
        _STATUS,
        Column("model_s", "s", "model", "The pass by the term model alone.", seconds),
        *BREAKDOWN,
        Column("host_bound", "", "host-bound", "Whether the host sets the wall time.", yes_no),
        Column("forecast_s", "s", "forecast", "Of a peer: time forecast from its features.", seconds),
        _AA_FLOOR,
        Column(
            "binds_share", "1", "share", "What binds / device_s; of unknown the unexplained part.", percent
        ),
        _SAME_WITHIN,
    ),
)

ROUTING = Schema(
    SCHEMA_ROUTING,
    "a kernel at a site of a plan, paired with the plan's own in one window",
    (
        _SCHEMA,
        _TIME_UTC,
        _DEVICE,
        _DRIVER,
        _WORKLOAD,
        Column("plan", "", "plan", "The plan whose sites these are.", width=24),
        Column("site", "", "site", "Where the kernel stands.", width=12, priority=0),
        Column("kernel", "", "kernel", "The candidate.", width=24, priority=0),
        Column("library", "", "library", "Whether it is a vendor's.", yes_no, 7, 6),
        Column("incumbent", "", "incumbent", "Whether it is the plan's own.", yes_no),
        Column("time_s", "s", "time", "Its time in the pass, all instances.", seconds, 8, 0),
        Column("incumbent_s", "s", "plan's own", "The plan's own kernel in that window.", seconds, 10, 4),
        Column("ratio", "1", "ratio", "The plan's own / this one: above 1 this is faster.", ratio, 7, 1),
        Column("ratio_lo", "1", "lo", "Lower end of its 99 % interval.", ratio, 7, 3),
        Column("ratio_hi", "1", "hi", "Upper end of its 99 % interval.", ratio, 7, 3),
        _AA_FLOOR,
        _VERDICT,
        Column("standing", "", "standing", "winner, tie, or empty.", width=8, priority=0),
        Column("headroom", "1", "own / lib", "Of this site: best own time / best library time.", ratio, 9, 5),
        _STATUS,
    ),
)

SEARCH = Schema(
    SCHEMA_SEARCH,
    "a candidate of a search beside the incumbent in one window; or a cell of the table that it found",
    (
        _SCHEMA,
        _TIME_UTC,
        _DEVICE,
        _DRIVER,
        _WORKLOAD,
        Column("plan", "", "plan", "The plan that the search began with.", width=24),
        Column("found", "", "found", "The plan with the table that it found.", width=24),
        Column("seed", "1", "seed", "What equal candidates were ordered by.", whole),
        Column("stage", "", "stage", "search, finals or closing; struck; table.", width=8, priority=5),
        Column("trial", "1", "trial", "Number of the experiment.", whole, 5, 0),
        Column("window", "1", "window", "Number of the window that it was measured in.", whole),
        Column("site", "", "site", "Where the kernel stands.", width=12, priority=0),
        Column(
            "kernel", "", "candidate", "The candidate; of a table's row the found one.", width=24, priority=0
        ),
        Column(
            "incumbent",
            "",
            "beside",
            "The kernel beside it; of a table's row the plan's own.",
            width=24,
            priority=6,
        ),
        Column("forecast_s", "s", "forecast", "Its time as forecast before the window.", seconds, 8, 3),
        Column("forecast_sd", "1", "sd", "Standard deviation of the forecast's logarithm.", number, 7, 8),
        Column("incumbent_s", "s", "incumbent", "The incumbent's time in that window.", seconds, 9, 4),
        Column("time_s", "s", "time", "Its time in the pass, all instances.", seconds, 8, 2),
        Column("ratio", "1", "ratio", "Incumbent / candidate: above 1 the candidate is faster.", ratio, 7, 0),
        Column("ratio_lo", "1", "lo", "Lower end of its 99 % interval.", ratio, 7, 2),
        Column("ratio_hi", "1", "hi", "Upper end of its 99 % interval.", ratio, 7, 2),
        _AA_FLOOR,
        _VERDICT,
        Column("accepted", "", "taken", "Whether it took the incumbent's place.", yes_no, 5, 0),
        _GATE,
        _STATUS,
    ),
)

CEILINGS = Schema(
    SCHEMA_CEILINGS,
    "a measured peak of a device",
    (
        _SCHEMA,
        _TIME_UTC,
        _DEVICE,
        _DRIVER,
        Column("name", "", "ceiling", "What is at its peak.", width=16, priority=0),
        Column("value", "", "peak", "The peak, in `unit`.", number, 9, 0),
        Column("unit", "", "unit", "B/s, FLOP/s or s.", width=6, priority=0),
        Column("sustained", "", "sustained", "The same, held for long.", number, 9, 3),
        Column("limit", "", "limit", "What the hardware's width times this clock allows.", number, 9, 2),
        Column("library", "", "library", "The vendor library's rate on the same resource.", number, 9, 4),
        Column("datasheet", "", "datasheet", "The vendor's published figure.", number, 9, 5),
        Column("clock_hz", "Hz", "clock", "Clock at which it was measured.", hertz, 9, 6),
        Column("how", "", "how", "What was run to measure it.", width=32, priority=7),
        _VERSIONS,
        _STATUS,
    ),
)

FLEET = Schema(
    SCHEMA_FLEET,
    "a figure of one device of a fleet, or of all its devices of one model",
    (
        _SCHEMA,
        _TIME_UTC,
        Column(
            "number", "1", "#", "The device's number in the fleet; empty where devices are pooled.", whole
        ),
        Column("host", "", "host", "The host that it is in.", width=16),
        _DEVICE,
        _DRIVER,
        Column("devices", "1", "devices", "How many devices the figure is of.", whole),
        Column("name", "", "name", "A rung, a plan or a ceiling.", width=16, priority=0),
        Column("before", "", "before", "What `ratio` is against.", width=14),
        Column("value", "", "value", "The figure, in `unit`.", number, 9, 0),
        Column("unit", "", "unit", "s, B/s or FLOP/s.", width=6, priority=0),
        Column("ratio", "1", "vs before", "Time of `before` / time of this one.", ratio, 9, 1),
        Column("ratio_lo", "1", "lo", "Lower end of its 99 % interval.", ratio, 7, 3),
        Column("ratio_hi", "1", "hi", "Upper end of its 99 % interval.", ratio, 7, 3),
        _VERDICT,
        _GATE,
        _GATE_ERROR,
        _STATUS,
    ),
)

SCHEMAS: tuple[Schema, ...] = (PHASES, COMPARE, WINDOWS, LADDER, ROUTING, SEARCH, CEILINGS, FLEET)
