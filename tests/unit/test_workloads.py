"""Workloads by name and from TOML files, and the answer to every broken file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.model.weights import parameter_count
from gputop.model.workloads import WORKLOADS, fingerprint, label, parse_toml, parse_workload, with_seq
from gputop.plan.types import Dims
from gputop.util.errors import UsageError

GOOD = {"layers": 2, "d_model": 64, "heads": 4, "d_ff": 256, "seq": 16, "vocab": 100}


def written(folder: Path, text: str) -> Path:
    path = folder / "model.toml"
    path.write_text(text, encoding="utf-8")
    return path


def toml(**changes: object) -> str:
    """GOOD with changes, values as TOML text; None leaves the key out."""
    table = GOOD | changes
    return "".join(f"{key} = {value}\n" for key, value in table.items() if value is not None)


def test_names() -> None:
    assert parse_workload("gpt2-small").dims == Dims(12, 768, 12, 3072, 128, 256)
    assert parse_workload("mini").dims == Dims(2, 256, 4, 1024, 128, 256)
    assert parse_workload("tiny").dims == Dims(2, 64, 4, 256, 16, 256)
    assert [w.name for w in WORKLOADS] == [
        "gpt2-small", "mini", "tiny", "gpt2-124m", "gpt2-355m", "gpt2-774m"
    ]  # fmt: skip


def test_published_shapes() -> None:
    for name, shape in {
        "gpt2-124m": (12, 768, 12, 3072, 50257),
        "gpt2-355m": (24, 1024, 16, 4096, 50257),
        "gpt2-774m": (36, 1280, 20, 5120, 50257),
    }.items():
        dims = parse_workload(name).dims
        assert (dims.layers, dims.d_model, dims.heads, dims.d_ff, dims.vocab) == shape
        assert (dims.activation, dims.tied_head, dims.d_head) == ("gelu_new", True, 64)
        assert f"{parameter_count(replace(dims, seq=1024)) / 1e6:.0f}" == name[5:8]


def test_a_model_is_known_by_what_it_computes(tmp_path: Path) -> None:
    one, same, other = (
        parse_toml(written(tmp_path, toml(**changes)))
        for changes in ({}, {"name": '"else"'}, {"activation": '"gelu"'})
    )
    assert label(one).startswith("model#")
    assert fingerprint(one) == fingerprint(same) != fingerprint(other)
    assert label(with_seq(one, 9)) not in (label(one), label(other))
    assert label(parse_workload("tiny")) == "tiny"
    assert label(with_seq(parse_workload("tiny"), 9)).startswith("tiny#")
    with pytest.raises(UsageError, match=r"--seq: seq = 99999 is beyond 32768"):
        with_seq(one, 99999)


def test_forms_of_the_model(tmp_path: Path) -> None:
    dims = parse_toml(written(tmp_path, toml(activation='"gelu_new"', tied_head="true"))).dims
    assert (dims.activation, dims.tied_head) == ("gelu_new", True)


def test_a_file(tmp_path: Path) -> None:
    workload = parse_workload(str(written(tmp_path, toml(seed=7))))
    assert (workload.name, workload.seed) == ("model", 7)
    assert workload.dims == Dims(2, 64, 4, 256, 16, 100)


def test_a_file_may_name_itself(tmp_path: Path) -> None:
    assert parse_toml(written(tmp_path, toml(name='"mine"'))).name == "mine"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_byte_order_mark_and_either_newline_are_read(tmp_path: Path, newline: str) -> None:
    path = tmp_path / "model.toml"
    path.write_bytes(b"\xef\xbb\xbf" + toml().replace("\n", newline).encode())
    assert parse_toml(path).dims == Dims(2, 64, 4, 256, 16, 100)


def test_the_whole_file_of_a_complaint_can_be_pasted(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as complaint:
        parse_toml(written(tmp_path, "layers = 2"))
    pasted = str(complaint.value).partition("for example:\n")[2]
    assert parse_toml(written(tmp_path, pasted)).dims.layers == 2


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"Did you mean 'tiny'\?.*gpt2-small"):
        parse_workload("tinny")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (toml(layer=3), r"unknown key 'layer'\. Did you mean 'layers'\? Allowed: layers, d_model"),
        (toml(batch=3), r"batch is chosen by the plan.*--batch"),
        (toml(layers=None), r"missing layers\. A whole file"),
        (toml(d_model='"64"'), r"d_model must be a whole number, got '64'"),
        (toml(d_model=64.0), r"d_model must be a whole number, got 64\.0"),
        (toml(seq="true"), r"seq must be a whole number, got True"),
        (toml(heads="[4]"), r"heads must be a whole number"),
        (toml(heads=5), r"heads = 5 does not divide d_model = 64; the nearest that does is 4"),
        (toml(seq=0), r"seq must be at least 1, got 0"),
        (toml(vocab=-3), r"vocab must be at least 2, got -3"),
        (toml(d_model=1, heads=1), r"d_model must be at least 3, got 1: a layernorm of fewer numbers"),
        (toml(d_model=2), r"d_model must be at least 3, got 2"),
        (toml(d_model=0), r"d_model must be at least 3, got 0\."),
        (toml(vocab=1), r"vocab must be at least 2, got 1: with one token"),
        (toml(d_ff=10**12), r"d_ff = 1000000000000 is beyond"),
        (toml(layers=1000, d_model=65536, d_ff=262144), r"GiB of weights; at most 256 GiB"),
        (toml(seed=-1), r"seed must be a whole number from 0"),
        (toml(seq=f"0x{'f' * 5000}"), r"seq is beyond"),
        (toml(heads=f"[0x{'f' * 5000}]"), r"heads must be a whole number, got a list"),
        (toml(seed=f"0x{'f' * 5000}"), r"seed is beyond"),
        (toml(name=f"0x{'f' * 5000}"), r"name must be a word to show in tables, got a int"),
        (
            toml(activation='"gelo"'),
            r"activation must be one of relu, gelu, gelu_new, got 'gelo'\. Did you mean 'gelu'",
        ),
        (toml(activation=3), r"activation must be one of relu, gelu, gelu_new, got a int\."),
        (toml(activation=f'"{"x" * 5000}"'), r"got 'x{60}'\.$"),
        (toml(tied_head=1), r"tied_head must be true or false, got a int"),
        (toml(tied_heads="true"), r"unknown key 'tied_heads'\. Did you mean 'tied_head'"),
        (toml(seed='"x"'), r"seed must be a whole number"),
        (toml(name=3), r"name must be a word"),
        (toml(name='""'), r"name must be a word"),
        ("layers = = 2", r"is not TOML: .*line 1.*A whole file"),
        (f"layers = {'9' * 5000}", r"is not TOML: .*A whole file"),
        (f"layers = {'[' * 5000}", r"is not TOML: .*A whole file"),
    ],
)
def test_a_broken_file_is_answered(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        parse_toml(written(tmp_path, text))
    assert "model.toml" in str(caught.value)
    assert "\n" not in str(caught.value).partition("for example:")[0]


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "model.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match=r"Can't read workload .*model\.toml': line 1 is not UTF-8 text"):
        parse_toml(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"Can't read workload '.*none\.toml': no such file"):
        parse_workload(str(tmp_path / "none.toml"))


def test_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(UsageError, match=r"Can't read workload .*it is a folder"):
        parse_workload(str(tmp_path / "folder.toml"))


@given(text=st.text(max_size=60))
def test_any_text_is_a_workload_or_a_sentence(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("toml") / "any.toml"
    path.write_text(text, encoding="utf-8", errors="replace")
    with pytest.raises(UsageError, match=r"any\.toml"):
        parse_toml(path)
