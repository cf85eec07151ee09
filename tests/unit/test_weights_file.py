"""Weights from a safetensors file: GPT-2's names and shapes, the pass on them, every malformed file."""

from __future__ import annotations

import json
import os
import pickle
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gputop.backends.cpu.backend import open_backend
from gputop.backends.cuda.weights import DeviceWeights
from gputop.cli import main
from gputop.model import weights, weights_file
from gputop.model.workloads import fingerprint, label, with_seq, without_folder
from gputop.phases import phases
from gputop.plan.plan_string import parse_word
from gputop.plan.types import Dims, Layout, Plan, PlanRequest, Workload
from gputop.planner.resolver import Resolver
from gputop.session.prepared_plans import PreparedLanes
from gputop.util.errors import UsageError
from gputop.validation.reference import float64_pass

pytest.importorskip("safetensors", reason="safetensors is not installed: pip install '.[weights]'")
from safetensors.numpy import save_file

Tensors = dict[str, NDArray[Any]]

DIMS = Dims(layers=2, d_model=12, heads=3, d_ff=20, seq=7, vocab=33, activation="gelu_new", tied_head=True)
MODEL = Workload("small", DIMS)
POSITIONS = 16
"""More than a sequence has, as in the published files."""
CATALOG = Resolver.load()


def gpt2(dims: Dims = DIMS) -> Tensors:
    """As GPT-2 stores it: Conv1D weights [in, out], the mask beside them, no head of its own."""
    rng = np.random.default_rng(1)
    d, ff = dims.d_model, dims.d_ff

    def drawn(*shape: int, about: float = 0.0) -> NDArray[np.float32]:
        return (about + 0.2 * rng.standard_normal(shape)).astype(np.float32)

    tensors = {"wte.weight": drawn(dims.vocab, d), "wpe.weight": drawn(POSITIONS, d)}
    for layer in range(dims.layers):
        for norm in ("ln_1", "ln_2"):
            tensors |= {f"h.{layer}.{norm}.weight": drawn(d, about=1), f"h.{layer}.{norm}.bias": drawn(d)}
        for name, inner, outs in (
            ("attn.c_attn", d, 3 * d),
            ("attn.c_proj", d, d),
            ("mlp.c_fc", d, ff),
            ("mlp.c_proj", ff, d),
        ):
            tensors |= {f"h.{layer}.{name}.weight": drawn(inner, outs), f"h.{layer}.{name}.bias": drawn(outs)}
        tensors[f"h.{layer}.attn.bias"] = np.tril(np.ones((1, 1, POSITIONS, POSITIONS), np.float32))
    return tensors | {"ln_f.weight": drawn(d, about=1), "ln_f.bias": drawn(d)}


def written(folder: Path, tensors: Tensors) -> Path:
    file = folder / "model.safetensors"
    save_file({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}, file)
    return file


def hugging_face_pass(t: Tensors, ids: list[int], dims: Dims) -> NDArray[np.float64]:
    """GPT-2 by its own names, one token at a time down the page: Conv1D is x w + b."""
    w = {name: tensor.astype(np.float64) for name, tensor in t.items()}
    d, heads = dims.d_model, dims.heads

    def norm(x: Any, name: str) -> Any:
        scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]

    def conv1d(x: Any, name: str) -> Any:
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    x = w["wte.weight"][ids] + w["wpe.weight"][: len(ids)]
    for layer in range(dims.layers):
        block = f"h.{layer}"
        qkv = conv1d(norm(x, f"{block}.ln_1"), f"{block}.attn.c_attn")
        mixed = np.empty_like(x)
        for head in range(heads):
            own = slice(head * d // heads, (head + 1) * d // heads)
            q, k, v = (part[:, own] for part in np.split(qkv, 3, axis=1))
            scores = np.where(np.tri(len(ids)) > 0, q @ k.T / np.sqrt(d // heads), -np.inf)
            shares = np.exp(scores - scores.max(1, keepdims=True))
            mixed[:, own] = shares / shares.sum(1, keepdims=True) @ v
        x = x + conv1d(mixed, f"{block}.attn.c_proj")
        up = conv1d(norm(x, f"{block}.ln_2"), f"{block}.mlp.c_fc")
        up = up / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (up + 0.044715 * up**3)))
        x = x + conv1d(up, f"{block}.mlp.c_proj")
    return np.asarray(w.get("lm_head.weight", w["wte.weight"]) @ norm(x[-1], "ln_f"))


IDS = [3, 32, 0, 7, 7, 21, 5]


@pytest.mark.parametrize("prefix", ["", "transformer."])
def test_the_pass_on_a_file_is_gpt2s_own(tmp_path: Path, prefix: str) -> None:
    tensors = gpt2()
    file = written(tmp_path, {prefix + name: tensor for name, tensor in tensors.items()})
    workload = weights_file.with_weights(MODEL, file)
    got = float64_pass(workload, np.array([IDS], np.int32))[0]
    np.testing.assert_allclose(got, hugging_face_pass(tensors, IDS, DIMS), rtol=1e-10)
    arrays = weights.master(workload)
    assert arrays["whead"] is arrays["embedding"]
    assert arrays["position"].shape == (1, DIMS.seq, DIMS.d_model)


def test_a_head_of_its_own_and_one_that_is_stored_twice(tmp_path: Path) -> None:
    tensors = gpt2()
    own = {**tensors, "lm_head.weight": tensors["wte.weight"][::-1]}
    untied = replace(MODEL, dims=replace(DIMS, tied_head=False))
    workload = weights_file.with_weights(untied, written(tmp_path, own))
    got = float64_pass(workload, np.array([IDS], np.int32))[0]
    np.testing.assert_allclose(got, hugging_face_pass(own, IDS, DIMS), rtol=1e-10)
    with pytest.raises(UsageError, match=r"lm_head\.weight differs from wte\.weight.*tied_head = false"):
        weights.master(weights_file.with_weights(MODEL, tmp_path / "model.safetensors"))
    twice = {**tensors, "lm_head.weight": tensors["wte.weight"]}
    same = weights.master(weights_file.with_weights(MODEL, written(tmp_path, twice)))
    assert np.array_equal(same["whead"], same["embedding"])


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("weights"), gpt2())


@pytest.mark.parametrize("rung", [rung.id for rung in CATALOG.rungs_of("cpu")])
def test_every_cpu_rung_passes_both_gates_on_a_file(file: Path, rung: str) -> None:
    opened = open_backend(weights_file.with_weights(MODEL, file), None, lambda text: None)
    plan = CATALOG.resolve(parse_word(rung), DIMS, "cpu")
    lanes = PreparedLanes(opened, CATALOG)
    gate = lanes.check_phases(lanes.get(plan, lambda text: None), lambda text: None)
    opened.close()
    assert gate.status == "PASS", gate.where
    assert {check.site.partition("@")[0] for check in gate.checks} >= {phase.name for phase in phases()} - {
        "qkv"
    }


class HostContext:
    """Takes memory of the host for a device's."""

    def array(self, shape: tuple[int, ...], dtype: Any, what: str) -> NDArray[Any]:
        return np.full(shape, np.nan, dtype)

    def copy_in(self, array: NDArray[Any], host: NDArray[Any]) -> None:
        assert array.shape == host.shape
        array[:] = host


@pytest.mark.parametrize("fold", [False, True])
@pytest.mark.parametrize("layout", ["row", "transposed"])
def test_a_gpu_is_given_the_files_numbers_in_the_plans_form(file: Path, layout: Layout, fold: bool) -> None:
    workload = weights_file.with_weights(MODEL, file)
    plan = Plan("cuda", PlanRequest(""), (), layout=layout, fold=fold)
    context: Any = HostContext()
    device = DeviceWeights(context, context, workload, plan, DIMS)
    for name, layers in weights.effective(weights.master(workload), plan, DIMS).items():
        for layer, wanted in enumerate(layers):
            assert np.array_equal(device.array(name, layer), wanted.reshape(-1)), name


def test_models_are_told_apart_by_their_weights_and_not_by_where_they_lie(file: Path, tmp_path: Path) -> None:
    tensors = gpt2()
    tensors["ln_f.bias"][0] += 1
    copy = tmp_path / "copy.safetensors"
    copy.write_bytes(file.read_bytes())
    here, there, copied = (
        weights_file.with_weights(MODEL, path) for path in (file, written(tmp_path, tensors), copy)
    )
    assert fingerprint(here) == fingerprint(copied) != fingerprint(there)
    assert here == copied != there
    # Windows that are kept are found by it.
    assert repr(here) == repr(copied) != repr(there)
    assert len({label(here), label(there), label(MODEL)}) == 3
    kept = without_folder(here).weights
    assert kept is not None
    assert kept.path == file.name


def test_a_file_that_changes_after_it_was_named(tmp_path: Path) -> None:
    workload = weights_file.with_weights(MODEL, written(tmp_path, gpt2()))
    tensors = gpt2()
    tensors["ln_f.bias"][0] += 1
    written(tmp_path, tensors)
    weights.master.cache_clear()
    with pytest.raises(UsageError, match=r"model\.safetensors has changed since it was named"):
        weights.master(workload)


def without(name: str) -> Tensors:
    return {key: tensor for key, tensor in gpt2().items() if key != name}


def changed(name: str, tensor: NDArray[Any]) -> Tensors:
    return {**gpt2(), name: tensor}


def bytes_of(folder: Path) -> bytes:
    return written(folder, gpt2()).read_bytes()


def rewritten(folder: Path, content: bytes) -> Path:
    file = folder / "model.safetensors"
    file.write_bytes(content)
    return file


def header(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def folder_in_place(folder: Path) -> Path:
    (folder / "model.safetensors").mkdir()
    return folder / "model.safetensors"


def a_pipe(folder: Path) -> Path:
    os.mkfifo(folder / "model.safetensors")
    return folder / "model.safetensors"


SHAPED = np.zeros((12, 12), np.float32)
MALFORMED: dict[str, tuple[Callable[[Path], Path], str]] = {
    "truncated header": (lambda f: rewritten(f, bytes_of(f)[:40]), r"not a whole safetensors file: .+\."),
    "truncated numbers": (lambda f: rewritten(f, bytes_of(f)[:-4]), r"not a whole safetensors file: .+\."),
    "huge header length": (
        lambda f: rewritten(f, struct.pack("<Q", 1 << 60) + b"{}"),
        r"not a whole safetensors file: .+\.",
    ),
    "not safetensors": (lambda f: rewritten(f, b"these are no weights"), r"not a whole safetensors file"),
    "empty": (lambda f: rewritten(f, b""), r"not a whole safetensors file"),
    "a header of something else": (lambda f: rewritten(f, header("[1, 2]")), r"not a whole safetensors file"),
    "overlapping tensors": (
        lambda f: rewritten(
            f,
            header(json.dumps({n: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]} for n in "ab"}))
            + bytes(4),
        ),
        r"not a whole safetensors file",
    ),
    "a pickle": (
        lambda f: rewritten(f, pickle.dumps({"wte.weight": [1.0]})),
        r"is a pickle, and not safetensors",
    ),
    "a PyTorch archive": (
        lambda f: rewritten(f, b"PK\x03\x04" + bytes(64)),
        r"is a zip archive, as PyTorch writes",
    ),
    "a folder": (folder_in_place, r"Can't read weights .*it is a folder"),
    "a pipe": (a_pipe, r"Can't read weights .*it is a pipe"),
    "nothing": (lambda f: f / "none.safetensors", r"Can't read weights .*no such file"),
    "wrong type": (
        lambda f: written(f, changed("h.1.ln_2.bias", np.zeros(12, np.float64))),
        r"h\.1\.ln_2\.bias is F64, and F32 is what is read",
    ),
    "wrong shape": (
        lambda f: written(f, changed("h.0.mlp.c_fc.weight", np.zeros((20, 12), np.float32))),
        r"h\.0\.mlp\.c_fc\.weight has the shape \[20, 12\], and this model needs \[12, 20\]: name the model",
    ),
    "another vocabulary": (
        lambda f: written(f, changed("wte.weight", SHAPED)),
        r"wte\.weight has the shape \[12, 12\], and this model needs \[33, 12\]",
    ),
    "too few positions": (
        lambda f: written(f, changed("wpe.weight", np.zeros((6, 12), np.float32))),
        r"wpe\.weight has the shape \[6, 12\], and 7 positions or more of 12 are needed: .*--seq",
    ),
    "a missing tensor": (
        lambda f: written(f, without("h.1.attn.c_proj.bias")),
        r"no tensor 'h\.1\.attn\.c_proj\.bias'",
    ),
    "a name that is nearly right": (
        lambda f: written(f, {**without("ln_f.bias"), "ln_f.biases": np.zeros(12, np.float32)}),
        r"no tensor 'ln_f\.bias'.*Did you mean 'ln_f\.biases'\?",
    ),
    "an extra tensor": (
        lambda f: written(f, changed("h.2.ln_1.bias", np.zeros(12, np.float32))),
        r"this model has no tensor 'h\.2\.ln_1\.bias'\. It has 2 layers",
    ),
    "a tensor twice": (
        lambda f: written(f, changed("transformer.ln_f.bias", np.zeros(12, np.float32))),
        r"holds a tensor twice, with 'transformer\.'",
    ),
}


def one_sentence(error: UsageError) -> None:
    text = str(error)
    assert "\n" not in text
    assert text.endswith((".", "?"))
    assert len(text) < 600


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_file_is_answered(tmp_path: Path, name: str) -> None:
    make, says = MALFORMED[name]
    with pytest.raises(UsageError, match=says) as caught:
        weights_file.with_weights(MODEL, make(tmp_path))
    one_sentence(caught.value)


@pytest.mark.parametrize(("name", "at"), [("h.1.attn.c_attn.weight", (3, 5)), ("wpe.weight", (2, 1))])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_none_are_answered_with_their_place(
    tmp_path: Path, name: str, at: tuple[int, int], value: float
) -> None:
    tensors = gpt2()
    tensors[name][at] = value
    workload = weights_file.with_weights(MODEL, written(tmp_path, tensors))
    with pytest.raises(UsageError, match=rf"{name} holds {value} at \[{at[0]}, {at[1]}\]") as caught:
        weights.master(workload)
    one_sentence(caught.value)


def test_what_is_not_read_may_hold_anything(tmp_path: Path) -> None:
    tensors = gpt2()
    tensors["wpe.weight"][DIMS.seq :] = np.nan
    weights.master(weights_file.with_weights(MODEL, written(tmp_path, tensors)))
    with pytest.raises(UsageError, match="holds nan"):
        weights.master(weights_file.with_weights(with_seq(MODEL, POSITIONS), tmp_path / "model.safetensors"))


@given(at=st.integers(0, 1 << 14), byte=st.integers(0, 255))
def test_any_byte_may_be_wrong(
    file: Path, tmp_path_factory: pytest.TempPathFactory, at: int, byte: int
) -> None:
    content = bytearray(file.read_bytes())
    content[at % len(content)] = byte
    broken = rewritten(tmp_path_factory.getbasetemp(), bytes(content))
    try:
        weights.master(weights_file.with_weights(MODEL, broken))
    except UsageError as error:
        one_sentence(error)


SIZES = 'layers=2\nd_model=12\nheads=3\nd_ff=20\nseq=7\nvocab=33\nactivation="gelu_new"\ntied_head=true\n'


def test_the_command_line_takes_a_file_and_says_whose_weights_they_are(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toml = tmp_path / "mine.toml"
    toml.write_text(SIZES)
    words = ["--workload", str(toml), "--weights", str(file)]
    assert main(["run", "--backend", "cpu", *words, "--seconds", "0.05", "--csv", "-"]) == 0
    out = capsys.readouterr().out
    assert label(weights_file.with_weights(replace(MODEL, name="mine"), file)) in out
    assert ",PASS," in out
    assert main(["run", "--backend", "cpu", "--weights", str(file)]) == 2
    assert (
        "which a GPT-2 of 12 layers has: name the model's sizes with --workload gpt2-124m"
        in capsys.readouterr().err
    )
    assert main(["emit", "cpu-loops", *words]) == 2
    assert "leave --weights out" in capsys.readouterr().err
