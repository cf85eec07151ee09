"""Templates of kernels of the user's own compile, take what they are given, and keep out of local memory."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gputop.backends.cuda.compiler.nvrtc import compile_source
from gputop.backends.cuda.compiler.sources import Sources
from gputop.backends.cuda.machine_code import machine_code
from gputop.backends.cuda.runtime.params import pack
from gputop.model.workloads import WORKLOADS
from gputop.plan.plan_string import parse_word
from gputop.plan.types import Layout
from gputop.planner.kernel_calls import launches_of
from gputop.planner.own_kernels.families import FAMILIES
from gputop.planner.own_kernels.template import template_files
from gputop.planner.resolver import Resolver, plan_dims
from gputop.util.errors import UsageError
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


def test_the_good_kernel_of_the_page_is_one_of_every_product(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "own-kernel.md").read_text(encoding="utf-8")
    blocks = dict(re.findall(r"^```(cuda|toml)\n(.*?)^```", page, re.DOTALL | re.MULTILINE))
    (tmp_path / "my_w1.cu").write_text(blocks["cuda"])
    (tmp_path / "my_w1.toml").write_text(blocks["toml"])
    catalog = Resolver.load(tmp_path)
    assert catalog.unread == {}
    kernel = catalog.kernels["my_w1"]
    dims = WORKLOADS[0].dims
    for phase in kernel.covers:
        for splits in kernel.splits:
            plan = catalog.resolve(parse_word(f"register-tiled,{phase}:my_w1/{splits}"), dims, "cuda")
            task = replace(catalog.site_tasks(plan, dims)[phase], splits=splits)
            code = machine_code(kernel, task, plan, dims, "90", Sources.before_ours(tmp_path))
            assert code is not None
            assert (code.kernel, code.spill_bytes) == (f"my_w1/{splits}", 0)
            assert "FFMA" in dict(code.mix)


WRONG = {
    "another struct of the same name": (
        "GemmArgs args)", "Mine args)", "takes 8 bytes of arguments, and a kernel of w1 is given 88"
    ),
    "not extern": ('extern "C" ', "", "has no kernel 'my_w1'"),
    "fewer threads": (
        "__launch_bounds__(TILE * TILE)", "__launch_bounds__(64)", "launches 256 threads a block"
    ),
    "no semicolon": ("float acc = 0.0f;", "float acc = 0.0f", "does not compile for sm_90: expected a"),
}  # fmt: skip


@pytest.mark.parametrize("fault", WRONG)
def test_what_compiles_to_something_else_is_refused_before_it_is_launched(fault: str, tmp_path: Path) -> None:
    old, new, why = WRONG[fault]
    for name, text in template_files("w1", "w1", "cuda", "row").items():
        (tmp_path / name).write_text(text)
    source = tmp_path / "my_w1.cu"
    text = source.read_text()
    assert old in text
    text = text.replace(old, new).replace(
        "constexpr int TILE", "struct Mine { int rows, columns; };\nconstexpr int TILE"
    )
    if new == "Mine args)":
        text = text[: text.index("{\n    __shared__")] + "{}\n"
    source.write_text(text)
    catalog = Resolver.load(tmp_path)
    plan = catalog.resolve(parse_word("naive,w1:my_w1"), WORKLOADS[0].dims, "cuda")
    task = catalog.site_tasks(plan, WORKLOADS[0].dims)["w1"]
    with pytest.raises(UsageError) as refused:
        machine_code(
            catalog.kernels["my_w1"], task, plan, WORKLOADS[0].dims, "90", Sources.before_ours(tmp_path)
        )
    assert why in str(refused.value)
