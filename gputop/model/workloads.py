"""The named workloads, and others from a TOML file."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

from gputop.plan.types import Dims, Workload
from gputop.util.errors import UsageError, unknown_name
from gputop.util.input_file import read_input_text

WORKLOADS = (
    Workload("gpt2-small", Dims(layers=12, d_model=768, heads=12, d_ff=3072, seq=128, vocab=256)),
    Workload("mini", Dims(layers=2, d_model=256, heads=4, d_ff=1024, seq=128, vocab=256)),
    Workload("tiny", Dims(layers=2, d_model=64, heads=4, d_ff=256, seq=16, vocab=256)),
)

DIMS_KEYS = tuple(field.name for field in fields(Dims) if field.name != "batch")
LEAST = {
    "d_model": (3, "a layernorm of fewer numbers gives the same whatever they are"),
    "vocab": (2, "with one token there is nothing to choose from"),
}
"""Smallest size of which a passed gate says something, by key, and why. 1 for the others."""
MOST = {
    "layers": 1024,
    "d_model": 65536,
    "heads": 1024,
    "d_ff": 262144,
    "seq": 32768,
    "vocab": 1048576,
}
"""Largest size believed to be meant, by key."""
MOST_BYTES = 1 << 38
MOST_FILE_BYTES = 1 << 20
MOST_SEED = (1 << 63) - 1
EXAMPLE = """A whole file is, for example:
layers = 2
d_model = 256
heads = 4
d_ff = 1024
seq = 128
vocab = 256"""


def parse_workload(word: str) -> Workload:
    """A workload's name, or the path of a TOML file. UsageError for neither."""
    for workload in WORKLOADS:
        if workload.name == word:
            return workload
    if word.endswith(".toml"):
        return parse_toml(Path(word))
    raise unknown_name("workload", word, [*(w.name for w in WORKLOADS), "FILE.toml"])


def parse_toml(path: Path) -> Workload:
    """The workload that a TOML file describes: the six sizes of `Dims`, optionally `name` and `seed`.

    UsageError, naming file and key, for whatever is not a model that can be run.
    """
    table = _read(path)
    allowed = (*DIMS_KEYS, "name", "seed")
    for key in table:
        if key == "batch":
            raise UsageError(f"{path}: batch is chosen by the plan, not by the workload: use --batch N.")
        if key not in allowed:
            near = _nearest(key, allowed)
            raise UsageError(f"{path}: unknown key {key!r}.{near} Allowed: {', '.join(allowed)}.")
    missing = [key for key in DIMS_KEYS if key not in table]
    if missing:
        raise UsageError(f"{path}: missing {', '.join(missing)}. {EXAMPLE}")
    sizes = {key: _whole_number(path, key, table[key]) for key in DIMS_KEYS}
    dims = Dims(**sizes)
    check_sizes(dims, str(path))
    return Workload(_name(path, table), dims, _seed(path, table))


def _read(path: Path) -> dict[str, Any]:
    text = read_input_text(path, "workload", MOST_FILE_BYTES)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not TOML: {error}. {EXAMPLE}") from error


def _whole_number(path: Path, key: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        got = repr(value) if isinstance(value, str | float | bool) else f"a {type(value).__name__}"
        raise UsageError(f"{path}: {key} must be a whole number, got {got}.")
    if abs(value) > MOST_SEED:
        # Python would refuse to write one of thousands of digits.
        raise UsageError(f"{path}: {key} is beyond {MOST_SEED}, the largest number that TOML promises.")
    return value


def check_sizes(dims: Dims, source: str) -> None:
    """UsageError, naming `source` and key, for sizes that no model has that could be run."""
    for key in DIMS_KEYS:
        value: int = getattr(dims, key)
        least, why = LEAST.get(key, (1, ""))
        if value < least:
            because = f": {why}" if why and value >= 1 else ""
            raise UsageError(f"{source}: {key} must be at least {least}, got {value}{because}.")
        if value > MOST[key]:
            raise UsageError(f"{source}: {key} = {value} is beyond {MOST[key]}, the most that is accepted.")
    if dims.d_model % dims.heads:
        divisors = [n for n in range(1, dims.d_model + 1) if dims.d_model % n == 0]
        near = min(divisors, key=lambda n: abs(n - dims.heads))
        raise UsageError(
            f"{source}: heads = {dims.heads} does not divide d_model = {dims.d_model}; "
            f"the nearest that does is {near}."
        )
    # Not above: a front end that names a workload needs no NumPy, and its start is waited for.
    from gputop.model.weights import weight_bytes

    if weight_bytes(dims) > MOST_BYTES:
        raise UsageError(
            f"{source}: these sizes make {weight_bytes(dims) / 2**30:.0f} GiB of weights; "
            f"at most {MOST_BYTES >> 30} GiB are accepted. Lower layers, d_model or d_ff."
        )


def _name(path: Path, table: dict[str, Any]) -> str:
    name = table.get("name", path.stem)
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        got = repr(name) if isinstance(name, str) else f"a {type(name).__name__}"
        raise UsageError(f"{path}: name must be a word to show in tables, got {got}.")
    return name


def _seed(path: Path, table: dict[str, Any]) -> int:
    seed = _whole_number(path, "seed", table.get("seed", 0))
    if seed < 0:
        raise UsageError(f"{path}: seed must be a whole number from 0 to {MOST_SEED}, got {seed}.")
    return seed


def _nearest(name: str, allowed: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(name, allowed, n=1, cutoff=0.5)
    return f" Did you mean {near[0]!r}?" if near else ""
