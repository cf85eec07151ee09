"""Dispatch tables that a user saved by name: each is then a rung of the device that it was found on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from gputop.plan.plan_string import parse_choice
from gputop.plan.rungs import Rung
from gputop.plan.toggles import toggle_value
from gputop.plan.types import PlanRequest
from gputop.planner.registry import Registry
from gputop.util import paths
from gputop.util.errors import UsageError
from gputop.util.input_file import read_input
from gputop.util.json_decode import BrokenJson, decode_json
from gputop.util.output_file import open_target

FOLDER = "rungs"
MOST_BYTES = 1 << 20
NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,63}")
SCHEMA = "gputop.rung/1"


class SavedRung(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a saved rung."""

    schema: str = SCHEMA
    name: str
    backend: str
    device: str
    workload: str
    time_utc: str
    before: str
    """The rung whose change it is."""
    sets: dict[str, str]
    """Toggle -> value."""
    uses: dict[str, str]
    """Site -> kernel."""

    @property
    def idea(self) -> str:
        """Where it comes from, in a sentence."""
        start = PlanRequest(self.before, tuple(self.sets.items()))
        return f"Found by a search from {start} on {self.device}, {self.workload}, {self.time_utc[:10]}."


@dataclass(frozen=True, slots=True)
class Saved:
    """What was saved for one device, and what of it can't be used."""

    rungs: tuple[Rung, ...] = ()
    unread: dict[str, str] = field(default_factory=dict)
    """File -> why it gives no rung."""


_decoder = msgspec.json.Decoder(SavedRung)


def save(rung: SavedRung) -> Path:
    """Write a saved rung, whose name was checked; one of the same name is replaced. Return its file.

    UsageError if nothing can be written.
    """
    folder = _folder()
    if folder is None:
        raise UsageError(f"{paths.why_no_cache()} A rung can't be saved.")
    file = folder / f"{rung.name}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"Can't write {str(file)!r}: {error.strerror or error}.") from error
    open_target(str(file)).write(msgspec.json.format(msgspec.json.encode(rung)).decode() + "\n")
    return file


def check_name(name: str, known: Sequence[str]) -> None:
    """Raise UsageError for a name that no saved rung can have; `known`: ids that come with gputop."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name for a rung: a letter, then letters, digits, dots or dashes, 64 at most."
        )
    if name in known:
        raise UsageError(f"{name!r} is a rung that comes with gputop: save the table under another name.")


def saved_for(registry: Registry, backend: str, device: str) -> Saved:
    """Return the rungs that were saved for a device. A file that gives none costs itself alone."""
    ours = {rung.id for rung in registry.rungs}
    rungs: list[Rung] = []
    kept, unread = read_all()
    # One may be the change of another that was saved before it.
    for file, saved in sorted(kept, key=lambda pair: pair[1].time_utc):
        if (saved.backend, saved.device) != (backend, device) or saved.name in ours:
            continue
        try:
            rungs.append(_rung(replace(registry, rungs=(*registry.rungs, *rungs)), saved))
        except UsageError as error:
            unread[str(file)] = str(error).rstrip(".")
    return Saved(tuple(rungs), unread)


def read_all() -> tuple[list[tuple[Path, SavedRung]], dict[str, str]]:
    """Return what was saved for any device, with its file; and file -> why, of those that can't be read."""
    kept: list[tuple[Path, SavedRung]] = []
    unread: dict[str, str] = {}
    for file in _files():
        try:
            kept.append((file, decode_json(_decoder, read_input(file, "saved rung", MOST_BYTES))))
        except (UsageError, BrokenJson) as error:
            unread[str(file)] = str(error).rstrip(".")
    return kept, unread


def _rung(registry: Registry, kept: SavedRung) -> Rung:
    before = registry.rung(kept.before)
    if before.backend != kept.backend:
        raise UsageError(f"rung {before.id} runs on {before.backend}, not on {kept.backend}")
    toggles = [(registry.toggle(name), text) for name, text in kept.sets.items()]
    fields = tuple((toggle.field, toggle_value(toggle, text)) for toggle, text in toggles)
    for kernel in kept.uses.values():
        registry.kernel(parse_choice(kernel).kernel)
    return Rung(
        id=kept.name,
        number=before.number,
        backend=kept.backend,
        idea=kept.idea,
        before=kept.before,
        fields=fields,
        use=tuple(kept.uses.items()),
    )


def _folder() -> Path | None:
    data = paths.data_dir()
    return None if data is None else data / FOLDER


def _files() -> Iterator[Path]:
    folder = _folder()
    if folder is not None and folder.is_dir():
        yield from sorted(folder.glob("*.json"))
