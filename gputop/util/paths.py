"""Where the kernel sources and this machine's caches lie."""

from __future__ import annotations

from pathlib import Path

import platformdirs

PACKAGE = Path(__file__).resolve().parents[1]


def checkout() -> Path | None:
    """The checkout that this package runs from, or None when it was installed from a wheel."""
    root = PACKAGE.parent
    return root if (root / "pyproject.toml").is_file() and (root / "phases").is_dir() else None


def kernels_dir() -> Path:
    """The folder of CUDA sources: the checkout's own, else the copy in the wheel."""
    root = checkout()
    return root / "kernels" if root else PACKAGE / "_data" / "kernels"


def cache_dir(name: str) -> Path:
    """A folder of this user's cache, which may not exist yet; anything in it may be deleted."""
    return platformdirs.user_cache_path("gputop") / name
