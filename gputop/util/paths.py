"""Where the kernel sources, this user's caches and logs lie."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import platformdirs

NOWHERE = Path(os.devnull) / "gputop"
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
    """Return a folder of this user's cache, which may not exist yet; anything in it may be deleted.

    Without a home folder it is `NOWHERE`, below which no file can be read or written.
    """
    return (_user_folder(platformdirs.user_cache_path) or NOWHERE) / name


def data_dir() -> Path | None:
    """Return the folder of what this user keeps: saved rungs, journals of searches, windows of pairs.

    It may not exist yet. None without a home folder.
    """
    return _user_folder(platformdirs.user_data_path)


def log_dir() -> Path | None:
    """Return the folder of this user's logs, which may not exist yet; None without a home folder."""
    return _user_folder(platformdirs.user_log_path)


def config_dir() -> Path | None:
    """Return the folder of this user's settings, which may not exist yet; None without a home folder."""
    return _user_folder(platformdirs.user_config_path)


def can_cache() -> bool:
    """Return whether this user has a home folder, or names another place for caches."""
    return _user_folder(platformdirs.user_cache_path) is not None


def why_no_cache() -> str:
    """Return why nothing is cached for this user, as a sentence; nothing if something can be."""
    folder = _user_folder(platformdirs.user_cache_path)
    if folder is None:
        return "There is no home folder (no HOME, no passwd entry): nothing is cached, and no log is kept."
    there = next(place for place in (folder, *folder.parents) if place.exists())
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        return ""
    return f"{folder} can't be written: nothing is cached. Set XDG_CACHE_HOME to a folder that can."


def _user_folder(find: Callable[[str], Path]) -> Path | None:
    try:
        folder = find("gputop")
    except RuntimeError:
        return None
    # Some versions return `~/.cache/gputop` as it stands.
    return folder if folder.is_absolute() else None


def here() -> str:
    """Return the folder that the user stands in; empty if it was removed since."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""
