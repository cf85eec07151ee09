"""Which module loads what, asked of fresh interpreters: import-linter sees only written imports of ours."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gputop.ipc.worker_client import WorkerClient
from gputop.model.workloads import parse_workload
from gputop.plan.types import PlanRequest

ROOT = Path(__file__).resolve().parents[2]

SCREEN = ("textual", "rich", "plotext")
MEASURING = ("gputop.session", "gputop.backends", "gputop.ipc.worker", "gputop.planner.resolver")
ENGINES = (
    "gputop.session",
    "gputop.backends.cpu",
    "gputop.backends.cuda",
    "gputop.ipc.worker",
    "gputop.planner.resolver",
)
"""What measures, without the table of names that the command line checks `--backend` against."""
GPU = ("cupy", "cuda", "nvmath", "torch")
DASK = ("dask", "distributed")


def loaded_by(code: str) -> frozenset[str]:
    """Names in `sys.modules` once `code` has run in an interpreter of its own."""
    report = f"{code}\nimport sys\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", report], cwd=ROOT, check=True, capture_output=True, text=True, timeout=60
    )
    return frozenset(done.stdout.split())


def among(modules: frozenset[str], packages: tuple[str, ...]) -> list[str]:
    """Those of `modules` that are one of `packages` or lie below it."""
    return sorted(m for m in modules if any(m == p or m.startswith(f"{p}.") for p in packages))


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [
        ("gputop.tui.app", (*MEASURING, *GPU, "numpy", "plotext")),
        ("gputop.ipc.worker_client", (*MEASURING, *GPU, *SCREEN)),
        ("gputop.ipc.worker", ("gputop.ipc.worker_client", "gputop.tui", "gputop.cli", *GPU, *SCREEN)),
        ("gputop.fleet.pairs", (*MEASURING, *GPU, *SCREEN, *DASK, "gputop.cli")),
        ("gputop.fleet.local_worker", (*MEASURING, *GPU, *SCREEN, *DASK, "gputop.cli")),
        ("gputop.session.session", ("gputop.ipc.worker_client", "gputop.tui", "gputop.cli", *GPU, *SCREEN)),
        ("gputop.backends.cpu", ("gputop.session", "gputop.backends.cuda", *GPU, *SCREEN)),
        ("gputop.model.workloads", (*MEASURING, *GPU, *SCREEN, "numpy")),
        ("gputop.results.export", (*MEASURING, *GPU, *SCREEN, "numpy")),
        (
            "gputop.cli.command_table",
            (
                *ENGINES,
                *GPU,
                *DASK,
                *SCREEN,
                "numpy",
                "msgspec",
                "gputop.tui",
                "gputop.results.records",
                "gputop.phases",
            ),
        ),
    ],
)
def test_a_module_loads_only_what_is_its_business(module: str, forbidden: tuple[str, ...]) -> None:
    modules = loaded_by(f"import {module}")
    assert module in modules
    assert among(modules, forbidden) == []


def test_phases_load_nothing_that_rests_on_them() -> None:
    """Their files lie outside the package's folder, where import-linter does not look."""
    modules = loaded_by("from gputop.phases import phases, rungs\nassert phases() and rungs()")
    assert {"gputop.phases.gemm", "gputop.phases.ladder"} <= modules
    above = (
        "gputop.planner.registry",
        "gputop.results.records",
        "gputop.ipc.protocol",
        "gputop.validation.gate",
        "gputop.perf.paired_stats",
    )
    assert among(modules, (*MEASURING, *GPU, *SCREEN, *above)) == []


def test_the_screen_does_load_textual() -> None:
    """So that the list above names what textual is really called."""
    assert "textual" in loaded_by("import gputop.tui.app")


def test_the_package_itself_loads_nothing() -> None:
    modules = loaded_by("import gputop")
    assert among(modules, ("gputop",)) == ["gputop"]


def test_a_worker_at_work_loads_no_screen_and_no_client(tmp_path: Path) -> None:
    """A real worker on a real window, its every import reported by the interpreter on its stderr."""
    log = tmp_path / "worker.log"
    command = (sys.executable, "-v", "-m", "gputop", "worker")
    with WorkerClient(command=command, log_path=log) as client:
        client.open("cpu", parse_workload("tiny"))
        window = client.measure(PlanRequest("cpu-blas"), seconds=0.2)
    assert window.lanes[0].device_s is not None
    imports = frozenset(re.findall(r"^import '([\w.]+)' #", log.read_text(), re.MULTILINE))
    assert {"gputop.ipc.worker", "gputop.session", "gputop.backends.cpu", "numpy"} <= imports
    assert among(imports, ("gputop.ipc.worker_client", "gputop.tui", *GPU, *SCREEN)) == []


@pytest.mark.parametrize("folder", ["kernels", "phases"])
def test_neither_folder_is_a_package(folder: str) -> None:
    """Both names belong to other distributions, which a package of ours would hide."""
    files = list((ROOT / folder).rglob("*"))
    assert any(path.is_file() for path in files)
    assert [path for path in files if path.name == "__init__.py"] == []
