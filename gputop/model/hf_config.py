"""A workload from a Hugging Face config.json of the GPT-2 family."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from gputop.model.workloads import (
    MOST_FILE_BYTES,
    check_sizes,
    nearest,
    shown,
    shown_name,
    true_or_false,
    whole_number,
)
from gputop.plan.types import LAYERNORM_EPS, Activation, Dims, Workload
from gputop.util.errors import UsageError
from gputop.util.input_file import read_input
from gputop.util.json_decode import BrokenJson, decode_json

FAMILY = "gpt2"
KEYS = {
    "layers": "n_layer",
    "d_model": "n_embd",
    "heads": "n_head",
    "seq": "n_positions",
    "vocab": "vocab_size",
}
"""Size of `Dims` -> key of the file. The sequence is the longest that the model has positions for."""
INNER = "n_inner"
"""d_ff; 4 n_embd if it is absent or null."""
ACTIVATIONS: Mapping[str, Activation] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_new",
    "gelu_fast": "gelu_new",
    "gelu_pytorch_tanh": "gelu_new",
}
"""Every name that Hugging Face has for one of our functions."""
DEFAULT_ACTIVATION = "gelu_new"
"""What the library takes if the file names none."""
FIXED: Mapping[str, tuple[bool, str]] = {
    "scale_attn_weights": (True, "attention scores that are not scaled by 1 / sqrt(d_head)"),
    "scale_attn_by_inverse_layer_idx": (False, "attention scores scaled by the layer's number"),
    "add_cross_attention": (False, "cross attention"),
}
"""Key -> its default, the one value that the pass here computes, and what the other one means."""

_decoder = msgspec.json.Decoder(dict[str, Any])


def parse_config(path: Path) -> Workload:
    """The workload of a config.json, named after its folder; of a file of another name, after that.

    UsageError, naming file and key, for what is no model of the family, or one with a form that the pass here
    does not have. Keys that change nothing of the forward pass are ignored.
    """
    table = _read(path)
    family = table.get("model_type", FAMILY)
    if family != FAMILY:
        raise UsageError(
            f"{path}: model_type must be {FAMILY!r}, the family that is read here, got {shown(family)}."
        )
    for key in KEYS.values():
        if key not in table:
            near = nearest(key, table)
            raise UsageError(f"{path}: missing {key}.{near} Needed: {', '.join(KEYS.values())}.")
    sizes = {size: whole_number(path, key, table[key]) for size, key in KEYS.items()}
    inner = table.get(INNER)
    dims = Dims(
        **sizes,
        d_ff=4 * sizes["d_model"] if inner is None else whole_number(path, INNER, inner),
        activation=_activation(path, table.get("activation_function", DEFAULT_ACTIVATION)),
        tied_head=true_or_false(path, "tie_word_embeddings", table.get("tie_word_embeddings", True)),
    )
    _check_forms(path, table)
    check_sizes(dims, str(path), KEYS | {"d_ff": INNER})
    name = path.resolve().parent.name if path.stem == "config" else path.stem
    return Workload(shown_name(path, "the name of the file or its folder", name), dims)


def _read(path: Path) -> dict[str, Any]:
    try:
        return decode_json(
            _decoder, read_input(path, "workload", MOST_FILE_BYTES).removeprefix(b"\xef\xbb\xbf")
        )
    except BrokenJson as error:
        raise UsageError(f"{path} is not a config.json: {error}.") from error


def _activation(path: Path, name: object) -> Activation:
    if isinstance(name, str) and name in ACTIVATIONS:
        return ACTIVATIONS[name]
    near = nearest(name, ACTIVATIONS) if isinstance(name, str) else ""
    raise UsageError(
        f"{path}: activation_function must be one of {', '.join(ACTIVATIONS)}, got {shown(name)}.{near}"
    )


def _check_forms(path: Path, table: Mapping[str, Any]) -> None:
    """UsageError for a form of the model that would change the answer and that nothing here computes."""
    for key, (only, other) in FIXED.items():
        if true_or_false(path, key, table.get(key, only)) is not only:
            raise UsageError(f"{path}: {key} must be {str(only).lower()}: {other} is not computed here.")
    eps = table.get("layer_norm_epsilon", LAYERNORM_EPS)
    if not isinstance(eps, float | int) or not math.isclose(eps, LAYERNORM_EPS):
        raise UsageError(
            f"{path}: layer_norm_epsilon must be {LAYERNORM_EPS}, as in all of GPT-2, got {shown(eps)}."
        )
