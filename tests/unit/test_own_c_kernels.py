"""Kernels of the user's own in C: compiled here, gated, and given up when they do not end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gputop.backends import check_sources
from gputop.backends.cpu import own_kernels
from gputop.model.workloads import parse_workload
from gputop.plan.plan_string import parse_word
from gputop.plan.types import Activation
from gputop.planner.own_kernels.families import FAMILIES
from gputop.planner.own_kernels.template import template_files
from gputop.session.session import Session
from gputop.util.errors import CompileFailed, DeviceLost, UsageError

pytestmark = pytest.mark.skipif(own_kernels.why_no_compiler() is not None, reason="there is no C compiler")
TINY = parse_workload("tiny")
PHASES = tuple(phase for family in FAMILIES for phase in family.phases)


def folder(tmp_path: Path, *phases: str, layout: str = "row") -> Path:
    for phase in phases:
        for name, text in template_files(
            phase, phase, "cpu", "row" if layout == "row" else "transposed"
        ).items():
            (tmp_path / name).write_text(text)
    return tmp_path


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def opened(folder: Path) -> Session:
    return Session.open("cpu", TINY, kernels_dir=str(folder))


@pytest.fixture
def w1(tmp_path: Path) -> Path:
    return folder(tmp_path, "w1")


@pytest.mark.parametrize(
    ("rung", "layout", "sets", "activation"),
    [
        ("cpu-blas", "row", "", "relu"),
        ("cpu-transposed", "transposed", "", "gelu"),
        ("cpu-pruned", "row", ",batch=2", "gelu_new"),
    ],
)
def test_each_template_passes_both_gates(
    rung: str, layout: str, sets: str, activation: Activation, tmp_path: Path
) -> None:
    kernels = folder(tmp_path, *(family.phases[0] for family in FAMILIES), layout=layout)
    for family in FAMILIES:
        first, *others = family.phases
        every = ", ".join(f'"{phase}"' for phase in (first, *others))
        edit(kernels / f"my_{first}.toml", f'["{first}"]', f"[{every}]")
    model = replace(TINY, dims=replace(TINY.dims, activation=activation))
    session = Session.open("cpu", model, kernels_dir=str(kernels))
    uses = ",".join(f"{phase}:my_{family.phases[0]}" for family in FAMILIES for phase in family.phases)
    gate = session.check(parse_word(f"{rung}{sets},{uses}"))
    session.close()
    assert gate.ok, gate.where
    assert {check.site.partition("@")[0] for check in gate.checks} >= set(PHASES) - {"qkv"}


def test_a_wrong_answer_fails_at_its_site(w1: Path) -> None:
    edit(w1 / "my_w1.c", "if (args->bias) acc += args->bias[column];", "")
    session = opened(w1)
    gate = session.check(parse_word("cpu-blas,w1:my_w1"))
    session.close()
    assert not gate.ok
    assert "w1" in gate.where


def test_it_is_paired_with_what_it_would_replace(w1: Path) -> None:
    session = opened(w1)
    window = session.measure(parse_word("cpu-blas,w1:my_w1"), parse_word("cpu-blas"), seconds=0.05)
    session.close()
    assert window.comparison is not None
    assert [row.kernel for row in window.lanes[0].rows if row.phase == "w1"] == ["my_w1"]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("float acc = 0.0f;", "float acc = 0.0f", "does not compile for this processor: expected"),
        ("void my_w1", "static void my_w1", "my_w1.c has no function my_w1 that others can call"),
        ("typedef struct GemmArgs {", '#include "no_such.h"\ntypedef struct GemmArgs {', "no_such.h"),
    ],
)
def test_what_does_not_compile_is_answered_by_a_sentence(w1: Path, old: str, new: str, why: str) -> None:
    edit(w1 / "my_w1.c", old, new)
    session = opened(w1)
    with pytest.raises(UsageError) as refused:
        session.check(parse_word("cpu-blas,w1:my_w1"))
    assert why in str(refused.value)
    assert session.check(parse_word("cpu-blas")).ok
    session.close()


def test_the_line_of_an_error_is_known(w1: Path) -> None:
    edit(w1 / "my_w1.c", "void my_w1", "voyd my_w1")
    with pytest.raises(CompileFailed) as refused:
        own_kernels.compiled(w1 / "my_w1.c", "my_w1.c", "relu")
    lines = (w1 / "my_w1.c").read_text().splitlines()
    assert refused.value.file == "my_w1.c"
    assert refused.value.line is not None
    assert "voyd" in lines[refused.value.line - 1]


@pytest.fixture
def released(tmp_path: Path) -> Iterator[Path]:
    """A file that a kernel waits for; there when the test ends."""
    file = tmp_path / "released"
    yield file
    file.touch()
    for thread in threading.enumerate():
        if thread.name.startswith("my_"):
            thread.join()


def test_one_that_does_not_end_is_named_and_its_process_given_up(
    w1: Path, released: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_kernels, "FIRST_RUN_S", 0.1)
    source = w1 / "my_w1.c"
    edit(source, "float acc = 0.0f;", f'float acc = 0.0f;\n while (access("{released}", 0)) usleep(1000);')
    source.write_text(f"#include <unistd.h>\n{source.read_text()}")
    session = opened(w1)
    with pytest.raises(DeviceLost, match="my_w1 at w1 was still running"):
        session.check(parse_word("cpu-blas,w1:my_w1"))


BASE = parse_word("cpu-blas")


def test_what_is_saved_is_tried_where_the_user_looks_if_it_can(w1: Path) -> None:
    edit(w1 / "my_w1.toml", 'phases = ["w1"]', 'phases = ["w1", "w2"]')
    session = opened(w1)
    for asked, tried in ((None, "w1"), ("w2", "w2"), ("embed", "w1")):
        (report,) = session.rebuild(BASE, asked, ("my_w1.c",))
        assert (report.fault, report.site, report.base) == (None, tried, BASE)
        assert report.trial == parse_word(f"cpu-blas,{tried}:my_w1")
    session.close()


def test_what_is_saved_again_replaces_what_was_prepared(w1: Path) -> None:
    session = opened(w1)
    right, wrong = "acc += args->bias[column]", "acc -= args->bias[column]"
    outcomes, code = [], set()
    for old, new in ((right, wrong), (wrong, right)):
        edit(w1 / "my_w1.c", old, new)
        (report,) = session.rebuild(parse_word("cpu-blas,w1:my_w1"), None, ("my_w1.c",))
        assert report.base == BASE
        assert report.trial is not None
        outcomes.append(session.check(report.trial).ok)
    edit(w1 / "my_w1.c", "float acc = 0.0f;", "float acc = -0.0f;")
    for _ in range(2):
        rows = session.measure(parse_word("cpu-blas,w1:my_w1"), seconds=0.02).lanes[0].rows
        code.add(next(row.cubin for row in rows if row.phase == "w1"))
        session.rebuild(BASE, None, ("my_w1.c",))
    session.close()
    assert outcomes == [False, True]
    assert len(code - {None}) == 2, "a time does not say of which code it is"


def test_each_save_that_cant_be_tried_says_why(w1: Path) -> None:
    session = opened(w1)
    record = (w1 / "my_w1.toml").read_text()
    (w1 / "my_w1.toml").write_text(f"{record}takes = {{ inner = {{ most = 8 }} }}\n")
    (report,) = session.rebuild(BASE, "w1", ("my_w1.toml",))
    assert report.fault is not None
    assert "needs inner of at most 8, and w1 has 64" in report.fault.why
    (w1 / "my_w1.toml").write_text(record.replace("phases", "phasse"))
    (report,) = session.rebuild(BASE, "w1", ("my_w1.toml",))
    assert report.fault is not None
    assert "my_w1.toml: Unknown key 'phasse'. Did you mean 'phases'?" in report.fault.why
    assert session.check(BASE).ok
    session.close()


def test_without_a_folder_nothing_can_be_tried() -> None:
    session = Session.open("cpu", TINY)
    with pytest.raises(UsageError, match="name one with --kernels DIR"):
        session.rebuild(BASE)
    session.close()


def test_a_folder_is_for_the_backend_whose_kernels_it_holds(w1: Path, tmp_path: Path) -> None:
    check_sources("cpu", str(w1))
    check_sources("auto", str(w1))
    with pytest.raises(UsageError, match="would change nothing"):
        check_sources("cuda", str(w1))
    assert "my_w1.toml: entry is missing" in _refusal(w1, "entry")


def _refusal(folder: Path, key: str) -> str:
    lines = (folder / "my_w1.toml").read_text().splitlines()
    (folder / "my_w1.toml").write_text("\n".join(line for line in lines if not line.startswith(key)))
    with pytest.raises(UsageError) as refused:
        check_sources("cpu", str(folder))
    return str(refused.value)


def test_the_kernel_of_the_page_is_right(w1: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "own-kernel.md").read_text(encoding="utf-8")
    code = page.partition("```c\n")[2].partition("```")[0]
    takes = page.rpartition("```\ntakes")[2].partition("```")[0]
    before = (w1 / "my_w1.c").read_text().partition("\nvoid my_w1")[0]
    (w1 / "my_w1.c").write_text(f"{before}\n{code}")
    (w1 / "my_w1.toml").write_text(f"{(w1 / 'my_w1.toml').read_text()}takes{takes}")
    session = opened(w1)
    gate = session.check(parse_word("cpu-loops,w1:my_w1"))
    session.close()
    assert gate.ok, gate.where
