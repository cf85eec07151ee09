"""Where a phase of the layers runs, with and without a pruned last layer."""

from __future__ import annotations

from gputop.plan.types import Dims, Site


def in_every_layer(phase: str, dims: Dims, pruned: bool, width: int, inner: int = 0) -> tuple[Site, ...]:
    """The phase at all rows; where pruned, in the last layer as `phase@1` at one row a sequence."""
    last = dims.layers - 1 if pruned else dims.layers
    return present(
        Site(phase, phase, dims.tokens, width, inner, (0, last)),
        Site(f"{phase}@1", phase, dims.batch, width, inner, (last, dims.layers)),
    )


def present(*sites: Site) -> tuple[Site, ...]:
    """Those that occur: a model of one layer has no layer before the last."""
    return tuple(site for site in sites if site.count)
