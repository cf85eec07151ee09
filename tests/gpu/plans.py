"""Workloads and plans that the GPU tests go through."""

from __future__ import annotations

from functools import cache

from gputop.catalog import Catalog
from gputop.errors import BadInput
from gputop.spec import Dims, Kernel, PlanRequest, Workload
from gputop.workloads import WORKLOADS

STANDARD = {workload.name: workload for workload in WORKLOADS}
BASES = ("naive", "coalesced", "oracle-tf32")
"""Rungs that take any kernel of theirs' layout and math at any shape."""


@cache
def catalog() -> Catalog:
    return Catalog.load()


def kernels() -> tuple[Kernel, ...]:
    """Every cuda kernel that computes one phase at a time."""
    return tuple(k for k in catalog().kernels.values() if k.backend == "cuda" and not k.fuses)


def edge_workloads(seed: int) -> tuple[Workload, ...]:
    """Shapes at the edges of every tile: rows 1, 127 and 129; widths and depths that no tile divides."""
    return (
        Workload("one-token", Dims(2, 64, 4, 256, 1, 50), seed),
        Workload("odd", Dims(2, 72, 3, 200, 127, 77), seed),
        Workload("one-more", Dims(2, 256, 4, 1024, 129, 256), seed),
        Workload("mini", STANDARD["mini"].dims, seed),
    )


def request_for(kernel: Kernel, dims: Dims, sets: tuple[tuple[str, str], ...]) -> PlanRequest | str:
    """A plan with the kernel at every site that it can serve, or why it can serve none of these shapes."""
    why = "no base plan"
    for base in BASES:
        request = PlanRequest(base, sets, tuple((phase, kernel.name) for phase in kernel.covers))
        try:
            catalog().resolve(request, dims, "cuda")
        except BadInput as error:
            why = str(error)
        else:
            return request
    return why
