"""Templates of kernels of the user's own compile, take what they are given, and keep out of local memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from gputop.backends.cuda.compiler.nvrtc import compile_source
from gputop.backends.cuda.runtime.params import pack
from gputop.model.workloads import WORKLOADS
from gputop.plan.plan_string import parse_word
from gputop.plan.types import Layout
from gputop.planner.kernel_calls import launches_of
from gputop.planner.own_kernels.families import FAMILIES
from gputop.planner.own_kernels.template import template_files
from gputop.planner.resolver import Resolver, plan_dims
from gputop.util.paths import kernels_dir

TEMPLATES = [(family.phases[0], "row") for family in FAMILIES] + [("w1", "transposed")]
RUNG_OF = {"row": "naive", "transposed": "coalesced"}


@pytest.mark.parametrize(("phase", "layout"), TEMPLATES)
def test_a_template_compiles_and_takes_its_arguments(
    phase: str, layout: Layout, device_arch: str, tmp_path: Path
) -> None:
    for name, text in template_files(phase, phase, "cuda", layout).items():
        (tmp_path / name).write_text(text)
    entry, arch = f"my_{phase}", f"sm_{device_arch}"
    cubin = compile_source(tmp_path / f"{entry}.cu", f"{entry}.cu", arch, (tmp_path, kernels_dir()))
    facts = cubin.functions[entry]
    assert facts.spill_bytes == 0
    catalog = Resolver.load(tmp_path)
    plan = catalog.resolve(parse_word(f"{RUNG_OF[layout]},{phase}:{entry}"), WORKLOADS[0].dims, "cuda")
    steps = catalog.steps(plan, plan_dims(WORKLOADS[0], plan))
    step = next(step for step in steps if step.site == phase)
    launch = launches_of(step, plan, plan_dims(WORKLOADS[0], plan))[0]
    assert launch.entry == entry
    packed = pack(launch.args, lambda _: 0)
    assert facts.parameter_bytes == len(packed)
    x, y, z = launch.block
    assert facts.max_threads is None or x * y * z <= facts.max_threads
