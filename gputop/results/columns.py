"""The columns of the phase table, `gputop.phases/1`: one record each, in the order of the file.

The screen, the CSV and JSON files and `gputop list columns` all iterate `COLUMNS`; a column is added
by a field of `results.Row` and a record at the end of this table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gputop.util.units import (
    flop,
    hertz,
    number,
    percent,
    ratio,
    scientific,
    seconds,
    signed_seconds,
    size_bytes,
    text,
    watts,
    whole,
    yes_no,
)

FILE_ONLY = None
"""The `priority` of a column that no narrow screen shows by itself."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of one table."""

    key: str
    """Its name in files, and the row's attribute."""
    unit: str
    """Of the value in files: `s B FLOP Hz W °C`, `1` for a plain number, empty for text."""
    title: str
    """Its name on screen."""
    doc: str
    show: Callable[[Any], str] = text
    """The value as a person reads it; takes None."""
    width: int = 9
    """Cells on screen, the gap to the next column not counted."""
    priority: int | None = FILE_ONLY
    """0 stays on any screen; the higher, the sooner a narrow one drops it."""

    def cell(self, row: object) -> str:
        """This column of `row`, for a screen."""
        return self.show(getattr(row, self.key))


COLUMNS: tuple[Column, ...] = (
    Column("schema", "", "schema", "Name and version of this table."),
    Column("time_utc", "", "time", "When the window began, ISO 8601 in UTC.", width=20),
    Column("window", "1", "window", "Number of the window; rows of two windows are not compared.", whole),
    Column("samples", "1", "samples", "Samples of the pass taken in the window.", whole),
    Column("backend", "", "backend", "What measured: cuda, cpu or replay."),
    Column("device", "", "device", "The device's name.", width=24),
    Column("driver", "", "driver", "The device driver's version."),
    Column("workload", "", "workload", "Name of the model's sizes."),
    Column("batch", "1", "batch", "Sequences in one pass.", whole),
    Column("seq", "1", "seq", "Tokens in a sequence.", whole),
    Column("rung", "", "rung", "The named plan that this one starts from.", width=14),
    Column("plan", "", "plan", "The plan as `gputop compare` spells it.", width=24),
    Column("phase", "", "phase", "The phase at its site, or fused ones; or a total.", width=10, priority=0),
    Column("count", "1", "n", "Instances in one pass.", whole, width=3, priority=8),
    Column("kernel", "", "kernel", "Kernel chosen at this site.", width=18, priority=5),
    Column("library_kernel", "", "library kernel", "Kernel that the library ran, by its own name.", width=24),
    Column("math", "", "math", "Number format of the products: fp32, tf32 or bf16."),
    Column("launches", "1", "launches", "Kernel launches in one pass.", whole),
    Column(
        "time_s",
        "s",
        "time",
        "Time in one pass, all instances: median of samples, a phase's each its passes' lower quartile.",
        seconds,
        8,
        0,
    ),
    Column("time_mad_s", "s", "± mad", "Median absolute deviation of that time.", seconds, 8, 11),
    Column("timer", "", "timer", "What took the time: perf_counter, event, cupti, repeat or stamp."),
    Column("cache_state", "", "cache", "State of the caches when it ran: in-situ, as within the pass."),
    Column("gap_s", "s", "gap", "Idle time before its launches, no part of time_s.", seconds),
    Column("overlap_s", "s", "overlap", "Time beside the launch before, no part of time_s.", seconds),
    Column("submit_s", "s", "submit", "Host time to enqueue one pass.", seconds),
    Column("floor_s", "s", "floor", "Floor of this plan's work: max of compute and dram.", seconds, 8, 6),
    Column("floor_term", "", "by", "The term that makes the floor: compute or dram.", width=7, priority=12),
    Column("efficiency", "1", "of floor", "floor_s / time_s; above 1 the status says why.", percent, 8, 1),
    Column(
        "binds",
        "",
        "binds",
        "The term with the largest share; unknown if over half is unexplained. In a pass gaps are launch.",
        width=8,
        priority=3,
    ),
    Column(
        "runner_up",
        "",
        "then",
        "The term with the second largest share; of unknown the largest.",
        width=8,
        priority=13,
    ),
    Column(
        "compute_s",
        "s",
        "compute",
        "FLOPs of the busiest SM / its share of the pipe's measured rate.",
        seconds,
    ),
    Column("dram_s", "s", "dram", "Bytes from memory / measured bandwidth.", seconds),
    Column("l2_s", "s", "l2", "L2: the busiest SM's bytes at its rate, or all bytes at all SMs'.", seconds),
    Column("l1_s", "s", "l1", "L1 and shared memory of the busiest SM, 128 bytes a cycle.", seconds),
    Column(
        "issue_s",
        "s",
        "issue",
        "Instructions of the busiest SM, or of one warp that waits for each.",
        seconds,
    ),
    Column("latency_s", "s", "latency", "Waits for memory in a row, after the first.", seconds),
    Column("launch_s", "s", "launch", "Launches x their measured cost, less gap_s.", seconds),
    Column(
        "shape_factor",
        "1",
        "shape",
        "Padded / real outputs x blocks of the busiest SM / blocks of the mean one.",
        ratio,
        7,
        14,
    ),
    Column("unexplained_s", "s", "unexplained", "Time that no term accounts for.", seconds),
    Column("flops", "FLOP", "flops", "Floating-point operations of the work.", flop),
    Column("dram_bytes", "B", "bytes", "Bytes that the work must move to and from memory.", size_bytes),
    Column("l2_bytes", "B", "l2 bytes", "Bytes that the kernel asks of L2.", size_bytes),
    Column("grid", "", "grid", "Blocks of a launch.", width=12),
    Column("block", "", "block", "Threads of a block.", width=12),
    Column("registers", "1", "regs", "Registers of a thread.", whole),
    Column("smem_bytes", "B", "shared", "Shared memory of a block, static and dynamic.", size_bytes),
    Column("occupancy_theoretical", "1", "occupancy", "Warps an SM can hold / its most.", percent, 9, 9),
    Column("occupancy_limiters", "", "limited by", "What holds the occupancy down, ties included.", width=16),
    Column("occupancy_achieved", "1", "achieved", "Mean warps an SM held / its most, counted.", percent),
    Column("waves", "1", "waves", "Blocks / blocks that the device holds at once.", number),
    Column("warps_in_flight", "1", "warps", "Warps on the whole device at once.", number),
    Column("gate", "", "gate", "Outcome of the correctness check; no pass, no time.", width=14),
    Column("gate_error", "1", "error", "Relative error of the pass against float64, worst.", scientific),
    Column("logit0", "1", "logit 0", "First logit of the last token.", number),
    Column("logit1", "1", "logit 1", "Second logit of the last token.", number),
    Column("tokens_per_s", "1/s", "tokens/s", "batch x seq / time of the pass.", number),
    Column("sm_clock_hz", "Hz", "clock", "SM clock right after sampling.", hertz),
    Column("power_w", "W", "power", "Board power right after sampling.", watts),
    Column("throttle", "", "throttle", "Reasons seen for a lowered clock.", width=16),
    Column("pinned_plan", "", "against", "The plan paired with this one in the window.", width=24),
    Column(
        "delta_s",
        "s",
        "delta",
        "Time of this plan - the pinned one's, paired: the site's, else of the sites that the status names;"
        " a sequence's where their batches differ.",
        signed_seconds,
        9,
        4,
    ),
    Column("delta_lo_s", "s", "delta lo", "Lower end of its 99 % interval.", signed_seconds),
    Column("delta_hi_s", "s", "delta hi", "Upper end of its 99 % interval.", signed_seconds),
    Column("ratio", "1", "ratio", "The pinned plan's time / this one's.", ratio, 7, 10),
    Column("verdict", "", "verdict", "FASTER, SLOWER, SAME or UNRESOLVED.", width=10),
    Column("cubin", "", "cubin", "Hash of the code that ran.", width=12),
    Column("versions", "", "versions", "gputop and the libraries that took part.", width=24),
    Column("status", "", "status", "Why a field is empty, and what else to know of the row.", width=24),
    Column("question_floor_s", "s", "question", "Floor of the question, which no plan changes.", seconds),
    Column("host_bound", "", "host-bound", "Whether the host sets the wall time.", yes_no),
    Column("kind", "", "kind", "What its kernels do: gemm, attention, pointwise or other.", width=9),
    Column(
        "spill_bytes", "B", "spilled", "Registers a thread spills: stores and loads in its code.", size_bytes
    ),
    Column("moved_over_compulsory", "1", "moved", "Bytes asked of L2 / weights and activations once.", ratio),
    Column("library_kernel_demangled", "", "library kernel", "library_kernel as declared in C++.", width=24),
    Column("first_load_s", "s", "first load", "Until the first operand has come, in each launch.", seconds),
    Column("code_s", "s", "code", "Machine code / the rate at which an SM fetches it.", seconds),
    Column("end_s", "s", "end", "Parts added, clusters' exchange, the last store.", seconds),
    Column("modelled_s", "s", "modelled", "The terms added up, as far as they are known.", seconds),
    Column("binds_share", "1", "share", "What binds / time_s; of unknown the unexplained part.", percent),
    Column(
        "reach_s", "s", "reach", "The least that launches which wait for each other can take.", seconds, 8, 7
    ),
    Column("occupancy_grid", "1", "given", "Warps that this grid gives an SM / its most.", percent),
    Column("reach_efficiency", "1", "of reach", "reach_s / (time_s + gap_s).", percent, 8, 2),
)

BY_KEY = {column.key: column for column in COLUMNS}
