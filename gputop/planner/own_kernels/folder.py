"""The folder of a user's own kernels: which records it holds, and what is wrong with the others."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from gputop.plan.types import Kernel
from gputop.planner.own_kernels.families import Family
from gputop.planner.own_kernels.kernel import kernels_of
from gputop.planner.own_kernels.record import BACKEND_OF, OwnRecord, read_record
from gputop.planner.own_kernels.struct_fields import structs
from gputop.util import paths
from gputop.util.errors import UsageError
from gputop.util.input_file import files_below, read_input_text

MOST_FILES = 10_000
"""Files and folders below a folder of kernels; ours has a hundred."""
MOST_SOURCE_BYTES = 4 << 20
WHAT = "the folder of kernels (--kernels)"


@dataclass(frozen=True, slots=True)
class OwnFolder:
    """What a folder holds."""

    kernels: tuple[Kernel, ...] = ()
    broken: Mapping[str, str] = field(default_factory=dict)
    """File below the folder -> what is wrong with it, half a sentence."""
    replaced: tuple[str, ...] = ()
    """Sources and headers that lie at a path of ours, and are compiled in its place."""


def read_folder(folder: Path, ours: Sequence[Kernel]) -> OwnFolder:
    """Return what a folder holds beside `ours`, gputop's own kernels.

    Raise UsageError if the folder can't be read. A file that can't be used costs itself.
    """
    files = {path.as_posix() for path in files_below(folder, WHAT, MOST_FILES)}
    carried = _sources(paths.kernels_dir())
    replaced = tuple(sorted(files & carried))
    taken = {kernel.name: "gputop's own" for kernel in ours}
    by_name = {kernel.name: kernel for kernel in ours}
    kernels: list[Kernel] = []
    broken: dict[str, str] = {}
    described: set[str] = set()
    for file in sorted(name for name in files if name.endswith(".toml")):
        try:
            record = read_record(folder, file)
            described.add(record.source)
            if record.source in carried:
                raise UsageError(f"source: {record.source} is the path of one of ours: give it another name")
            _check_source(folder, record)
            found = tuple(kernels_of(record, by_name))
            for kernel in found:
                if kernel.name in taken:
                    raise UsageError(f"entry: the name {kernel.name} is taken: it is {taken[kernel.name]}")
        except UsageError as error:
            broken[file] = str(error).rstrip(".")
            described |= _beside(file, files)
            continue
        taken |= {kernel.name: f"in {file}" for kernel in found}
        kernels += found
    broken |= dict(_lost_sources(files - described, carried))
    return OwnFolder(tuple(kernels), broken, replaced)


def _sources(folder: Path) -> set[str]:
    files = files_below(folder, "gputop's own folder of kernels", MOST_FILES)
    return {path.as_posix() for path in files if path.suffix in (".cu", ".cuh")}


def _beside(file: str, files: Collection[str]) -> set[str]:
    """Sources that a record's name says are its own."""
    stem = PurePosixPath(file).with_suffix("")
    return {f"{stem}{suffix}" for suffix in BACKEND_OF} & set(files)


def _check_source(folder: Path, record: OwnRecord) -> None:
    """Raise UsageError, half a sentence, for a source that can't be read or lacks what its record says."""
    text = read_input_text(folder / record.source, "kernel source", MOST_SOURCE_BYTES)
    if "{" in record.entry:
        # Its entries are made by macros: whether they are there is for the compiler to say.
        return
    for entry in filter(None, (record.entry, record.reduce)):
        parameters = re.search(rf"\b{entry}\s*\(([^)]*)\)", text)
        if parameters is None:
            raise UsageError(f"entry: {record.source} has no function {entry}")
        if wrong := _other_struct(parameters[1], record.family):
            kinds = " or ".join(record.phases)
            raise UsageError(
                f"entry: {entry} takes a {wrong}, and a kernel of {kinds} is given a {record.family.struct}"
            )


def _other_struct(parameters: str, family: Family) -> str | None:
    """A struct of ours that these parameters name and that this family's kernels are not given, or None."""
    named = set(re.findall(r"\w+", parameters)) & set(structs())
    return next(iter(sorted(named - {family.struct})), None)


def _lost_sources(files: Collection[str], carried: Collection[str]) -> Iterator[tuple[str, str]]:
    """Each kernel's source that neither a record describes nor lies at a path of ours, and why that is."""
    for file in sorted(set(files) - set(carried)):
        path = PurePosixPath(file)
        if path.suffix not in BACKEND_OF:
            continue
        named = (other for other in sorted(carried) if PurePosixPath(other).name == path.name)
        near = next(named, None) or next(iter(difflib.get_close_matches(file, carried, n=1)), None)
        hint = f"; it would replace one of ours at that one's path, as {near!r}" if near else ""
        yield file, f"it has no record: put {path.with_suffix('.toml')} beside it{hint}"
