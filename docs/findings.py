"""The campaign's findings, each with its figure there and how a recording answers whether it holds here.

A finding is read by a rule, which is printed beside it: whoever doubts the rule can apply another.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from docs.evidence import NOT_MEASURED, NOT_TOGETHER, Evidence, Pair
from docs.loops import K_MAJOR, WMMA
from gputop.cli.batch_sweep import forecast_ratio
from gputop.cli.tables.attribution import Saving, original_prediction, predicted, saved_time
from gputop.cli.tables.ladder_lines import score_lines
from gputop.planner.registry import Registry
from gputop.results.records import TOTAL_ROWS, Row
from gputop.util import units


@dataclass(frozen=True, slots=True)
class Reading:
    """What the recordings say of a finding."""

    ours: str = NOT_MEASURED
    held: bool | None = None
    """None: not decided by what was recorded."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One claim of the campaign."""

    rank: int | None
    """In its own ranking; None for one from its story."""
    claim: str
    theirs: str
    rule: str
    """When it counts as held here."""
    read: Callable[[Evidence], Reading]


def absent(evidence: Evidence, *rungs: str) -> Reading:
    """Not measured, and why not."""
    return Reading(why=evidence.missing(*rungs))


def faster(pair: Pair) -> bool | None:
    """Whether its interval lies above 1, by more than copies of one plan differ by where the pair was held to
    that; None where the interval is not known."""
    return None if pair.lo is None else pair.lo > 1 and pair.verdict in ("FASTER", None)


def _slower(pair: Pair) -> bool | None:
    """As `faster`, below 1."""
    return None if pair.hi is None else pair.hi < 1 and pair.verdict in ("SLOWER", None)


def _not(held: bool | None) -> bool | None:
    return None if held is None else not held


def _naive(evidence: Evidence) -> Reading:
    device = evidence.rows("naive").get("device")
    peak, bandwidth = evidence.ceiling("naive", "fp32"), evidence.ceiling("naive", "dram_read")
    if not (device and device.time_s and device.flops and device.dram_bytes and peak and bandwidth):
        return absent(evidence, "naive")
    compute, dram = device.flops / device.time_s / peak, device.dram_bytes / device.time_s / bandwidth
    ours = f"{units.percent(compute)} of measured fp32, {units.percent(dram)} of measured bandwidth"
    sites = [row for name, row in evidence.rows("naive").items() if name not in TOTAL_ROWS]
    asked = _added(row.l2_bytes for row in sites)
    if asked is not None:
        ours += f"; by its declared traffic it asks L2 for {units.size_bytes(asked)}"
        compulsory = _added(map(_compulsory_bytes, sites))
        if compulsory:
            ours += f", {units.ratio(asked / compulsory)} the compulsory {units.size_bytes(compulsory)}, "
            ours += "weights and activations once (`moved_over_compulsory`)"
    return Reading(ours, max(compute, dram) < 0.05, evidence.binds("naive"))


def _compulsory_bytes(row: Row) -> float | None:
    """What the column `moved_over_compulsory` divides by: a site's weights and activations, once."""
    return row.l2_bytes / row.moved_over_compulsory if row.l2_bytes and row.moved_over_compulsory else None


def _added(values: Iterable[float | None]) -> float | None:
    """Of all sites; None where one's is unknown, or there are none."""
    every = list(values)
    known = [value for value in every if value is not None]
    return sum(known) if known and len(known) == len(every) else None


def _layout(evidence: Evidence) -> Reading:
    gpu, cpu = evidence.pair("naive", "coalesced"), evidence.pair("cpu-loops", "cpu-transposed")
    if gpu is None and cpu is None:
        return absent(evidence, "naive", "coalesced")
    ours = f"GPU {gpu.text if gpu else NOT_MEASURED}, CPU {cpu.text if cpu else NOT_MEASURED}"
    if gpu is None:
        return Reading(ours, None, evidence.missing("naive", "coalesced"))
    steps = [e for e in evidence.entries() if e.kind == "ladder" and e.rung not in ("coalesced", "batch")]
    other = max((entry.ratio_before or 0.0 for entry in steps), default=0.0)
    return Reading(ours, gpu.ratio > other, evidence.binds("naive", "coalesced"))


def _tensor_cores(evidence: Evidence) -> Reading:
    pair = evidence.pair("oracle-fp32", "oracle-tf32")
    if pair is None:
        return absent(evidence, "oracle-fp32", "oracle-tf32")
    fp32 = evidence.ceiling("oracle-tf32", "fp32")
    tf32 = evidence.ceiling("oracle-tf32", "tf32_mma", "tf32_wgmma")
    if not fp32 or not tf32:
        return Reading(pair.text, None, "the pipes' own peaks were not measured")
    ours = f"{pair.text}, where the pipe's measured peak is {units.ratio(tf32 / fp32)} that of fp32"
    return Reading(ours, pair.ratio < tf32 / fp32 / 2, evidence.binds("oracle-fp32", "oracle-tf32"))


def _by_hand(evidence: Evidence) -> Reading:
    sites, rungs = ("wo", "w2"), ("wmma", "oracle-tf32")
    own, library = (evidence.rows(rung).get("w2") for rung in rungs)
    if own is None or library is None:
        return absent(evidence, *rungs)
    why = "; ".join(_loop_notes(evidence, own, library))
    both = evidence.together(*rungs)
    if both is None:
        apart = f"of {' and '.join(sites)} {NOT_TOGETHER}"
        return Reading("; ".join([apart, *all_products(evidence, *rungs)]), None, why)
    times = [[_instance_s(rows.get(site)) for site in sites] for rows in both]
    if None in times[0] or None in times[1]:
        return absent(evidence, *rungs)
    texts = [
        f"{site} {units.seconds(ours)} against {units.seconds(theirs)}"
        for site, ours, theirs in zip(sites, *times, strict=True)
    ]
    held = all(a < b for a, b in zip(*times, strict=True) if a and b)
    return Reading(f"{', '.join(texts)}, in one window", held, why)


def products_s(evidence: Evidence, rung: str) -> float | None:
    """Time of all of a rung's products in the ladder's one window."""
    entry = evidence.entry(rung)
    return entry.breakdown.gemm_s if entry is not None and entry.breakdown is not None else None


def all_products(evidence: Evidence, own: str, library: str) -> list[str]:
    """One line where the ladder knows both."""
    ours_s, theirs_s = products_s(evidence, own), products_s(evidence, library)
    if not ours_s or not theirs_s:
        return []
    times = f"{units.seconds(ours_s)} against {units.seconds(theirs_s)}"
    return [f"{times} for all products, the head's included, in the ladder's window"]


def _instance_s(row: Row | None) -> float | None:
    return row.time_s / row.count if row is not None and row.time_s and row.count else None


def _loop_notes(evidence: Evidence, own: Row, library: Row) -> Iterator[str]:
    """What our loop issues, what issuing it would take alone, and what the library runs instead."""
    yield (
        f"`{WMMA.entry}` issues {WMMA.instructions} instructions for {WMMA.math_count} {WMMA.math}: "
        f"fragments whose layout is not told cost {WMMA.word_loads} loads of a word and {WMMA.rounding} "
        f"instructions to round them, where `{K_MAJOR.entry}` issues {K_MAJOR.instructions} for "
        f"{K_MAJOR.math_count} {K_MAJOR.math} of twice the depth"
    )
    rate, time_s, count = evidence.issue_rate("wmma"), own.time_s, own.count
    if rate and time_s and count and own.flops:
        alone_s = own.issue_s or own.flops / WMMA.flops_per_instruction / rate
        yield f"issuing them alone takes {units.percent(alone_s / time_s)} of w2"
    if own.launches and library.launches and count:
        yield f"launches a product: {own.launches // count} against {library.launches // count}"
    if library.library_kernel:
        yield f"the library runs {', '.join(map(_short, library.library_kernel.split('; ')))} there"


def _short(symbol: str) -> str:
    """A library's kernel by the longest name in its mangled symbol: each stands behind its length."""
    names, at = [symbol], 0
    while symbol.startswith("_Z") and (length := re.compile(r"\d+").search(symbol, at)):
        name = symbol[length.end() : length.end() + int(length[0])]
        at = length.end() + (len(name) if name[:1].islower() else 0)
        names.append(name if name[:1].islower() else "")
    return f"`{max(names[1:] or names, key=len)}`"


def _assault(evidence: Evidence) -> Reading:
    pair = evidence.pair("algebra", "w2-assault")
    if pair is None:
        return absent(evidence, "algebra", "w2-assault")
    w2 = evidence.rows("w2-assault").get("w2")
    parts = [evidence.binds("algebra", "w2-assault")]
    if w2 is not None and w2.binds:
        shape = f", shape factor {units.number(w2.shape_factor)}" if w2.shape_factor else ""
        parts.append(f"at w2 itself {w2.binds} binds{shape}")
    return Reading(pair.text, abs(math.log(pair.ratio)) < 0.03, "; ".join(filter(None, parts)))


def _dispatch(evidence: Evidence) -> Reading:
    own, library = evidence.pair("algebra", "dispatch"), evidence.pair("oracle-tf32", "dispatch")
    if own is None or library is None:
        return absent(evidence, "algebra", "oracle-tf32", "dispatch")
    ours = f"{own.text} over all our own, {library.text} over all the library's"
    plan = evidence.plan("dispatch")
    libraries = {kernel.name for kernel in Registry.load().kernels.values() if kernel.library}
    theirs = [site for site, choice in plan.dispatch if choice.kernel in libraries] if plan else []
    notes = [f"the library's at {', '.join(theirs)}; ours elsewhere"] if theirs else []
    if not any(kernel.library for kernel in Registry.load().kernels_for("attention", "cuda")):
        notes.append(NO_LIBRARY_ATTENTION)
    both = (faster(own), faster(library))
    return Reading(ours, None if None in both else all(both), "; ".join(notes))


NO_LIBRARY_ATTENTION = (
    "attention has no library candidate, since cuBLAS and cuBLASLt have none: the frameworks' fused "
    "attention stands in the peers"
)


def _sources(evidence: Evidence) -> Reading:
    tried = [entry for entry in evidence.entries() if entry.hit is not None]
    shares = {
        source: sum(bool(e.hit) for e in tried if e.source == source) / count
        for source in ("sass", "intuition")
        if (count := sum(e.source == source for e in tried))
    }
    if not tried:
        return Reading()
    held = shares["sass"] > shares["intuition"] if len(shares) == 2 else None
    return Reading(" ".join(score_lines(evidence.entries())), held)


def _compiler(evidence: Evidence) -> Reading:
    against, capture = evidence.pair("torch-compile", "graph"), evidence.pair("flash", "graph")
    if against is None or capture is None:
        return absent(evidence, "torch-compile", "flash", "graph")
    maths = {name: plan.math for name in ("torch-compile", "graph") if (plan := evidence.plan(name))}
    why = ""
    if len(set(maths.values())) > 1:
        why = "not like for like: " + ", ".join(f"`{name}` computes in {m}" for name, m in maths.items())
    fp32 = evidence.pair("torch-compile,math=fp32", "graph,math=fp32")
    exact = f", {fp32.text} with both in fp32" if fp32 else ""
    ours = (
        f"`graph` {against.text} as fast as torch.compile{exact}; capture alone, kernels untouched, "
        f"{capture.text}"
    )
    return Reading(ours, faster(capture), why)


def _megakernel(evidence: Evidence) -> Reading:
    pair = evidence.pair("graph", "megakernel")
    if pair is None:
        return absent(evidence, "graph", "megakernel")
    notes = []
    for rung in ("graph", "megakernel"):
        row = evidence.rows(rung).get("w1")
        if row is not None and row.registers and row.occupancy_theoretical:
            notes.append(f"w1 in `{rung}`: {_occupancy(row)}")
    return Reading(
        pair.text, _slower(pair), "; ".join([*notes, *filter(None, [evidence.binds("megakernel")])])
    )


def _occupancy(row: Row) -> str:
    """What a block takes, the occupancy that leaves, and which of these holds it down."""
    takes = f"{row.registers} registers a thread"
    if row.smem_bytes:
        takes += f" and {units.size_bytes(row.smem_bytes)} of shared memory a block"
    limiter = f", limited by {row.occupancy_limiters}" if row.occupancy_limiters else ""
    return f"{takes}, occupancy {units.percent(row.occupancy_theoretical)}{limiter}"


def _pruning(evidence: Evidence) -> Reading:
    alone = evidence.pair("algebra,prune=off", "algebra") or evidence.pair("cpu-folded", "cpu-pruned")
    if alone is not None:
        return Reading(f"{alone.text}, with full keys and values", faster(alone))
    whole = evidence.pair("wmma", "algebra")
    if whole is None:
        return absent(evidence, "algebra")
    return Reading(NOT_MEASURED, None, f"only with folds and fused stores, {whole.text} together")


def _search(evidence: Evidence) -> Reading:
    return Reading(why="a recording holds no search")


def _small_tiles(evidence: Evidence) -> Reading:
    pair = evidence.pair("register-tiled", "small-tiles")
    if pair is None:
        return absent(evidence, "register-tiled", "small-tiles")
    return Reading(pair.text, _not(faster(pair)), evidence.binds("register-tiled", "small-tiles"))


def _portfolio(evidence: Evidence) -> Reading:
    entries = [evidence.entry(rung) for rung in ("dispatch", "cublaslt", "flash", "graph")]
    known = [entry for entry in entries if entry is not None and entry.device_s]
    if len(known) < len(entries):
        return absent(evidence, "dispatch", "cublaslt", "flash", "graph")
    pairs = list(pairwise(known))
    saved = Saving.total([saved_time(before, entry) for before, entry in pairs]).value_s
    expected = Saving.total([predicted(before, entry) for before, entry in pairs]).value_s
    first = Saving.total([original_prediction(before, entry) for before, entry in pairs]).value_s
    if saved is None or not expected or not first:
        return Reading()
    ours = f"predicted {units.seconds(expected)}, saved {units.seconds(saved)}"
    revised = [f"`{entry.rung}`" for _, entry in pairs if entry.foretold is not None]
    near, first_near = (abs(saved / value - 1) < 0.25 for value in (expected, first))
    if not revised:
        return Reading(ours, near)
    ours += f"; first predicted {units.seconds(first)}"
    why = f"what was predicted of {' and '.join(revised)} was revised before the last measurement"
    if near == first_near:
        return Reading(ours, near, why)
    return Reading(ours, None, f"{why}; by {'the revised' if near else 'the first'} figures alone it holds")


def _tournament(evidence: Evidence) -> Reading:
    pair = evidence.pair("graph", "tournament")
    if pair is None:
        return absent(evidence, "graph", "tournament")
    how = "each candidate was raced with its weight in L2, where a pass reads it from DRAM"
    return Reading(pair.text, abs(math.log(pair.ratio)) < 0.03, how)


def _batch(evidence: Evidence) -> Reading:
    sweep = evidence.batches()
    if len(sweep) < 2:
        return absent(evidence, "batches")
    best = max(sweep, key=lambda entry: entry.ratio_first or 0.0)
    ours = f"{units.ratio(best.ratio_first)} the rate of batch {sweep[0].batch} at batch {best.batch}"
    forecast = forecast_ratio(sweep[0], best)
    if forecast is None or best.ratio_first is None:
        return Reading(ours, None, "the terms of these passes are not known, so nothing was forecast")
    near = abs(math.log(best.ratio_first / forecast)) < math.log(1.25)
    shape = f"by its shape alone {units.ratio(sweep[0].shape_tax)}"
    return Reading(f"{ours}; forecast by the terms at that batch {units.ratio(forecast)}, {shape}", near)


FINDINGS = (
    Finding(
        1, "Nothing bound the naive port: it asked for bytes that the problem does not have.",
        "0.8 % of compute, 0.5 % of bandwidth", "both shares are below 5 %", _naive,
    ),
    Finding(
        2, "One bit of layout is the largest single step on a GPU; a CPU forgives it.",
        "5.3× on the GPU, 1.24× on the CPU", "no other change of the plan gains more", _layout,
    ),
    Finding(
        3, "Tensor cores give a small part of their headline where rows are few.",
        "1.22× where 4× is advertised", "less than half of the pipes' measured ratio", _tensor_cores,
    ),
    Finding(
        4, "Rewriting w2's instructions changes nothing: its shape sets the price.",
        "no change, even by a build that computed nonsense", "within 3 % of no change", _assault,
    ),
    Finding(
        5, "The fastest pass is a table of who is better where, ours or the library.",
        "2.27 ms, ahead of both parents", "known to be faster than both parents", _dispatch,
    ),
    Finding(
        6, "Predictions from counted instructions hold, those from intuition do not.",
        "2 of 2 against 2 of 11", "the share of hits is larger", _sources,
    ),
    Finding(
        7, "What a compiler led by was organisation, not kernels.",
        "0.55 ms, all of it launches and fusion", "capture alone is known to be faster", _compiler,
    ),
    Finding(
        8, "A megakernel runs at the register count of its hungriest phase, and loses.",
        "1.99 ms against 1.60; 2 blocks an SM instead of 4", "known to be slower than the graph", _megakernel,
    ),
    Finding(
        9, "Computing the last layer for the last token only is what a KV cache does.",
        "part of the algebra, without a figure of its own", "known to be faster, changed alone", _pruning,
    ),
    Finding(
        10, "The search's own closing check found the bias in its selection.",
        "0.009 ± 0.002 ms, first told eight times as large", "not decided by a recording", _search,
    ),
    Finding(
        None, "Tensor cores by hand win where the library's tiles are too few.",
        "parity or better; ahead on wo and w2", "both take less time than the library's", _by_hand,
    ),
    Finding(
        None, "Smaller tiles do not feed narrow products: warps in flight stay the same.",
        "0.94×", "not known to be faster", _small_tiles,
    ),
    Finding(
        None, "Single predictions err, and their sum does not.",
        "0.67 ms predicted of three changes, 0.66 ms saved", "the sums agree within 25 %", _portfolio,
    ),
    Finding(
        None, "The library's heuristic already chooses the fastest of its candidates.",
        "no change", "within 3 % of no change", _tournament,
    ),
    Finding(
        None, "Batching repays the tax that the shape of one sequence costs.",
        "1.75×, within the 1.5 to 1.8× forecast", "within 25 % of the forecast", _batch,
    ),
)  # fmt: skip
