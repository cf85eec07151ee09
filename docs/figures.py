"""The figures of docs/findings.md, computed from the shipped recordings, by the title of their section.

The page is written by hand. A test holds every figure in it to these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from docs.loops import K_MAJOR, WMMA
from gputop.results.ladder import LadderEntry
from gputop.results.prediction_score import prediction_scores
from gputop.results.recording import Recording
from gputop.results.records import TOTAL_ROWS, Comparison, Delta, Row
from gputop.util.units import percent, ratio, ratio_within, scientific, seconds, size_bytes

FULL, FP32, PRODUCTS, LATEST = "h200", "h200-fp32", "h200-products", "h200-copy-engine"


def figures(recordings: Mapping[str, Recording]) -> dict[str, tuple[str, ...]]:
    """Title of a section -> what it says, each as it is written there."""
    kept, fp32, latest = recordings[FULL], recordings[FP32], recordings[LATEST]
    graph, compiled = entry(kept, "graph"), entry(kept, "torch-compile")
    naive, hopper = rows(kept, "naive"), rows(kept, "hopper")
    assault, raced = compared(kept, "algebra", "w2-assault"), compared(kept, "graph", "tournament")
    tensor, forked = compared(kept, "oracle-fp32", "oracle-tf32"), compared(kept, "tiled", "register-tiled")
    early, clean = compared(kept, "graph", "dependent"), compared(latest, "graph", "dependent")
    asked = total(row.l2_bytes for row in naive.values() if row.phase not in TOTAL_ROWS)
    device = naive["device"]
    scores = prediction_scores(kept.ladder.entries if kept.ladder else ())
    assert scores is not None
    batches = kept.batches.entries if kept.batches else ()
    return {
        "Nothing bound the naive port": (
            percent(number(device.flops) / number(device.time_s) / ceiling(kept, "fp32")),
            percent(number(device.dram_bytes) / number(device.time_s) / ceiling(kept, "dram_read")),
            size_bytes(asked),
        ),
        "One bit of layout is the largest single step": (against_before(entry(kept, "coalesced")),),
        "Tensor cores give little where rows are few": (
            written(whole(tensor)),
            *(ratio(at(tensor, site).ratio) for site in ("qkv", "wo", "w1", "w2")),
            ratio(ceiling(kept, "tf32_wgmma") / ceiling(kept, "fp32")),
        ),
        "Rewriting w2 did change it, by less than a pass shows": (
            written(at(assault, "w2")),
            written(whole(assault)),
        ),
        "The library's first choice was not the fastest": (written(at(raced, "qkv")), written(whole(raced))),
        "A table of who is better where beat both parents": (
            against_before(entry(kept, "dispatch")),
            seconds(entry(kept, "dispatch").device_s),
            seconds(entry(kept, "hopper").device_s),
        ),
        "The compiler did not lead, and what it lost was in its kernels": (
            seconds(graph.device_s),
            seconds(compiled.device_s),
            *(
                seconds(number(of(compiled)) - number(of(graph)))
                for of in (attention_s, gemm_s, pointwise_s, gap_s)
            ),
        ),
        "The megakernel loses to the graph": (
            against_before(entry(kept, "megakernel")),
            size_bytes(number(rows(kept, "megakernel")["w1"].smem_bytes)),
            percent(rows(kept, "megakernel")["w1"].occupancy_theoretical),
        ),
        "Kernels that start early close the gaps": (
            written(whole(early)),
            written(whole(clean)),
            *(seconds(gap_s(entry(latest, rung))) for rung in ("graph", "dependent")),
        ),
        "Register tiles split the products in two": tuple(
            written(at(forked, site)) for site in ("qkv", "wo", "w1", "w2")
        ),
        "Dividing the inner axis feeds a starved product": (
            seconds(rows(kept, "register-tiled")["w2"].time_s),
            seconds(rows(kept, "split-k")["w2"].time_s),
        ),
        "Smaller tiles do not feed narrow products": (against_before(entry(kept, "small-tiles")),),
        "Attention by warps takes less than half of its phase": (
            seconds(rows(kept, "split-k")["attention"].time_s),
            seconds(rows(kept, "attention")["attention"].time_s),
        ),
        "fp32 products written against their machine code are ahead": (
            seconds(gemm_s(entry(kept, "sass-fp32"))),
            seconds(gemm_s(entry(kept, "oracle-fp32"))),
        ),
        "Tensor cores by hand win, though not by the first way": (
            *(
                seconds(a_layer(rows(recordings[PRODUCTS], plan)[site]))
                for site in ("wo", "w2")
                for plan in ("wmma", "oracle-tf32")
            ),
            *(seconds(a_layer(rows(kept, "graph")[site])) for site in ("wo", "w2")),
            f"{WMMA.instructions} instructions",
            f"for {WMMA.math_count} of the tensor core's",
            f"{K_MAJOR.instructions} for {K_MAJOR.math_count}",
        ),
        "Folding changes the error, and for the better": (
            scientific(entry(kept, "wmma").gate.pass_error),
            scientific(entry(kept, "algebra").gate.pass_error),
        ),
        "Eager is as slow as its host in every math": (
            *(seconds(entry(kept, "torch-eager").wall_s), seconds(entry(kept, "torch-eager").device_s)),
            seconds(entry(fp32, "torch-eager,math=fp32").wall_s),
            seconds(entry(fp32, "torch-eager,math=fp32").device_s),
        ),
        "The competitor was forecast, and the forecast missed": tuple(
            text
            for found, rung in (
                (kept, "torch-eager"),
                (kept, "torch-compile"),
                (fp32, "torch-eager,math=fp32"),
                (fp32, "torch-compile,math=fp32"),
            )
            for text in (seconds(entry(found, rung).forecast_s), seconds(entry(found, rung).device_s))
        ),
        "Launches take a share of the wall that a graph gives back": (
            seconds(entry(kept, "flash").wall_s),
            seconds(graph.wall_s),
            ratio(number(entry(kept, "flash").wall_s) / number(graph.wall_s)),
            against_before(graph),
        ),
        "Batching repays launches and latency more than shape": (
            ratio(batches[-1].ratio_first),
            ratio(batches[0].shape_tax),
        ),
        "The fastest pass of the newest rungs": (
            seconds(entry(latest, "attention-tma").device_s),
            seconds(entry(latest, "torch-compile").device_s),
            seconds(entry(latest, "attention-tma").wall_s),
            seconds(entry(latest, "torch-compile").wall_s),
            seconds(hopper["attention"].time_s),
            seconds(rows(kept, "graph")["attention"].time_s),
        ),
        "Predictions did better than a guess that never changes": (
            f"{scores.first:.2f}",
            f"{scores.constant:.2f}",
            f"{scores.rungs} rungs",
        ),
    }


def entry(kept: Recording, rung: str) -> LadderEntry:
    """The rung in the recording's ladder. LookupError if it has none."""
    entries = kept.ladder.entries if kept.ladder else ()
    return next(found for found in entries if found.rung == rung)


def rows(kept: Recording, plan: str) -> dict[str, Row]:
    """The phase table of the plan's first window with one, by site."""
    lanes = (window.lane("current") for window in kept.windows)
    lane = next(lane for lane in lanes if lane is not None and lane.plan == plan and lane.rows)
    return {row.phase: row for row in lane.rows}


def a_layer(row: Row) -> float:
    """Time of one layer's instance of a site."""
    return number(row.time_s) / number(row.count)


def compared(kept: Recording, a: str, b: str) -> Comparison:
    """The first window that pairs two plans."""
    found = (window.comparison for window in kept.windows)
    return next(pair for pair in found if pair is not None and (pair.plan_a, pair.plan_b) == (a, b))


def whole(pair: Comparison) -> Delta:
    """The whole pass on the device."""
    delta = pair.get("device")
    assert delta is not None
    return delta


def at(pair: Comparison, site: str) -> Delta:
    """One site."""
    delta = pair.at(site)
    assert delta is not None
    return delta


def written(delta: Delta) -> str:
    """`1.08× [1.06, 1.10]`."""
    number(delta.ratio)
    return ratio_within(delta.ratio_interval)


def against_before(found: LadderEntry) -> str:
    """A rung against the one that it changes, as `written`."""
    number(found.ratio_before)
    return ratio_within(found.ratio_before_interval)


def ceiling(kept: Recording, name: str) -> float:
    """A measured peak, in its unit."""
    return number(kept.header.ceilings.get(name))


def number(value: float | None) -> float:
    """A figure that the recording must hold."""
    assert value is not None
    return float(value)


def total(values: Iterable[float | None]) -> float:
    """The sum of figures that must all be known."""
    return sum(map(number, values))


def attention_s(found: LadderEntry) -> float | None:
    return found.breakdown.attention_s if found.breakdown else None


def gemm_s(found: LadderEntry) -> float | None:
    return found.breakdown.gemm_s if found.breakdown else None


def pointwise_s(found: LadderEntry) -> float | None:
    return found.breakdown.pointwise_s if found.breakdown else None


def gap_s(found: LadderEntry) -> float | None:
    return found.breakdown.gap_s if found.breakdown else None
