"""Kernels of the user's own: records field by field, folders that are broken, and plans with one of them."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.cli import main
from gputop.model.workloads import WORKLOADS
from gputop.plan.plan_string import parse_word
from gputop.plan.types import KernelChoice, Launch
from gputop.planner.kernel_calls import launches_of
from gputop.planner.kernel_checks import broken_kernels
from gputop.planner.own_kernels.families import FAMILIES
from gputop.planner.own_kernels.record import FIELDS, parse_record
from gputop.planner.own_kernels.size_rule import parse_rule
from gputop.planner.own_kernels.struct_fields import fields
from gputop.planner.own_kernels.template import template_files
from gputop.planner.plan_views import site_choices
from gputop.planner.resolver import Resolver, plan_dims
from gputop.util.errors import UsageError

DIMS = WORKLOADS[0].dims
OURS = Resolver.load()
SOURCE = 'extern "C" __global__ void my_gemm(const __grid_constant__ GemmArgs args) {}\n'
RECORD = """
entry = "my_gemm"
phases = ["w1", "w2"]
layout = "row"
block = 256
grid = ["columns / 64", "rows / 32", "splits"]
"""
TABLE = {
    "entry": "my_gemm",
    "phases": ["w1", "w2"],
    "layout": "row",
    "block": 256,
    "grid": ["columns / 64", "rows / 32", "splits"],
}


def folder(tmp_path: Path, record: str = RECORD, source: str = SOURCE) -> Path:
    (tmp_path / "my.toml").write_text(record)
    (tmp_path / "my.cu").write_text(source)
    return tmp_path


def launches(catalog: Resolver, word: str, site: str) -> tuple[Launch, ...]:
    plan = catalog.resolve(parse_word(word), DIMS, "cuda")
    steps = catalog.steps(plan, plan_dims(WORKLOADS[0], plan))
    return launches_of(next(step for step in steps if step.site == site), plan, DIMS)


# --- what a record says ---------------------------------------------------------------------------------


def test_a_kernel_of_ones_own_is_launched_as_its_record_says(tmp_path: Path) -> None:
    record = RECORD + 'splits = [1, 3]\nreduce = "my_add"\nsmem_bytes = "inner * 4"\npdl = true\n'
    source = SOURCE + SOURCE.replace("my_gemm", "my_add")
    catalog = Resolver.load(folder(tmp_path, record, source))
    assert catalog.unread == {}
    product, added = launches(catalog, "naive,fused_stores=on,w1:my_gemm/3", "w1")
    assert (product.entry, product.grid, product.block) == ("my_gemm", (48, 4, 3), (256, 1, 1))
    assert product.smem_bytes == 768 * 4
    assert product.pdl
    assert (added.entry, added.grid, added.block) == ("my_add", (12, 128, 1), (256, 1, 1))
    assert product.args == added.args


def test_it_is_given_what_ours_are_given(tmp_path: Path) -> None:
    word = "naive,fused_stores=on,w1:{}"
    catalog = Resolver.load(folder(tmp_path))
    (own,) = launches(catalog, word.format("my_gemm"), "w1")
    (ours,) = launches(OURS, word.format("gemm_naive"), "w1")
    assert own.args == ours.args


def test_without_fused_stores_ours_stores_after_it(tmp_path: Path) -> None:
    catalog = Resolver.load(folder(tmp_path))
    product, store = launches(catalog, "naive,w1:my_gemm", "w1")
    assert (product.entry, store.entry) == ("my_gemm", "pointwise_store")
    assert store.source == "pointwise/01_store.cu"


def test_the_kernels_of_a_site_hold_it_in_each_number_of_parts(tmp_path: Path) -> None:
    """What the dispatch pane offers, and what a search turns."""
    catalog = Resolver.load(folder(tmp_path, RECORD + "splits = [2, 4]\n"))
    plan = catalog.resolve(parse_word("naive"), DIMS, "cuda")
    offered = [candidate.choice for candidate in site_choices(catalog, plan, DIMS, "w1").candidates]
    assert [choice for choice in offered if choice.kernel == "my_gemm"] == [
        KernelChoice("my_gemm", 2),
        KernelChoice("my_gemm", 4),
    ]


def test_tiles_and_stages_are_kernels_of_their_own(tmp_path: Path) -> None:
    record = RECORD.replace('"my_gemm"', '"my_{rows}x{columns}x{depth}_{stages}"')
    record = record.replace("columns / 64", "columns / tile_columns")
    record += "tile = [[64, 64, 16], [32, 128, 32]]\nstages = [2, 3]\n"
    catalog = Resolver.load(folder(tmp_path, record))
    own = [kernel.name for kernel in catalog.kernels.values() if kernel.record]
    assert own == ["my_64x64x16_2", "my_64x64x16_3", "my_32x128x32_2", "my_32x128x32_3"]
    assert launches(catalog, "naive,w1:my_32x128x32_3", "w1")[0].grid == (24, 4, 1)


@pytest.mark.parametrize(
    ("line", "word", "why"),
    [
        ("takes = { inner = { multiple = 100 } }", "w1", "needs inner a multiple of 100, and w1 has 768"),
        ("takes = { rows = { most = 64 } }", "w1", "needs rows of at most 64, and w1 has 128"),
        ("takes = { columns = { least = 1000 } }", "w2", "needs columns of at least 1000, and w2 has 768"),
        ('smem_bytes = "rows - 128"', "w1", "'rows - 128' gives 0"),
        ('smem_bytes = "inner / (rows - 128)"', "w1", "divides by zero"),
        ("cluster = 16", "w2", "its clusters have 16 blocks, and w2 has 12 along x"),
    ],
)
def test_what_it_cant_take_is_refused_with_why(tmp_path: Path, line: str, word: str, why: str) -> None:
    catalog = Resolver.load(folder(tmp_path, f"{RECORD}{line}\n"))
    assert catalog.unread == {}
    with pytest.raises(UsageError) as refused:
        catalog.resolve(parse_word(f"naive,{word}:my_gemm"), DIMS, "cuda")
    assert why in str(refused.value)


def test_a_record_for_one_site_serves_no_other(tmp_path: Path) -> None:
    catalog = Resolver.load(folder(tmp_path, RECORD.replace('phases = ["w1", "w2"]', 'site = "w1@1"')))
    catalog.resolve(parse_word("naive,prune=on,w1@1:my_gemm"), DIMS, "cuda")
    with pytest.raises(UsageError, match="says that it is for w1@1"):
        catalog.resolve(parse_word("naive,w1:my_gemm"), DIMS, "cuda")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"entyr": "x"}, "Unknown key 'entyr'. Did you mean 'entry'?"),
        ({"entry": None}, "entry is missing"),
        ({"entry": "my gemm"}, "no name of a C function"),
        ({"entry": 3}, "entry: it is a text"),
        ({"phases": ["atention"]}, "phases: Unknown phase 'atention'. Did you mean 'attention'?"),
        ({"phases": ["w1", "w1"]}, "phases: a value stands twice"),
        ({"phases": []}, "phases: it has 0 values"),
        ({"phases": ["w1", "ln1"]}, "take different arguments"),
        ({"phases": None}, "one of phases and site"),
        ({"site": "w1"}, "one of phases and site"),
        ({"phases": None, "site": "w3@1"}, "Unknown site 'w3@1'"),
        ({"phases": ["ln1"]}, "layout: only a product has it"),
        ({"layout": "column"}, "layout: 'column' is no layout"),
        ({"layout": None}, "layout is missing"),
        ({"block": 0}, "block: 0 is no whole number from 1 to 1024"),
        ({"block": [32, 64]}, "32 x 64 x 1 is 2048 threads"),
        ({"block": [1, 1, 1, 1]}, "block: it has 4 values"),
        ({"block": True}, "block: True is no whole number"),
        ({"block": None}, "block is missing"),
        ({"grid": "colums / 64"}, "Did you mean 'columns'?"),
        ({"grid": "columns ** 2"}, "something else than names"),
        ({"grid": "__import__('os')"}, "something else than names"),
        ({"grid": "columns /"}, "is no arithmetic"),
        ({"grid": "1" * 201}, "201 characters"),
        ({"grid": "tile_rows"}, "uses 'tile_rows'"),
        ({"grid": 1.5}, "grid: 1.5 is no arithmetic"),
        ({"tile": [16, 16]}, "tile: it is [rows, columns, depth]"),
        ({"tile": [[16, 16, 16], [8, 8, 8]]}, "2 tiles and stages have one name"),
        ({"entry": "my_{stages}"}, "stages is missing"),
        ({"entry": "my_{rows}"}, "tile is missing"),
        ({"splits": [0]}, "splits: 0 is no whole number"),
        ({"reduce": "add"}, "splits is missing"),
        ({"math": ["fp64"]}, "Unknown math 'fp64'"),
        ({"takes": {"iner": {"most": 1}}}, "Did you mean 'inner'?"),
        ({"takes": {"inner": {"max": 1}}}, "Unknown limit of inner 'max'"),
        ({"takes": {"inner": 16}}, "takes: inner is a table"),
        ({"takes": 16}, "takes: it is a table"),
        ({"source": "../other.cu"}, "does not lie beside the record"),
        ({"source": "my.py"}, "neither in .cu, for a GPU, nor in .c, for the cpu"),
        ({"source": "my.c"}, "block: a C function has no block"),
    ],
    ids=str,
)
def test_a_field_that_is_wrong_is_answered_by_a_sentence(change: dict[str, object], why: str) -> None:
    table = {key: value for key, value in {**TABLE, **change}.items() if value is not None}
    with pytest.raises(UsageError) as refused:
        parse_record(table, "my.toml", "my.cu")
    assert why in str(refused.value)


JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(sorted(FIELDS)), JSON_LIKE, max_size=4))
def test_whatever_a_field_holds_it_is_taken_or_refused(change: dict[str, object]) -> None:
    with contextlib.suppress(UsageError):
        record = parse_record({**TABLE, **change}, "my.toml", "my.cu")
        assert set(record.phases) <= set(record.family.phases)


@given(st.integers(1, 10**4), st.integers(1, 10**4))
def test_a_rule_covers_what_is_left_over(columns: int, width: int) -> None:
    blocks = parse_rule(f"columns / {width}", ("columns",)).value({"columns": columns})
    assert (blocks - 1) * width < columns <= blocks * width


@given(st.text(max_size=30))
def test_any_text_is_a_rule_or_refused(text: str) -> None:
    with contextlib.suppress(UsageError):
        rule = parse_rule(text, ("rows", "columns"))
        assert rule.value({"rows": 3, "columns": 5}) >= 1


def test_each_phase_has_a_family_whose_sizes_its_struct_has() -> None:
    phases = [phase for family in FAMILIES for phase in family.phases]
    assert sorted(phases) == sorted(phase.name for phase in OURS.phases)
    for family in FAMILIES:
        assert set(family.sizes) < set(fields(family.struct))
        assert OURS.kernels[family.like].covers == family.phases


# --- folders that are broken ----------------------------------------------------------------------------


def write(tmp_path: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return tmp_path


FILES = {"my.toml": RECORD, "my.cu": SOURCE}
BROKEN: dict[str, tuple[dict[str, str | bytes], str, str]] = {
    "no TOML": ({"my.toml": "entry = ", "my.cu": SOURCE}, "my.toml", "it is no TOML"),
    "nested": ({"my.toml": "a = " + "[" * 9000, "my.cu": SOURCE}, "my.toml", "nested too deeply"),
    "not text": ({"my.toml": b"\xff\xfe", "my.cu": SOURCE}, "my.toml", "not UTF-8"),
    "missing entry": (
        {"my.toml": RECORD, "my.cu": SOURCE.replace("my_gemm", "other")},
        "my.toml",
        "my.cu has no function my_gemm",
    ),
    "wrong struct": (
        {"my.toml": RECORD, "my.cu": SOURCE.replace("GemmArgs", "LayernormArgs")},
        "my.toml",
        "takes a LayernormArgs, and a kernel of w1 or w2 is given a GemmArgs",
    ),
    "two of one name": (
        {"a.toml": RECORD, "a.cu": SOURCE, "my.toml": RECORD, "my.cu": SOURCE},
        "my.toml",
        "the name my_gemm is taken: it is in a.toml",
    ),
    "our name": (
        {
            "my.toml": RECORD.replace("my_gemm", "gemm_naive"),
            "my.cu": SOURCE.replace("my_gemm", "gemm_naive"),
        },
        "my.toml",
        "the name gemm_naive is taken: it is gputop's own",
    ),
    "no record": ({"my.cu": SOURCE}, "my.cu", "it has no record: put my.toml beside it"),
    "no source": ({"my.toml": RECORD}, "my.toml", "no such file"),
    "not text source": ({"my.toml": RECORD, "my.cu": b"\xff"}, "my.toml", "not UTF-8"),
    "10 MB": ({"my.toml": RECORD, "my.cu": SOURCE + " " * 10_000_000}, "my.toml", "it has more than 4"),
    "10 MB record": ({"my.toml": RECORD + " " * 10_000_000, "my.cu": SOURCE}, "my.toml", "it has more than"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_kernel_costs_itself(fault: str, tmp_path: Path) -> None:
    files, file, why = BROKEN[fault]
    good = RECORD.replace("my_gemm", "good_gemm"), SOURCE.replace("my_gemm", "good_gemm")
    catalog = Resolver.load(write(tmp_path, {"good.toml": good[0], "good.cu": good[1], **files}))
    assert list(catalog.unread) == [file]
    assert why in catalog.unread[file]
    catalog.resolve(parse_word("naive,w1:good_gemm"), DIMS, "cuda")


def test_an_unreadable_source_and_a_pipe_cost_themselves(tmp_path: Path) -> None:
    folder(tmp_path)
    (tmp_path / "my.cu").unlink()
    os.mkfifo(tmp_path / "my.cu")
    assert "it is a pipe" in Resolver.load(tmp_path).unread["my.toml"]


def test_the_listing_says_what_is_broken_and_what_is_ones_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, {"my.toml": RECORD, "my.cu": SOURCE, "lost.cu": SOURCE, "01_naive.cu": SOURCE})
    assert main(["list", "kernels", "--kernels", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "my_gemm" in out
    assert "BROKEN: it has no record: put lost.toml beside it" in out
    assert "as 'attention/01_naive.cu'" in out


# --- templates ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("backend", "rung"), [("cuda", "naive"), ("cpu", "cpu-blas")])
def test_each_template_is_a_kernel_of_its_phase(backend: str, rung: str, tmp_path: Path) -> None:
    phases = [phase for family in FAMILIES for phase in family.phases]
    for phase in phases:
        write(tmp_path, dict(template_files(phase, phase, backend, "row")))
    catalog = Resolver.load(tmp_path)
    assert broken_kernels(catalog) == {}
    own = {kernel.name: kernel for kernel in catalog.kernels.values() if kernel.record}
    assert {(kernel.covers, kernel.backend) for kernel in own.values()} == {((p,), backend) for p in phases}
    catalog.resolve(parse_word(",".join((rung, *(f"{p}:my_{p}" for p in phases)))), DIMS, backend)


def test_a_template_is_written_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["list", "kernels", "--template", "w1@1", "-o", str(tmp_path / "new" / "folder")]
    assert main(words) == 0
    assert capsys.readouterr().out.split() == [
        str(tmp_path / "new" / "folder" / f"my_w1_1{suffix}") for suffix in (".cu", ".toml")
    ]
    assert main(words) == 2
    assert "is there already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("kernels", "--template", "w9"), "Unknown site 'w9'"),
        (("rungs", "--template", "w1"), "belong together"),
        (("kernels", "-o", "somewhere"), "belong together"),
        (("kernels", "--template", "w1", "-o", "/dev/null/x"), "the folder for a template"),
    ],
)
def test_a_template_that_cant_be_is_refused(
    words: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", *words]) == 2
    assert why in capsys.readouterr().err
