"""Kernels of the user's own on a device: templates are right, wrong ones caught, a fault costs a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from gputop.ipc.worker_client import WorkerClient
from gputop.plan.plan_string import parse_word
from gputop.planner.own_kernels.families import FAMILIES
from gputop.planner.own_kernels.template import template_files
from gputop.results.records import Gate
from gputop.session.session import Session
from gputop.util.errors import WorkerLost
from tests.gpu.plans import STANDARD

PHASES = tuple(phase for family in FAMILIES for phase in family.phases)
RUNGS = {"row": "naive", "transposed": "coalesced"}
SUM = "acc += a[y][i] * w[i][x];"
FAULTS = {
    "a wild address": (f"{SUM} if (acc == acc) args.c[1ull << 40] = 1.0f;", "illegal memory access"),
    "a loop without end": (f"{SUM} while (true) __nanosleep(1000);", "still running"),
}


def folder(tmp_path: Path, *phases: str, layout: str = "row") -> Path:
    for phase in phases:
        files = template_files(phase, phase, "cuda", "row" if layout == "row" else "transposed")
        for name, text in files.items():
            (tmp_path / name).write_text(text)
    return tmp_path


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def gate_on(kernels: Path, word: str) -> Gate:
    session = Session.open("cuda", STANDARD["tiny"], kernels_dir=str(kernels))
    try:
        return session.check(parse_word(word))
    finally:
        session.close()


@pytest.mark.parametrize("layout", RUNGS)
def test_every_template_passes_both_gates(layout: str, tmp_path: Path) -> None:
    uses = ",".join(f"{phase}:my_{phase}" for phase in PHASES)
    gate = gate_on(folder(tmp_path, *PHASES, layout=layout), f"{RUNGS[layout]},batch=2,{uses}")
    assert gate.ok, gate.where


def test_a_wrong_answer_fails_at_its_site(tmp_path: Path) -> None:
    kernels = folder(tmp_path, "w1")
    edit(kernels / "my_w1.cu", "store(args, acc, row, column);", "args.c[row * args.ldc + column] = acc;")
    gate = gate_on(kernels, "naive,fused_stores=on,w1:my_w1")
    assert not gate.ok
    assert "w1" in gate.where


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_costs_its_process_and_the_next_goes_on(fault: str, tmp_path: Path) -> None:
    code, said = FAULTS[fault]
    kernels = folder(tmp_path, "w1")
    edit(kernels / "my_w1.cu", SUM, code)
    with WorkerClient(log_path=tmp_path / "worker.log") as client:
        client.open("cuda", STANDARD["tiny"], kernels_dir=str(kernels))
        (report,) = client.rebuild(parse_word("naive"), "w1", ("my_w1.cu",))
        assert report.trial is not None
        with pytest.raises(WorkerLost, match=said) as lost:
            client.check(report.trial)
        assert "my_w1" in str(lost.value)
        client.restart()
        assert client.check(parse_word("naive")).ok


def test_a_save_is_compiled_anew_and_paired_with_what_was_there(tmp_path: Path) -> None:
    kernels = folder(tmp_path, "w1")
    session = Session.open("cuda", STANDARD["mini"], kernels_dir=str(kernels))
    base = parse_word("naive,fused_stores=on")
    edit(kernels / "my_w1.cu", "store(args, acc, row, column);", "store(args, acc + 1.0f, row, column);")
    (wrong,) = session.rebuild(base, "w1", ("my_w1.cu",))
    assert wrong.trial is not None
    assert not session.check(wrong.trial).ok
    edit(kernels / "my_w1.cu", "acc + 1.0f", "acc")
    (right,) = session.rebuild(wrong.trial, "w1", ("my_w1.cu",))
    assert right.base is not None
    assert right.base.uses == ()
    assert right.trial is not None
    assert right.code is not None
    assert right.incumbent is not None
    assert session.check(right.trial).ok
    window = session.measure(right.trial, right.base, seconds=1.0)
    session.close()
    assert window.comparison is not None
    assert window.comparison.at("w1") is not None
