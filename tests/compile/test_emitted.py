"""Emitted programs compile with nvcc as their headers say: every rung of ours that an architecture takes.

For sm_80 and sm_90a; it takes minutes, so that it runs with --thorough.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from gputop.backends.cuda.compiler.sources import Sources
from gputop.emission.cuda_program import cuda_program
from gputop.model.workloads import WORKLOADS
from gputop.plan.types import Activation, PlanRequest
from gputop.planner.resolver import Resolver, plan_dims
from gputop.util.errors import UsageError

DECLARATIONS = Path(__file__).parent / "cublas_declarations"
ARCHS = ("sm_80", "sm_90")
OTHER_ACTIVATIONS = (("graph", "sm_90", "gelu_new"), ("attention-tma", "sm_90", "gelu"))
"""In the library's epilogue and in ours."""
WARNINGS = ("-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra")


@cache
def nvcc() -> str | None:
    """The compiler of CUDA's packages or of a toolkit."""
    try:
        from cuda.pathfinder import find_nvidia_binary_utility
    except ImportError:
        return shutil.which("nvcc")
    found: str | None = find_nvidia_binary_utility("nvcc")
    return found or shutil.which("nvcc")


@cache
def library_headers() -> tuple[str, ...]:
    """Folders of cuBLAS's own headers, else of declarations of what is called."""
    try:
        from cuda.pathfinder import find_nvidia_header_directory
    except ImportError:
        found = None
    else:
        found = find_nvidia_header_directory("cublas")
    return (f"-I{found or DECLARATIONS}",)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "arch" not in metafunc.fixturenames:
        return
    rungs = [
        rung.id for rung in Resolver.load().rungs_of("cuda") if rung.kind != "peer" and rung.id != "bf16"
    ]
    every = [*((rung, arch, "relu") for rung in rungs for arch in ARCHS), *OTHER_ACTIVATIONS]
    metafunc.parametrize(("rung", "arch", "activation"), every)


@pytest.mark.thorough
@pytest.mark.skipif(nvcc() is None, reason="nvcc is not installed: pip install '.[compile]'")
@pytest.mark.skipif(shutil.which("g++") is None, reason="nvcc needs a host compiler (g++)")
def test_an_emitted_program_compiles(rung: str, arch: str, activation: Activation, tmp_path: Path) -> None:
    workload = replace(WORKLOADS[0], dims=replace(WORKLOADS[0].dims, activation=activation))
    resolver = Resolver.load().on(arch)
    try:
        plan = resolver.resolve(PlanRequest(rung), workload.dims, "cuda")
        steps = resolver.steps(plan, plan_dims(workload, plan))
        program = cuda_program(workload, plan, steps, Sources.before_ours(activation=activation), arch)
    except UsageError as error:
        pytest.skip(f"{rung} on {arch}: {error}")
    source = tmp_path / "program.cu"
    source.write_text(program.text)
    command = (
        str(nvcc()),
        *program.build.compile,
        *WARNINGS,
        *library_headers(),
        "-c",
        str(source),
        "-o",
        os.devnull,
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=170)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"[-4000:]
