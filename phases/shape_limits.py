"""What a GEMM of whole tiles asks of sizes, in words where one of them doesn't suit."""

from __future__ import annotations

from collections.abc import Iterable

from gputop.plan.types import Site


def not_multiple_of(name: str, site: Site, sizes: Iterable[tuple[str, int, int]]) -> str | None:
    """Why kernel `name` can't serve the site: the first (what, size, multiple) that is not one; else None."""
    return next(
        (
            f"{name} needs {what} a multiple of {multiple}, and {site.name} has {size}"
            for what, size, multiple in sizes
            if size % multiple
        ),
        None,
    )


def too_short(name: str, site: Site, splits: int, depth: int) -> str | None:
    """Why not every one of `splits` parts of the inner axis is `depth` long at least, or None."""
    if site.inner >= splits * depth:
        return None
    return f"{name} divides the inner axis by {splits}, and {site.name} has {site.inner}"
