"""The named workloads, others from a TOML file or a Hugging Face config.json, and what each is known by."""

from __future__ import annotations

import difflib
import hashlib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any, get_args

from gputop.plan.types import Activation, Dims, Workload
from gputop.util.errors import UsageError, unknown_name
from gputop.util.input_file import read_input_text


def _gpt2(name: str, layers: int, d_model: int, heads: int) -> Workload:
    """A published shape of GPT-2 (Radford et al. 2019, table 2); its longest sequence is 1024."""
    dims = Dims(
        layers, d_model, heads, 4 * d_model, seq=128, vocab=50257, activation="gelu_new", tied_head=True
    )
    return Workload(name, dims)


WORKLOADS = (
    Workload("gpt2-small", Dims(layers=12, d_model=768, heads=12, d_ff=3072, seq=128, vocab=256)),
    Workload("mini", Dims(layers=2, d_model=256, heads=4, d_ff=1024, seq=128, vocab=256)),
    Workload("tiny", Dims(layers=2, d_model=64, heads=4, d_ff=256, seq=16, vocab=256)),
    _gpt2("gpt2-124m", layers=12, d_model=768, heads=12),
    _gpt2("gpt2-355m", layers=24, d_model=1024, heads=16),
    _gpt2("gpt2-774m", layers=36, d_model=1280, heads=20),
)

SIZES = ("layers", "d_model", "heads", "d_ff", "seq", "vocab")
"""The sizes of `Dims` that a model has; the batch is a plan's."""
ACTIVATIONS: tuple[Activation, ...] = get_args(Activation)
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
NO_OTHER_KEYS: Mapping[str, str] = {}
FINGERPRINT_DIGITS = 8
MOST_SHOWN = 60
"""Characters of a wrong value that a sentence repeats."""
EXAMPLE = """A whole file is, for example:
layers = 2
d_model = 256
heads = 4
d_ff = 1024
seq = 128
vocab = 256"""


def parse_workload(word: str) -> Workload:
    """The workload of a name, a TOML file or a Hugging Face config.json. UsageError for anything else."""
    for workload in WORKLOADS:
        if workload.name == word:
            return workload
    if word.endswith(".toml"):
        return parse_toml(Path(word))
    if word.endswith(".json"):
        from gputop.model.hf_config import parse_config

        return parse_config(Path(word))
    raise unknown_name("workload", word, [*(w.name for w in WORKLOADS), "FILE.toml", "config.json"])


def with_seq(workload: Workload, seq: int) -> Workload:
    """The same model asked for sequences of another length. UsageError for more than is accepted."""
    dims = replace(workload.dims, seq=seq)
    check_sizes(dims, "--seq")
    return replace(workload, dims=dims)


def without_folder(workload: Workload) -> Workload:
    """The workload as it is given to others: where a file lay is nobody's business."""
    if workload.weights is None:
        return workload
    return replace(workload, weights=replace(workload.weights, path=Path(workload.weights.path).name))


def label(workload: Workload) -> str:
    """What files and tables call it: a name is one of ours, or has a fingerprint of the model behind it.

    Two models of one name, as two files may have, are thus never taken for one another.
    """
    return workload.name if workload in WORKLOADS else f"{workload.name}#{fingerprint(workload)}"


def fingerprint(workload: Workload) -> str:
    """Hexadecimal digits that tell models apart: of sizes, forms, seed and weights; not of the name."""
    weights = workload.weights.sha256 if workload.weights else None
    model = (astuple(replace(workload.dims, batch=1)), workload.seed, weights)
    return hashlib.sha256(repr(model).encode()).hexdigest()[:FINGERPRINT_DIGITS]


def parse_toml(path: Path) -> Workload:
    """The workload that a TOML file describes: six sizes, optionally forms of the model, `name` and `seed`.

    UsageError, naming file and key, for whatever is not a model that can be run.
    """
    table = _read(path)
    allowed = (*SIZES, "activation", "tied_head", "name", "seed")
    for key in table:
        if key == "batch":
            raise UsageError(f"{path}: batch is chosen by the plan, not by the workload: use --batch N.")
        if key not in allowed:
            raise UsageError(
                f"{path}: unknown key {key!r}.{nearest(key, allowed)} Allowed: {', '.join(allowed)}."
            )
    missing = [key for key in SIZES if key not in table]
    if missing:
        raise UsageError(f"{path}: missing {', '.join(missing)}. {EXAMPLE}")
    sizes = {key: whole_number(path, key, table[key]) for key in SIZES}
    dims = Dims(
        **sizes,
        activation=_activation(path, table.get("activation", "relu")),
        tied_head=true_or_false(path, "tied_head", table.get("tied_head", False)),
    )
    check_sizes(dims, str(path))
    return Workload(shown_name(path, "name", table.get("name", path.stem)), dims, _seed(path, table))


def _read(path: Path) -> dict[str, Any]:
    text = read_input_text(path, "workload", MOST_FILE_BYTES)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not TOML: {error}. {EXAMPLE}") from error


def whole_number(path: Path, key: str, value: object) -> int:
    """UsageError, naming file and key, for anything else."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"{path}: {key} must be a whole number, got {shown(value)}.")
    if abs(value) > MOST_SEED:
        # Python would refuse to write one of thousands of digits.
        raise UsageError(f"{path}: {key} is beyond {MOST_SEED}, the largest number that TOML promises.")
    return value


def check_sizes(dims: Dims, source: str, keys: Mapping[str, str] = NO_OTHER_KEYS) -> None:
    """UsageError, naming `source` and key, for sizes that no model has that could be run.

    `keys`: what the source calls a size, if not as `Dims` does.
    """
    for size in SIZES:
        key, value = keys.get(size, size), getattr(dims, size)
        least, why = LEAST.get(size, (1, ""))
        if value < least:
            because = f": {why}" if why and value >= 1 else ""
            raise UsageError(f"{source}: {key} must be at least {least}, got {value}{because}.")
        if value > MOST[size]:
            raise UsageError(f"{source}: {key} = {value} is beyond {MOST[size]}, the most that is accepted.")
    if dims.d_model % dims.heads:
        divisors = [n for n in range(1, dims.d_model + 1) if dims.d_model % n == 0]
        near = min(divisors, key=lambda n: abs(n - dims.heads))
        raise UsageError(
            f"{source}: {keys.get('heads', 'heads')} = {dims.heads} does not divide "
            f"{keys.get('d_model', 'd_model')} = {dims.d_model}; "
            f"the nearest that does is {near}."
        )
    # Not above: a front end that names a workload needs no NumPy, and its start is waited for.
    from gputop.model.weights import weight_bytes

    if weight_bytes(dims) > MOST_BYTES:
        raise UsageError(
            f"{source}: these sizes make {weight_bytes(dims) / 2**30:.0f} GiB of weights; "
            f"at most {MOST_BYTES >> 30} GiB are accepted. Lower layers, d_model or d_ff."
        )


def shown_name(path: Path, key: str, name: object) -> str:
    """A name to show in tables. UsageError, naming file and key, for what is none."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise UsageError(f"{path}: {key} must be a word to show in tables, got {shown(name)}.")
    return name


def true_or_false(path: Path, key: str, value: object) -> bool:
    """UsageError, naming file and key, for anything else."""
    if not isinstance(value, bool):
        raise UsageError(f"{path}: {key} must be true or false, got {shown(value)}.")
    return value


def _activation(path: Path, value: object) -> Activation:
    for activation in ACTIVATIONS:
        if value == activation:
            return activation
    near = nearest(value, ACTIVATIONS) if isinstance(value, str) else ""
    raise UsageError(f"{path}: activation must be one of {', '.join(ACTIVATIONS)}, got {shown(value)}.{near}")


def _seed(path: Path, table: dict[str, Any]) -> int:
    seed = whole_number(path, "seed", table.get("seed", 0))
    if seed < 0:
        raise UsageError(f"{path}: seed must be a whole number from 0 to {MOST_SEED}, got {seed}.")
    return seed


def nearest(name: str, allowed: Iterable[str]) -> str:
    """A sentence with the nearest allowed name; empty if none is near."""
    near = difflib.get_close_matches(name, list(allowed), n=1, cutoff=0.5)
    return f" Did you mean {near[0]!r}?" if near else ""


def shown(value: object) -> str:
    """A value of a file as a sentence has it: a number of thousands of digits can't be written."""
    if isinstance(value, str | float | bool):
        return repr(value) if not isinstance(value, str) else repr(value[:MOST_SHOWN])
    return f"a {type(value).__name__}"
