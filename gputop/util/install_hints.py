"""The command that adds what is missing to the gputop that runs: to its own Python, not to the shell's."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

from gputop.util import paths

DISTRIBUTION = "gputop-roofline"


def extra(names: str) -> str:
    """Adds one extra, or several separated by commas. In a checkout's own environment make does it."""
    root = paths.checkout()
    if root is not None and Path(sys.prefix) == root / ".venv":
        here = _short(root)
        return f"make {'' if here == '.' else f'-C {here} '}run EXTRAS={names}"
    return pip(f"install '{DISTRIBUTION}[{names}]'")


def pip(words: str) -> str:
    """`python3 -m pip WORDS`, by the name under which a shell here finds this Python."""
    return f"{_python()} -m pip {words}"


def _python() -> str:
    """Return `python` if that is what the shell would run, else the full path.

    Links are not resolved: a virtual environment's Python links to the system's and must not pass for it.
    """
    path = Path(sys.executable)
    found = shutil.which(path.name)
    if found is not None and Path(found).absolute() == path:
        return path.name
    return _short(path)


def _short(path: Path) -> str:
    """From this folder or from home where it lies below one of them, quoted as a shell needs it."""
    try:
        return shlex.quote(str(path.relative_to(Path.cwd())))
    except (ValueError, OSError):
        pass
    home = os.path.expanduser("~")
    if path.is_relative_to(home):
        return f"~/{shlex.quote(str(path.relative_to(home)))}"
    return shlex.quote(str(path))
