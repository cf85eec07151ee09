"""docs/counters.md, from what was counted and the shipped recordings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.counters.beside import BUSY, DRAM_WITHIN, L2_WITHIN, LEAST_SHARE, Beside, beside
from benchmarks.counters.counted_file import CountedFile
from docs.model import markdown_row
from gputop.results.recording import Recording
from gputop.util.units import percent, seconds, size_bytes

HEAD = (
    *("kernel", "site", "plan", "DRAM declared", "counted", "L2 declared", "counted"),
    *("warps an SM", "binds", "busiest"),
)


def counters_page(kept: CountedFile, recordings: Mapping[str, Recording]) -> str:
    """The page."""
    found = tuple(beside(kept.counted, recordings))
    driver = f", driver {kept.driver}" if kept.driver else ""
    lines = [
        "# What hardware counters say",
        "",
        f"{kept.device}{driver}, {kept.versions}, gputop {kept.gputop}, {kept.workload}: "
        f"{len(kept.counted)} launches counted by Nsight Compute in {seconds(kept.seconds)}, "
        f"{kept.time_utc}. The pass is run once for each group of counters, clocks and caches as in use.",
        "",
        f"Here stand our kernels that take {percent(LEAST_SHARE)} of a pass or more, each shape once, beside "
        "what the model declares of one instance and what it names in the shipped recordings. `busiest` is "
        "the resource that was in use for most of the time by the counters. Where the model names a wait (a "
        f"launch, a first load, an end), the counters agree if none was in use for {percent(BUSY)} of it.",
        "",
        *_summary(found),
        "",
        "A kernel that asks for the weights of a later product ahead is counted with them, and that product "
        "without. The first layer is what is counted, and nobody asked for the weights of its qkv and wo. "
        "Declared L2 bytes are what SMs take. Where only L2 was counted, it served less than that if it "
        "could answer several SMs at once, so a smaller figure there does not refute the declared one.",
        "",
        markdown_row(HEAD),
        markdown_row(["---"] * len(HEAD)),
        *(markdown_row(_cells(one)) for one in found),
        "",
        "Written by `make results` from docs/counters.json, which `python -m benchmarks.counters` writes."
        + (f" {kept.origin}" if kept.origin else ""),
    ]
    return "\n".join(lines) + "\n"


def _summary(found: Sequence[Beside]) -> Iterator[str]:
    for name, offs, within in (
        ("DRAM", [one.dram_off for one in found], DRAM_WITHIN),
        ("L2", [one.l2_off for one in found], L2_WITHIN),
    ):
        known = [off for off in offs if off is not None]
        near = sum(abs(off) <= within for off in known)
        yield f"- {name}: {near} of {len(known)} declared within {percent(within)} of what was counted."
    told = [one.agrees for one in found if one.agrees is not None]
    yield f"- What binds: the counters agree for {sum(told)} of {len(told)} kernels and shapes."
    other = sum(not one.same_build for one in found)
    if other:
        yield f"- {other} of {len(found)} were counted of another build than the one recorded."


def _cells(one: Beside) -> tuple[str, ...]:
    row, count = one.row, one.row.count or 1
    busy = one.busy
    busiest = max(busy, key=busy.__getitem__, default="")
    agrees = {True: "", False: " (differs)", None: ""}[one.agrees]
    return (
        f"`{row.kernel}`",
        f"`{row.phase}`",
        f"`{one.plan}`",
        size_bytes(None if row.dram_bytes is None else row.dram_bytes / count),
        _counted(one.values.get("dram_read_bytes"), one.dram_off, DRAM_WITHIN),
        size_bytes(None if row.l2_bytes is None else row.l2_bytes / count),
        _counted(one.l2_counted_bytes, one.l2_off, L2_WITHIN),
        percent(one.values.get("occupancy_achieved")),
        (row.binds or "") + agrees,
        f"{busiest} {percent(busy[busiest])}" if busiest else "",
    )


def _counted(value: float | None, off: float | None, within: float) -> str:
    """`31.6 MB`, with how far the declared figure is off where that is too far."""
    aside = f" ({100 * off:+.0f} %)" if off is not None and abs(off) > within else ""
    return size_bytes(value) + aside
