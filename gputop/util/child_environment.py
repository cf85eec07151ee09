"""The environment of processes that this one starts with the same Python: they find the same modules."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from gputop.util.paths import PACKAGE, can_cache, here

VARIABLE = "PYTHONPATH"


def child_environment() -> dict[str, str]:
    """Return this process's environment, in which a child finds every module that this process finds."""
    env = dict(os.environ)
    given = [] if sys.flags.ignore_environment else env.get(VARIABLE, "").split(os.pathsep)
    path = tuple(dict.fromkeys((*filter(None, given), *search_path())))
    if path:
        env[VARIABLE] = os.pathsep.join(path)
    if not can_cache():
        # CuPy keeps its own kernels in memory then; PyTorch names a folder by the user, whom passwd lacks.
        env.setdefault("CUPY_CACHE_IN_MEMORY", "1")
        env.setdefault("USER", str(os.getuid()))
    return env


def search_path() -> tuple[str, ...]:
    """Return the folders of `sys.path` that a child of the same Python would not have by itself.

    A wrapper may have set them inside of Python (Nix, zipapps, `pip install --target`). The folder where the
    user stands is left out, which `-m` puts first: a queue.py there must not become the child's.
    """
    standard = {Path(folder) for folder in _standard_folders()}
    found = [entry for entry in sys.path if os.path.isabs(entry) and os.pathsep not in entry]
    handed = [entry for entry in found if os.path.exists(entry) and Path(entry) not in standard]
    root = str(PACKAGE.parent)
    stands_here = here() if getattr(sys.modules["__main__"], "__spec__", None) else ""
    handed = [entry for entry in handed if entry != stands_here]
    return tuple(dict.fromkeys(handed if Path(root) in standard or root in handed else (root, *handed)))


def _standard_folders() -> Iterator[str]:
    """Return the folders that a child process searches by default."""
    yield from site.getsitepackages()
    yield site.getusersitepackages()
    for name in ("stdlib", "platstdlib"):
        yield sysconfig.get_path(name)
        yield os.path.join(sysconfig.get_path(name), "lib-dynload")
