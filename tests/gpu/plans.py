"""Workloads and plans that the GPU tests go through."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import pytest

from gputop.model.workloads import WORKLOADS
from gputop.plan.types import Dims, Kernel, KernelChoice, Layout, Math, PlanRequest, Workload
from gputop.planner.resolver import Resolver
from gputop.results.records import Gate
from gputop.session.session import Session
from gputop.util.errors import UsageError

STANDARD = {workload.name: workload for workload in WORKLOADS}
BASE = "oracle-tf32"
"""A rung whose other kernels take any shape."""
BF16_BASE = "bf16"
"""The one of kernels that store bf16: none of them takes any shape."""
PRODUCTS = ("qkv", "wo", "w1", "w2", "head")
ANY_SHAPE: dict[Layout, str] = {"row": "cublas", "transposed": "gemm_one_row"}
"""Products where the kernel that is tried can't serve; ours writes bias, activation and residual itself."""
MATHS: tuple[Math, ...] = ("fp32", "tf32", "bf16")

Sets = tuple[tuple[str, str], ...]
ALONE: Sets = ()
PAIR: Sets = (("batch", "2"),)
FUSED: Sets = (*PAIR, ("fused_stores", "on"), ("fused_qkv", "on"), ("prune", "on"))
MANY: Sets = (("batch", "48"), ("fused_stores", "on"), ("fused_qkv", "on"))
FOLDED: Sets = (*FUSED, ("fold", "on"))


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes that are tried, and with which toggles."""

    name: str
    dims: Dims
    sets: tuple[Sets, ...]
    """Tried in order: the first that a kernel can be had with."""

    def workload(self, seed: int) -> Workload:
        return Workload(self.name, self.dims, seed)


SHAPES = (
    Shape("mini", STANDARD["mini"].dims, (ALONE, FOLDED)),
    Shape("tiles", Dims(2, 384, 6, 1152, 64, 384), (FOLDED,)),
    Shape("one-token", Dims(2, 64, 4, 256, 1, 50), (FOLDED, PAIR)),
    Shape("odd", Dims(2, 72, 3, 200, 127, 77), (PAIR,)),
    Shape("one-more", Dims(2, 256, 4, 1024, 129, 256), (FUSED, PAIR)),
    Shape("long", Dims(2, 256, 4, 1024, 320, 64), (FOLDED, PAIR)),
    Shape("wide-head", Dims(2, 256, 2, 512, 200, 64), (FUSED, PAIR)),
    Shape("many-rows", STANDARD["mini"].dims, (MANY, PAIR)),
    Shape(
        "gelu", replace(STANDARD["mini"].dims, vocab=257, activation="gelu", tied_head=True), (FOLDED, PAIR)
    ),
    Shape("gelu-new", replace(STANDARD["mini"].dims, vocab=257, activation="gelu_new"), (FOLDED, PAIR)),
)
"""Two of exact multiples of every tile, with parts of every number; then 1, 127 and 129 rows a sequence, and
widths and depths that no tile divides; then sequences that go round a ring of key tiles several times, in
multiples of every tile and not, the latter with heads of 128; then so many rows that blocks which stay have
several tiles each; then the other activation functions, with words that no tile divides."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A kernel in a math and a layout that it serves."""

    kernel: Kernel
    splits: int | None
    """Into how many parts it divides the inner axis; None if it divides nothing."""
    math: Math
    layout: Layout

    @property
    def choice(self) -> KernelChoice:
        return KernelChoice(self.kernel.name, self.splits)

    @property
    def id(self) -> str:
        return f"{self.choice}-{self.math}-{self.layout}"


def skip_refused(session: Session, request: PlanRequest) -> None:
    """Skips, with the reason, what is refused before it is prepared: what goes wrong later is a failure."""
    if why := session.refusal(request):
        pytest.skip(why)


def gate_of(session: Session, request: PlanRequest) -> Gate:
    """Both gates of a plan that is not refused."""
    skip_refused(session, request)
    return session.check(request)


@cache
def catalog() -> Resolver:
    return Resolver.load()


@cache
def trials() -> tuple[Trial, ...]:
    """Every cuda kernel in the fewest and in the most parts: of products each math and layout; to the others
    these are all one."""
    found = []
    for kernel in catalog().kernels.values():
        if kernel.backend != "cuda":
            continue
        pairs = [(m, layout) for m in MATHS if m in kernel.maths for layout in _layouts(kernel, m)]
        product = set(kernel.covers) & set(PRODUCTS)
        ends = dict.fromkeys((*kernel.splits[:1], *kernel.splits[-1:])) or (None,)
        found += [
            Trial(kernel, splits, math, layout)
            for splits in ends
            for math, layout in (pairs if product else pairs[-1:])
        ]
    return tuple(found)


def _layouts(kernel: Kernel, math: Math) -> tuple[Layout, ...]:
    """The layouts in which there is a base for the kernel: products in bf16 read one."""
    return ("row",) if math == "bf16" else kernel.layouts


def request_for(trial: Trial, shape: Shape) -> PlanRequest | str:
    """A plan with the kernel at every site of this shape that it can serve, or why it can serve none."""
    asked = [_request(trial, shape.dims, sets) for sets in shape.sets]
    return next((request for request in asked if not isinstance(request, str)), asked[0])


def _request(trial: Trial, dims: Dims, sets: Sets) -> PlanRequest | str:
    sets = (("math", trial.math), ("layout", trial.layout), *sets)
    any_shape = KernelChoice(ANY_SHAPE[trial.layout])
    # A fused kernel serves its products itself: a plan that names others for them is refused.
    fused = trial.kernel.covers if trial.kernel.fuses else ()
    rung, base = BASE, {phase: any_shape for phase in PRODUCTS if phase not in fused}
    if trial.math == "bf16":
        rung, base = BF16_BASE, {}
    pruned = ("prune", "on") in sets
    sites = catalog().sites(dims, pruned)
    phases = trial.kernel.covers[:1] if trial.kernel.fuses else trial.kernel.covers
    uses: dict[str, KernelChoice] = {}
    why = ""
    for site in (site for site in sites if site.phase in phases):
        wanted = uses | {site.name: trial.choice}
        if site.name == site.phase in base:
            # The phase's name stands for all its sites: each of the others has its own turn.
            wanted |= {s.name: any_shape for s in sites if s.phase == site.phase != s.name}
        try:
            catalog().resolve(PlanRequest(rung, sets, tuple((base | wanted).items())), dims, "cuda")
        except UsageError as error:
            why = str(error)
        else:
            uses = wanted
    return PlanRequest(rung, sets, tuple((base | uses).items())) if uses else why
