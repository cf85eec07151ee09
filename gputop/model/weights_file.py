"""Weights from a safetensors file with GPT-2's names, as Hugging Face and others write them.

Nothing in the file is executed: a header of names, types and shapes, then numbers. `with_weights` checks what
the header says, `read` the numbers.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gputop.model.weights import BY_NAME, TENSORS, TIED, Tensor, layer_count
from gputop.plan.types import Dims, WeightsFile, Workload
from gputop.util import install_hints
from gputop.util.aligned_array import aligned
from gputop.util.errors import Unavailable, UsageError
from gputop.util.heartbeat import beat
from gputop.util.input_file import read_first, sha256_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

MOST_FILE_BYTES = 1 << 38
DTYPE = "F32"
PREFIX = "transformer."
"""Before every name but the head's, if the file holds a whole language model."""
HEAD = "lm_head.weight"
NAME_SIZES = "name the model's sizes with --workload gpt2-124m, a config.json or a TOML file"
HEADER_AT = 8
"""Bytes of the header's length, which it follows."""
MASKS = re.compile(r"h\.\d+\.attn\.(bias|masked_bias)")
"""The causal mask, which some files hold beside the weights: constants of the library that wrote them."""
FOREIGN = {
    b"PK": "a zip archive, as PyTorch writes pickles",
    b"\x80": "a pickle",
    b"\x93NUMPY": "a NumPy array",
}
"""First bytes of other files that hold weights, and what those are."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a tensor of ours stands in the file."""

    name: str
    """Without the prefix; `{}` is the layer's number."""
    transposed: bool = False
    """Stored [in, out], as GPT-2's Conv1D has it."""


SOURCES: Mapping[str, Source] = {
    "embedding": Source("wte.weight"),
    "position": Source("wpe.weight"),
    "gain1": Source("h.{}.ln_1.weight"),
    "shift1": Source("h.{}.ln_1.bias"),
    "wqkv": Source("h.{}.attn.c_attn.weight", transposed=True),
    "bqkv": Source("h.{}.attn.c_attn.bias"),
    "wo": Source("h.{}.attn.c_proj.weight", transposed=True),
    "bo": Source("h.{}.attn.c_proj.bias"),
    "gain2": Source("h.{}.ln_2.weight"),
    "shift2": Source("h.{}.ln_2.bias"),
    "w1": Source("h.{}.mlp.c_fc.weight", transposed=True),
    "b1": Source("h.{}.mlp.c_fc.bias"),
    "w2": Source("h.{}.mlp.c_proj.weight", transposed=True),
    "b2": Source("h.{}.mlp.c_proj.bias"),
    "gainf": Source("ln_f.weight"),
    "shiftf": Source("ln_f.bias"),
    "whead": Source(HEAD),
}


def with_weights(workload: Workload, path: Path) -> Workload:
    """The workload with the weights of a file, in place of drawn ones.

    UsageError, naming file and tensor, for a file that is not the weights of this model. Unavailable without
    the library that reads it.
    """
    with _opened(path) as file:
        _check_header(path, file, workload.dims)
    digest = sha256_of(path, "weights", MOST_FILE_BYTES)
    return replace(workload, weights=WeightsFile(str(path.resolve()), digest))


def read(workload: Workload) -> dict[str, Floats]:
    """The file's weights in our shapes: [layers, out, in], or [1, ...] outside the layers.

    UsageError if the file is another one than when it was named, or holds what is no finite number.
    """
    assert workload.weights is not None
    path, dims = Path(workload.weights.path), workload.dims
    if sha256_of(path, "weights", MOST_FILE_BYTES) != workload.weights.sha256:
        raise UsageError(f"{path} has changed since it was named: begin again.")
    arrays: dict[str, Floats] = {}
    with _opened(path) as file:
        names = _names(file)
        for tensor in TENSORS:
            if tensor.name in TIED and _is_tied(names, dims):
                continue
            arrays[tensor.name] = aligned((layer_count(tensor, dims), *tensor.shape(dims)))
            for layer, out in enumerate(arrays[tensor.name]):
                _read_into(out, path, file, names[_name(tensor, layer)], SOURCES[tensor.name])
                beat()
    for name, same in TIED.items():
        if dims.tied_head:
            _check_tied(path, arrays, name, same)
            arrays[name] = arrays[same]
    return arrays


def _check_header(path: Path, file: Any, dims: Dims) -> None:
    """Names first, then types, then shapes."""
    names, expected = _names(file), dict(_expected(dims))
    if len(names) < len(file.keys()):
        raise UsageError(f"{path}: it holds a tensor twice, with {PREFIX!r} before its name and without.")
    if _is_tied(names, dims):
        del expected[HEAD]
    missing = [name for name in expected if name not in names]
    if missing:
        raise _incomplete(path, missing, names, dims)
    extra = [name for name in names if name not in expected and not MASKS.fullmatch(name)]
    if extra:
        more = f" and {len(extra) - 1} more" if len(extra) > 1 else ""
        raise UsageError(
            f"{path}: this model has no tensor {extra[0]!r}{more}. It has {dims.layers} layers, "
            "and the names are those of GPT-2."
        )
    for name, tensor in expected.items():
        _check_tensor(path, file.get_slice(names[name]), name, tensor, dims)


def _incomplete(path: Path, missing: Sequence[str], names: Iterable[str], dims: Dims) -> UsageError:
    first = f"{path}: it has no tensor {missing[0]!r}"
    if missing == [HEAD]:
        return UsageError(f"{first}: a model whose head is the embedding has tied_head = true.")
    if len(missing) > 1:
        return UsageError(
            f"{first} and {len(missing) - 1} more, which a GPT-2 of {dims.layers} layers has: {NAME_SIZES}."
        )
    near = difflib.get_close_matches(missing[0], names, n=1, cutoff=0.6)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return UsageError(f"{first}, as GPT-2 has it.{hint}")


def _check_tensor(path: Path, stored: Any, name: str, tensor: Tensor, dims: Dims) -> None:
    if stored.get_dtype() != DTYPE:
        raise UsageError(
            f"{path}: {name} is {stored.get_dtype()}, and {DTYPE} is what is read: "
            "convert the file to float32."
        )
    found, wanted = tuple(stored.get_shape()), tensor.shape(dims)
    if SOURCES[tensor.name].transposed:
        wanted = wanted[::-1]
    if tensor.name == "position":
        if len(found) != 2 or found[0] < dims.seq or found[1] != dims.d_model:
            raise UsageError(
                f"{path}: {name} has the shape {list(found)}, and {dims.seq} positions or more of "
                f"{dims.d_model} are needed: choose the sequence with --seq."
            )
    elif found != wanted:
        raise UsageError(
            f"{path}: {name} has the shape {list(found)}, and this model needs {list(wanted)}: {NAME_SIZES}."
        )


def _read_into(out: Floats, path: Path, file: Any, name: str, source: Source) -> None:
    stored = file.get_slice(name)[: len(out)] if source.name == "wpe.weight" else file.get_tensor(name)
    np.copyto(out, stored.T if source.transposed else stored)
    if not np.isfinite(out).all():
        at = int(np.argmin(np.isfinite(stored)))
        place = [int(index) for index in np.unravel_index(at, stored.shape)]
        raise UsageError(f"{path}: {name} holds {stored.flat[at]} at {place}, which no gate could judge.")


def _check_tied(path: Path, arrays: Mapping[str, Floats], name: str, same: str) -> None:
    """A file may hold the head beside the embedding that it is tied to."""
    if name in arrays and not np.array_equal(arrays[name], arrays[same]):
        raise UsageError(
            f"{path}: {HEAD} differs from {SOURCES[same].name}, and this model's head is tied to it: set "
            "tied_head = false (in a config.json: tie_word_embeddings)."
        )


def _is_tied(names: Mapping[str, str], dims: Dims) -> bool:
    return dims.tied_head and HEAD not in names


def _expected(dims: Dims) -> Iterator[tuple[str, Tensor]]:
    """Every name of the model, without the prefix, with its tensor."""
    for tensor in BY_NAME.values():
        for layer in range(layer_count(tensor, dims)):
            yield _name(tensor, layer), tensor


def _name(tensor: Tensor, layer: int) -> str:
    return SOURCES[tensor.name].name.format(layer)


def _names(file: Any) -> dict[str, str]:
    """Name without the prefix -> name in the file."""
    return {name.removeprefix(PREFIX): name for name in sorted(file.keys())}


def _opened(path: Path) -> Any:
    """The file, its header checked by the library. UsageError when it is none of the format."""
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise Unavailable(f"--weights needs safetensors; {install_hints.extra('weights')}.") from None
    start = read_first(path, "weights", HEADER_AT + 1)
    for magic, kind in FOREIGN.items():
        # The length of a header may begin like anything; the header itself is JSON.
        if start.startswith(magic) and start[HEADER_AT:] != b"{":
            raise UsageError(
                f"{path} is {kind}, and not safetensors: nothing that could execute is read here. "
                "Save the weights with safetensors.torch.save_file."
            )
    try:
        return safe_open(path, framework="np")
    except (SafetensorError, OSError, ValueError) as error:
        raise UsageError(f"{path} is not a whole safetensors file: {_cause(error)}.") from error


def _cause(error: Exception) -> str:
    return str(error).splitlines()[0].strip().rstrip(".")[:200]
