"""Which plans are measured on each backend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gputop.plan.types import Layout


@dataclass(frozen=True, slots=True)
class Subjects:
    """The plans of one backend."""

    plan: str
    """The one that most windows measure."""
    other: str
    """Of another library: a visit to it must leave no trace."""
    layout: Layout
    """How `plan` stores weights."""
    parts: tuple[str, str] | None = None
    """One product in two numbers of parts; None where no kernel divides any."""


SUBJECTS: Mapping[str, Subjects] = {
    "cuda": Subjects(
        "graph", "oracle-tf32", "row", ("graph,wo:gemm_warpgroup_56/4", "graph,wo:gemm_warpgroup_56/8")
    ),
    "cpu": Subjects("cpu-blas", "cpu-loops", "row"),
}
