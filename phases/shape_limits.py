"""What a GEMM of whole tiles asks of sizes, in words where one of them doesn't suit."""

from __future__ import annotations

from collections.abc import Iterable

from gputop.plan.types import Site


def not_multiple_of(site: Site, sizes: Iterable[tuple[str, int, int]]) -> str | None:
    """Return why a site does not suit: the first (what, size, multiple) that is not one; else None."""
    return next(
        (
            f"it needs {what} a multiple of {multiple}, and {site.name} has {size}"
            for what, size, multiple in sizes
            if size % multiple
        ),
        None,
    )


def too_short(site: Site, splits: int, depth: int) -> str | None:
    """Return why not all of `splits` parts of the inner axis are at least `depth` long, or None."""
    if site.inner >= splits * depth:
        return None
    return f"it divides the inner axis by {splits}, and {site.name} has {site.inner}"
