"""A record of a kernel of the user's own, read from TOML and checked field by field."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from gputop.plan.types import Layout, Math
from gputop.planner.own_kernels import values
from gputop.planner.own_kernels.families import Family, all_phases, family_of
from gputop.planner.own_kernels.size_rule import SizeRule, parse_rule
from gputop.util.errors import UsageError, unknown_name
from gputop.util.input_file import read_input_text

MOST_RECORD_BYTES = 64 << 10
BACKEND_OF = {".cu": "cuda", ".c": "cpu"}
"""What a source's suffix runs on."""
TILE_SIZES = ("tile_rows", "tile_columns", "tile_depth", "stages")
"""That a rule may name beside those of the struct, if the record has them."""


@dataclass(frozen=True, slots=True)
class Field:
    """One key of a record."""

    read: Callable[[object], Any]
    """From TOML's value; raises UsageError, half a sentence."""
    needed: bool = False
    cuda_only: bool = False
    """Of launches, which a C function has none of."""
    product_only: bool = False
    """Of the weight and the inner axis that only products have."""


FIELDS: Mapping[str, Field] = {
    "entry": Field(values.entry, needed=True),
    "source": Field(values.text),
    "idea": Field(values.text),
    "phases": Field(values.names("phase", all_phases())),
    "site": Field(values.several(values.text)),
    "math": Field(values.maths),
    "takes": Field(values.takes),
    "layout": Field(values.layout, product_only=True),
    "block": Field(values.block, cuda_only=True),
    "grid": Field(values.grid, cuda_only=True),
    "smem_bytes": Field(lambda value: values.grid(value)[0], cuda_only=True),
    "cluster": Field(values.whole(1, values.MOST_CLUSTER), cuda_only=True),
    "pdl": Field(values.flag, cuda_only=True),
    "tile": Field(values.tiles, cuda_only=True),
    "stages": Field(values.several(values.whole(1, 64)), cuda_only=True),
    "splits": Field(values.several(values.whole(1, 1024)), cuda_only=True, product_only=True),
    "blocks_per_sm": Field(values.whole(1, 64), cuda_only=True, product_only=True),
    "reduce": Field(values.identifier, cuda_only=True, product_only=True),
}
"""In the order in which a template writes them."""


@dataclass(frozen=True, slots=True)
class OwnRecord:
    """A record whose every field holds."""

    file: str
    """Of the record, below the folder."""
    source: str
    """Beside it, below the folder."""
    backend: str
    family: Family
    phases: tuple[str, ...]
    entry: str
    sites: tuple[str, ...] = ()
    """Those that it is for; empty: all of its phases."""
    idea: str = ""
    math: tuple[Math, ...] = ("fp32", "tf32")
    takes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    layout: Layout | None = None
    block: tuple[int, int, int] = (1, 1, 1)
    grid: tuple[SizeRule, ...] = ()
    smem_bytes: SizeRule | None = None
    cluster: int = 1
    pdl: bool = False
    tiles: tuple[tuple[int, int, int], ...] = ()
    stages: tuple[int, ...] = ()
    splits: tuple[int, ...] = ()
    blocks_per_sm: int = 1
    reduce: str = ""


def read_record(folder: Path, file: str) -> OwnRecord:
    """Return the record that a TOML file below `folder` holds.

    Raise UsageError, half a sentence without the file's name, for the first thing that is wrong with it.
    """
    text = read_input_text(folder / file, "record", MOST_RECORD_BYTES)
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise UsageError(f"it is no TOML: {why}") from None
    beside = (f"{PurePosixPath(file).stem}{suffix}" for suffix in BACKEND_OF)
    there = [name for name in beside if (folder / file).with_name(name).is_file()]
    return parse_record(table, file, next(iter(there), f"{PurePosixPath(file).stem}.cu"))


def parse_record(table: Mapping[str, Any], file: str, beside: str) -> OwnRecord:
    """Return the record that a TOML table holds. Raise UsageError as `read_record` does.

    `beside`: the source's name, if the record names none.
    """
    given = {key: _read(key, value) for key, value in table.items()}
    source = _beside(file, given.get("source", beside))
    backend = BACKEND_OF.get(PurePosixPath(source).suffix)
    if backend is None:
        raise UsageError(f"source: {source!r} ends neither in .cu, for a GPU, nor in .c, for the cpu")
    phases = _phases_of(given)
    family = family_of(phases)
    if family is None:
        raise UsageError(f"phases: {' and '.join(phases)} take different arguments: write a record for each")
    _check_asked(given, backend, family)
    record = OwnRecord(
        file=file,
        source=source,
        backend=backend,
        family=family,
        phases=phases,
        entry=str(given["entry"]),
        sites=given.get("site", ()),
        tiles=given.get("tile", ()),
        **{key: given[key] for key in PLAIN if key in given},
        **_rules(given, family),
    )
    _check_variants(record)
    for size in record.takes:
        if size not in family.sizes:
            raise UsageError(f"takes: {_unknown(f'size of a {family.name}', size, family.sizes)}")
    return record


RENAMED_OR_PARSED = ("entry", "source", "phases", "site", "tile", "grid", "smem_bytes")
PLAIN = tuple(key for key in FIELDS if key not in RENAMED_OR_PARSED)
"""Keys that a record keeps as they were read."""


def _read(key: str, value: object) -> Any:
    if key not in FIELDS:
        raise UsageError(_unknown("key", key, FIELDS))
    try:
        return FIELDS[key].read(value)
    except UsageError as error:
        raise UsageError(f"{key}: {error}") from None


def _beside(file: str, source: str) -> str:
    """Where a source lies below the folder. It lies beside its record, or below that."""
    if PurePosixPath(source).is_absolute() or ".." in PurePosixPath(source).parts:
        raise UsageError(f"source: {source!r} does not lie beside the record")
    return (PurePosixPath(file).parent / source).as_posix()


def _phases_of(given: Mapping[str, Any]) -> tuple[str, ...]:
    """The phases named, or those of the sites named: `w1@1` is of `w1`, `kv` and `q@1` are of `qkv`."""
    if ("phases" in given) == ("site" in given):
        raise UsageError('it says one of phases and site: phases = ["w1"], or site = "w1@1" for that alone')
    if "phases" in given:
        return tuple(given["phases"])
    phases = []
    for site in given["site"]:
        stem = site.partition("@")[0]
        phase = {"kv": "qkv", "q": "qkv"}.get(stem, stem)
        if phase not in all_phases():
            raise UsageError(f"site: {_unknown('site', site, all_phases())}")
        phases.append(phase)
    return tuple(dict.fromkeys(phases))


def _check_asked(given: Mapping[str, Any], backend: str, family: Family) -> None:
    """Raise UsageError for a key that is missing, or that has no meaning here."""
    needed = {key for key, field in FIELDS.items() if field.needed}
    needed |= {"block", "grid"} if backend == "cuda" else set()
    needed |= {"layout"} if family.divides else set()
    for key in FIELDS:
        if key in needed and key not in given:
            raise UsageError(f"{key} is missing")
        if key in given and FIELDS[key].cuda_only and backend != "cuda":
            raise UsageError(f"{key}: a C function has no {key}, leave it out")
        if key in given and FIELDS[key].product_only and not family.divides:
            raise UsageError(f"{key}: only a product has it, and {family.phases[0]} is none")
    if "reduce" in given and "splits" not in given:
        raise UsageError("reduce: it adds the parts of a divided product, and splits is missing")


def _rules(given: Mapping[str, Any], family: Family) -> dict[str, Any]:
    """The arithmetic of grid and shared memory, checked against the names that it may use."""
    allowed = (*family.sizes, *(TILE_SIZES[:3] if "tile" in given else ()))
    allowed += TILE_SIZES[3:] if "stages" in given else ()
    found: dict[str, Any] = {}
    try:
        key = "grid"
        found[key] = tuple(parse_rule(rule, allowed) for rule in given.get(key, ()))
        key = "smem_bytes"
        if key in given:
            found[key] = parse_rule(str(given[key]), allowed)
    except UsageError as error:
        raise UsageError(f"{key}: {error}") from None
    return found


def _check_variants(record: OwnRecord) -> None:
    """Raise UsageError if tiles and stages would not all have an entry of their own."""
    held = set(values.PLACEHOLDER.findall(record.entry))
    if held & {"rows", "columns", "depth"} and not record.tiles:
        raise UsageError(f"entry: {record.entry!r} holds sizes of a tile, and tile is missing")
    if "stages" in held and not record.stages:
        raise UsageError(f"entry: {record.entry!r} holds {{stages}}, and stages is missing")
    combinations = [(tile, stages) for tile in record.tiles or (None,) for stages in record.stages or (None,)]
    if len({entry_name(record.entry, *each) for each in combinations}) < len(combinations):
        raise UsageError(
            f"entry: {len(combinations)} tiles and stages have one name. Write {{rows}}, {{columns}}, "
            "{depth} or {stages} into it"
        )


def entry_name(entry: str, tile: tuple[int, int, int] | None, stages: int | None) -> str:
    """Return the function's name for one tile and one number of stages."""
    numbers = dict(zip(("rows", "columns", "depth"), tile or (), strict=False))
    if stages is not None:
        numbers["stages"] = stages
    return values.PLACEHOLDER.sub(lambda found: str(numbers[found[1]]), entry)


def _unknown(kind: str, name: str, allowed: Collection[str]) -> str:
    return str(unknown_name(kind, name, allowed)).rstrip(".")
