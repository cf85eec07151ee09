"""A kernel whose record, source or file is broken costs itself: it is named with why, the rest goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gputop.backends.cpu.backend import open_backend
from gputop.model.workloads import WORKLOADS
from gputop.plan.plan_string import parse_word
from gputop.plan.types import Kernel, Launch, PlanRequest
from gputop.planner.kernel_checks import broken_kernels, faults
from gputop.planner.resolver import Resolver
from gputop.session.context import SessionContext
from gputop.session.session import Session
from gputop.util.errors import UsageError

ROOT = Path(__file__).resolve().parents[2]
CATALOG = Resolver.load()
TINY = WORKLOADS[2]
SOURCE = "gemm/01_naive.cu"


def fails(*_: Any) -> Any:
    """As a row that is missing from a table does."""
    raise KeyError("gemm_new")


def lost(*_: Any) -> tuple[Launch, ...]:
    return (Launch("gemm_lost", (1, 1, 1), (32, 1, 1), ()),)


def new(**fields: Any) -> Kernel:
    return replace(Kernel("gemm_new", "cuda", "", ("w1",), entries=("gemm_naive",), source=SOURCE), **fields)


def with_records(*kernels: Kernel) -> Resolver:
    return replace(CATALOG, records=(*CATALOG.records, *kernels))


# --- the registry as it is ------------------------------------------------------------------------------


def test_the_registry_is_whole() -> None:
    assert faults(CATALOG) == ()


def test_a_source_without_a_record_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "gemm").mkdir()
    (tmp_path / "gemm" / "99_lost.cu").write_text("", encoding="utf-8")
    assert "gemm/99_lost.cu has no record" in faults(Resolver.load(tmp_path))


def test_a_double_name_and_a_broken_rung_are_faults() -> None:
    rung = replace(CATALOG.rungs[1], id="cpu-broken", use=(("embed", "lost"), ("w3", "cpu_blas_gemm")))
    found = "; ".join(faults(replace(CATALOG, rungs=(*CATALOG.rungs, rung, rung))))
    assert "rung cpu-broken stands twice" in found
    assert "rung cpu-broken does not resolve" in found
    assert "rung cpu-broken uses w3, which is no site" in found


def test_a_phase_that_no_rung_names_a_kernel_for_is_said_to_be_unserved() -> None:
    """As is so of a new phase whose kernel's record was forgotten in the first rung."""
    first = CATALOG.rungs_of("cpu")[0]
    without = replace(first, use=tuple(use for use in first.use if use[0] != "lnf"))
    catalog = replace(CATALOG, rungs=(without,))
    with pytest.raises(UsageError, match=r"No kernel serves lnf: .*--use lnf=KERNEL"):
        catalog.resolve(PlanRequest("cpu-loops"), TINY.dims, "cpu")
    assert "rung cpu-loops does not resolve" in "; ".join(faults(catalog))


# --- one record -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "why"),
    [
        (new(source="gemm/99_none.cu"), "gemm/99_none.cu does not exist"),
        (new(entries=("gemm_none",)), f"entry gemm_none is not in {SOURCE}"),
        (new(launches=lost), f"entry gemm_lost is not in {SOURCE}"),
        (new(limits=fails), "limits raises KeyError: 'gemm_new'"),
        (new(launches=fails), "launches raises KeyError: 'gemm_new'"),
        (new(shapes=fails), "shapes raises KeyError: 'gemm_new'"),
        (new(name="gemm_naive"), "its name stands twice"),
        (new(covers=("w9",)), "it covers w9, and phases are"),
        (new(covers=()), "it covers nothing"),
        (new(splits=(4, 2)), "splits are whole numbers"),
        (new(splits=(0,)), "splits are whole numbers"),
        (new(covers=("ln2", "w1"), fuses=True, launches=fails), "launches raises KeyError"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_broken_record_is_named_with_why(kernel: Kernel, why: str) -> None:
    catalog = with_records(kernel)
    found = broken_kernels(catalog)
    assert list(found) == [kernel.name]
    assert why in found[kernel.name]
    catalog.resolve(PlanRequest("naive"), WORKLOADS[0].dims, "cuda")


@pytest.mark.parametrize(("part", "fault"), [("limits", fails), ("launches", fails)])
def test_a_plan_with_a_broken_kernel_is_refused_with_why(part: str, fault: Callable[..., Any]) -> None:
    catalog = with_records(new(**{part: fault}))
    with pytest.raises(UsageError, match=rf"broken, {part} raises KeyError: 'gemm_new'"):
        catalog.resolve(parse_word("naive,w1:gemm_new"), WORKLOADS[0].dims, "cuda")


def test_without_what_a_kernel_declares_a_phase_is_timed_and_says_why_it_has_no_terms() -> None:
    kernel = replace(CATALOG.kernels["cpu_blas_gemm"], shapes=fails)
    others = (other for other in CATALOG.records if other.name != kernel.name)
    catalog = replace(CATALOG, records=(*others, kernel))
    session = Session(SessionContext(open_backend(TINY, None, print, catalog), catalog))
    window = session.measure(PlanRequest("cpu-blas"), seconds=0.05)
    session.close()
    rows = {row.phase: row for row in window.lanes[0].rows}
    assert rows["w1"].time_s
    assert "The record of cpu_blas_gemm is broken, shapes raises" in (rows["w1"].status or "")
    assert "broken" not in (rows["ln1"].status or "")


# --- files, as a user would meet them -------------------------------------------------------------------

RECORDS = """
from gputop.plan.types import Kernel

def fails(*_):
    raise ZeroDivisionError("division by zero")

def made(name, **fields):
    known = {"entries": ("gemm_naive",), "source": "gemm/01_naive.cu"}
    return Kernel(name, "cuda", "", ("w1",), **{**known, **fields})

KERNELS = (
    made("gemm_bad_source", source="gemm/99_none.cu"),
    made("gemm_bad_entry", entries=("gemm_none",)),
    made("gemm_bad_limits", limits=fails),
    made("gemm_bad_launches", launches=fails),
    made("gemm_bad_shapes", shapes=fails),
)
"""
UNREAD = {
    "gemm_cuda_no_row.py": "from gputop.phases.gemm import TOLERANCES\nTOLERANCES['gemm_new']\n",
    "gemm_cuda_no_syntax.py": "KERNELS = (\n",
    "gemm_cuda_no_kernel.py": "KERNELS = ('gemm_new',)\n",
}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This checkout with broken files among its phases."""
    root = tmp_path_factory.mktemp("checkout")
    unwanted = shutil.ignore_patterns("__pycache__", "recordings")
    for folder in ("gputop", "phases"):
        shutil.copytree(ROOT / folder, root / folder, ignore=unwanted)
    (root / "kernels").symlink_to(ROOT / "kernels")
    (root / "pyproject.toml").symlink_to(ROOT / "pyproject.toml")
    for name, text in {"gemm_cuda_bad.py": RECORDS, **UNREAD}.items():
        (root / "phases" / name).write_text(text, encoding="utf-8")
    return root


def gputop(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    homes = {f"XDG_{kind}_HOME": str(checkout / kind) for kind in ("CACHE", "STATE", "DATA", "CONFIG")}
    done = subprocess.run(
        (sys.executable, "-m", "gputop", *words),
        env={**os.environ, **homes, "PYTHONPATH": str(checkout), "COLUMNS": "400"},
        cwd=checkout,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done


def test_list_kernels_names_each_broken_one_with_why(checkout: Path) -> None:
    done = gputop(checkout, "list", "kernels")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for name, why in {
        "gemm_bad_source": "gemm/99_none.cu does not exist",
        "gemm_bad_entry": "entry gemm_none is not in gemm/01_naive.cu",
        "gemm_bad_limits": "limits raises ZeroDivisionError",
        "gemm_bad_launches": "launches raises ZeroDivisionError",
        "gemm_bad_shapes": "shapes raises ZeroDivisionError",
        "phases/gemm_cuda_no_row.py": "KeyError: 'gemm_new'",
        "phases/gemm_cuda_no_syntax.py": "SyntaxError",
        "phases/gemm_cuda_no_kernel.py": "'gemm_new', which is no Kernel",
    }.items():
        (line,) = [line for line in lines if name in line.split()]
        assert "BROKEN: " in line
        assert why in line
    assert sum("BROKEN" in line for line in lines) == 8


def test_doctor_says_so_and_everything_else_works(checkout: Path) -> None:
    told = next(line for line in gputop(checkout, "doctor").stdout.splitlines() if " kernels " in line)
    assert told.startswith("broken")
    assert "gemm_bad_entry: entry gemm_none" in told
    assert gputop(checkout, "list", "sites", "--rung", "naive").returncode == 0
    run = gputop(checkout, "run", "--backend", "cpu", "--workload", "tiny", "--seconds", "0.05", "--csv", "-")
    assert run.returncode == 0, run.stderr
    assert "device" in run.stdout


@pytest.mark.parametrize(
    ("kernel", "why"),
    [
        ("gemm_bad_limits", "limits raises ZeroDivisionError"),
        ("gemm_of_an_unread_file", "phases/gemm_cuda_no_row.py: it can't be loaded: KeyError"),
    ],
)
def test_a_plan_that_asks_for_one_is_refused_with_why(checkout: Path, kernel: str, why: str) -> None:
    done = gputop(checkout, "list", "sites", "--rung", "naive", "--use", f"w1={kernel}")
    assert done.returncode == 2
    assert why in done.stderr
