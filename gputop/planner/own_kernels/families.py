"""What a kernel of the user's own is given: the arguments of a kernel of ours that computes the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gputop.planner.own_kernels.struct_fields import fields


@dataclass(frozen=True, slots=True)
class Family:
    """Phases whose kernels take the same struct."""

    name: str
    phases: tuple[str, ...]
    struct: str
    """Of kernels/include/args.cuh."""
    like: str
    """Our kernel of these phases whose arguments are given, one launch a product."""
    sizes: tuple[str, ...]
    """Fields of the struct that are sizes, and that rules and limits of a record may name."""
    divides: bool = False
    """Whether it has an inner axis that can be divided into parts."""

    def sizes_in(self, args: tuple[object, ...]) -> dict[str, int]:
        """Return the sizes in the arguments of one launch."""
        given = dict(zip(fields(self.struct), args, strict=True))
        return {name: value for name in self.sizes if isinstance(value := given[name], int)}


FAMILIES = (
    Family(
        "product",
        ("qkv", "wo", "w1", "w2", "head"),
        "GemmArgs",
        "gemm_coalesced",
        ("rows", "columns", "inner", "splits"),
        divides=True,
    ),
    Family(
        "layernorm",
        ("ln1", "ln2", "lnf"),
        "LayernormArgs",
        "layernorm_warp_per_row",
        ("rows", "columns"),
    ),
    Family(
        "attention",
        ("attention",),
        "AttentionArgs",
        "attention_parallel",
        ("batch", "seq", "heads", "d_head", "queries"),
    ),
    Family("embedding", ("embed",), "EmbedArgs", "embed_gather", ("rows", "seq", "columns")),
)


def family_of(phases: Iterable[str]) -> Family | None:
    """Return the family that all these phases belong to, or None."""
    wanted = set(phases)
    return next((family for family in FAMILIES if wanted <= set(family.phases)), None)


def all_phases() -> tuple[str, ...]:
    """Return every phase that a kernel of one's own can compute."""
    return tuple(phase for family in FAMILIES for phase in family.phases)
