"""A workload from a Hugging Face config.json: the published form, its defaults, every broken one."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.model.workloads import parse_workload
from gputop.plan.types import Dims
from gputop.util.errors import UsageError

SMALL: dict[str, Any] = {
    "activation_function": "gelu_new",
    "architectures": ["GPT2LMHeadModel"],
    "attn_pdrop": 0.1,
    "bos_token_id": 50256,
    "layer_norm_epsilon": 1e-05,
    "model_type": "gpt2",
    "n_ctx": 1024,
    "n_embd": 64,
    "n_head": 4,
    "n_layer": 2,
    "n_positions": 32,
    "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}},
    "vocab_size": 101,
}
"""As published files are, keys that change nothing included."""


def written(folder: Path, content: str) -> Path:
    path = folder / "config.json"
    path.write_text(content, encoding="utf-8")
    return path


def config(**changes: Any) -> str:
    """SMALL with changes; None leaves the key out."""
    return json.dumps({key: value for key, value in (SMALL | changes).items() if value is not None})


def test_the_published_form(tmp_path: Path) -> None:
    folder = tmp_path / "my-gpt2"
    folder.mkdir()
    workload = parse_workload(str(written(folder, config())))
    assert workload.name == "my-gpt2"
    assert workload.dims == Dims(2, 64, 4, 256, 32, 101, activation="gelu_new", tied_head=True)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"activation_function": None}, {"activation": "gelu_new"}),
        ({"activation_function": "gelu"}, {"activation": "gelu"}),
        ({"activation_function": "gelu_pytorch_tanh"}, {"activation": "gelu_new"}),
        ({"activation_function": "relu"}, {"activation": "relu"}),
        ({"tie_word_embeddings": False}, {"tied_head": False}),
        ({"n_inner": 200}, {"d_ff": 200}),
        ({"scale_attn_weights": True, "model_type": None}, {}),
    ],
    ids=str,
)
def test_a_key_is_what_the_library_takes_it_for(
    tmp_path: Path, changes: dict[str, Any], expected: dict[str, Any]
) -> None:
    dims = parse_workload(str(written(tmp_path, config(**changes)))).dims
    assert {key: getattr(dims, key) for key in expected} == expected


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (config(model_type="llama"), r"model_type must be 'gpt2', the family that is read here, got 'llama'"),
        (config(n_layer=None), r"missing n_layer\. Needed: n_layer, n_embd, n_head, n_positions, vocab_size"),
        (config(n_layer=None, n_layers=2), r"missing n_layer\. Did you mean 'n_layers'"),
        (config(n_embd="64"), r"n_embd must be a whole number, got '64'"),
        (config(n_head=5), r"n_head = 5 does not divide n_embd = 64; the nearest that does is 4"),
        (config(vocab_size=1), r"vocab_size must be at least 2"),
        (config(n_inner=0), r"n_inner must be at least 1"),
        (config(n_positions=10**6), r"n_positions = 1000000 is beyond 32768"),
        (config(activation_function="silu"), r"activation_function must be one of relu, gelu, .*got 'silu'"),
        (config(activation_function=["gelu"]), r"activation_function must be one of .*got a list"),
        (config(scale_attn_weights=False), r"scale_attn_weights must be true: attention scores that are not"),
        (config(scale_attn_by_inverse_layer_idx=True), r"scale_attn_by_inverse_layer_idx must be false"),
        (config(add_cross_attention=1), r"add_cross_attention must be true or false, got a int"),
        (config(layer_norm_epsilon=1e-6), r"layer_norm_epsilon must be 1e-05, as in all of GPT-2, got 1e-06"),
        (config(tie_word_embeddings="yes"), r"tie_word_embeddings must be true or false, got 'yes'"),
        ("[1, 2]", r"is not a config\.json: Expected `object`"),
        ("{", r"is not a config\.json"),
        ("[" * 100_000, r"is not a config\.json"),
        ('{"n_layer": ' + "9" * 5000 + "}", r"is not a config\.json|n_layer"),
        ("", r"is not a config\.json"),
    ],
)
def test_a_broken_file_is_answered(tmp_path: Path, content: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        parse_workload(str(written(tmp_path, content)))
    assert "config.json" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_file_of_another_name_is_named_after_it(tmp_path: Path) -> None:
    written(tmp_path, config()).rename(tmp_path / "mine.json")
    assert parse_workload(str(tmp_path / "mine.json")).name == "mine"
    (tmp_path / "mine.json").rename(tmp_path / "a\tb.json")
    with pytest.raises(UsageError, match=r"the name of the file or its folder must be a word to show"):
        parse_workload(str(tmp_path / "a\tb.json"))


def test_a_folder_is_answered(tmp_path: Path) -> None:
    (tmp_path / "config.json").mkdir()
    with pytest.raises(UsageError, match=r"Can't read workload .*it is a folder"):
        parse_workload(str(tmp_path / "config.json"))


VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.integers())
)


@given(changes=st.dictionaries(st.sampled_from(sorted(SMALL)), VALUES, min_size=1, max_size=4))
def test_any_value_is_a_workload_or_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, changes: dict[str, Any]
) -> None:
    path = written(tmp_path_factory.getbasetemp(), json.dumps(SMALL | changes))
    with contextlib.suppress(UsageError):
        dims = parse_workload(str(path)).dims
        assert dims.d_model % dims.heads == 0
