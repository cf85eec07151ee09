"""What a device or an installation can't run is said before anything is prepared."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gputop.backends.cuda.compiler.sources import Sources
from gputop.backends.cuda.refusal import refusal
from gputop.model.workloads import WORKLOADS
from gputop.plan.types import Kernel, Plan, PlanRequest
from gputop.planner.resolver import Resolver
from gputop.util import install_hints

MINI = next(workload for workload in WORKLOADS if workload.name == "mini")
CATALOG = Resolver.load()
SOURCES = Sources((CATALOG.kernels_dir,))


def prepared(rung: str) -> tuple[Plan, tuple[Kernel, ...]]:
    plan = CATALOG.resolve(PlanRequest(rung), MINI.dims, "cuda")
    return plan, tuple(CATALOG.kernel(choice.kernel) for _, choice in plan.dispatch)


def hide(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """As if the package were not installed."""
    monkeypatch.setitem(sys.modules, name, None)


def test_our_own_kernels_run_from_sm_80_up() -> None:
    assert refusal(*prepared("coalesced"), "80", SOURCES) is None


@pytest.mark.parametrize(
    ("rung", "package", "extra"),
    [
        ("torch-eager", "torch", "torch"),
        ("torch-compile", "torch", "torch"),
        ("cublaslt", "nvmath", "blaslt"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, rung: str, package: str, extra: str
) -> None:
    hide(monkeypatch, package)
    why = refusal(*prepared(rung), "90", SOURCES)
    assert why is not None
    assert install_hints.extra(extra) in why


def test_dependent_launches_need_a_device_that_has_them() -> None:
    plan, kernels = prepared("coalesced")
    early = plan.change(pdl=True)
    assert refusal(early, kernels, "90", SOURCES) is None
    assert "sm_89; pdl=off runs here" in (refusal(early, kernels, "89", SOURCES) or "")


def test_a_source_for_one_architecture_alone_is_refused_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "only.cu").write_text("// arch: 90a\n")
    plan, kernels = prepared("naive")
    only = tuple(replace(kernel, source="only.cu") for kernel in kernels)
    assert refusal(plan, only, "90", Sources((tmp_path,))) is None
    assert "another architecture than sm_100" in (refusal(plan, only, "100", Sources((tmp_path,))) or "")
