"""Where a search keeps its journal, and the one that `--resume` goes on with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from gputop.ipc.protocol import Opened
from gputop.model.workloads import label
from gputop.search.journal import Begun, Journal, Line, read
from gputop.search.menu import Menu
from gputop.search.progress import Progress
from gputop.util import paths
from gputop.util.errors import UsageError

FOLDER = "search"
SUFFIX = ".jsonl"


@dataclass(frozen=True, slots=True)
class Kept:
    """An open journal, and the lines that it holds already."""

    journal: Journal
    lines: tuple[Line, ...]


def open_journal(named: str | None, resume: bool, menu: Menu, opened: Opened) -> Kept:
    """Open a journal to go on with, or a new one.

    UsageError if there is none to resume, or if it is of another search.
    """
    path = Path(named) if named else None
    if not resume:
        return Kept(Journal(path or _new(menu, opened), 0), ())
    path = path or _newest(menu, opened)
    lines, size = read(path)
    _check(lines, path, menu, opened)
    return Kept(Journal(path, size), lines)


def progress_of(path: Path, menu: Menu) -> Progress:
    """Return how far the search is that a journal tells of."""
    progress = Progress(menu)
    progress.take_all(read(path)[0])
    return progress


def check_new(named: str) -> None:
    """Raise UsageError if the file is there: a search that is not resumed begins a journal."""
    if Path(named).exists():
        raise UsageError(f"{named!r} is there already: --resume goes on with it, another name begins anew.")


def _check(lines: tuple[Line, ...], path: Path, menu: Menu, opened: Opened) -> None:
    """UsageError if a journal is of another device, workload, plan or menu."""
    begun = lines[0] if lines else None
    if not isinstance(begun, Begun):
        raise UsageError(f"{path} holds no line of a search: leave --resume out.")
    for what, theirs, ours in (
        ("device", begun.device, opened.device.name),
        ("workload", begun.workload, label(opened.workload)),
        ("plan", begun.plan, menu.plan),
        ("menu", begun.menu, menu.digest),
    ):
        if theirs != ours:
            raise UsageError(f"{path} is of {what} {theirs}, and this is {ours}: leave --resume out.")


def _new(menu: Menu, opened: Opened) -> Path:
    time = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    return _folder() / f"{_stem(menu, opened)}-{time}{SUFFIX}"


def _newest(menu: Menu, opened: Opened) -> Path:
    found = sorted(_folder().glob(f"{_stem(menu, opened)}-*{SUFFIX}"))
    if not found:
        raise UsageError(f"No search of {menu.plan} was begun here with this menu: leave --resume out.")
    return found[-1]


def _stem(menu: Menu, opened: Opened) -> str:
    device = re.sub(r"[^A-Za-z0-9]+", "-", f"{opened.device.name}-{label(opened.workload)}").strip("-")
    return f"{device}-{menu.digest}"


def _folder() -> Path:
    data = paths.data_dir()
    if data is None:
        raise UsageError(f"{paths.why_no_cache()} Name a file for the search's journal: --journal FILE.")
    return data / FOLDER
