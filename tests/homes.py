"""Homes of a user who has calibrated: ceilings are kept in them, so that no test measures them again.

Tests run side by side, so that each sees a busy machine, on which gputop keeps no ceilings of its own.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gputop.backends.cpu import ceilings

KINDS = ("STATE", "CACHE", "DATA", "CONFIG")


def keep_ceilings() -> None:
    """Measure this machine's ceilings and keep them below XDG_CACHE_HOME, however busy it is."""
    found = ceilings.measure((), lambda _: None)
    ceilings.save(replace(found, items=tuple(replace(item, status=ceilings.OK) for item in found.items)))


def homes_in(folder: Path, calibrated: Path) -> dict[str, str]:
    """Return a user's XDG folders below `folder`, with the ceilings that are kept in `calibrated`."""
    homes = {f"XDG_{kind}_HOME": str(folder / f"XDG_{kind}_HOME") for kind in KINDS}
    kept = Path(homes["XDG_CACHE_HOME"]) / "gputop" / "ceilings"
    kept.mkdir(parents=True, exist_ok=True)
    for file in (calibrated / "gputop" / "ceilings").iterdir():
        (kept / file.name).write_bytes(file.read_bytes())
    return homes
