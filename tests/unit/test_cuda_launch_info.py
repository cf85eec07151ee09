"""What is told of a kernel that is loaded, on devices that the tables know and on newer ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from gputop.backends.cuda.bind import BoundStep
from gputop.backends.cuda.compiler.nvrtc import arch_of, compile_source
from gputop.backends.cuda.launch_info import launch_info
from gputop.backends.cuda.runtime.context import Context, Function
from gputop.backends.cuda.runtime.launch import Geometry, KernelLaunch
from gputop.model.workloads import parse_workload
from gputop.plan.launch_shape import LaunchInfo
from gputop.plan.plan_string import parse_word
from gputop.plan.types import Dims, PlanRequest
from gputop.planner.resolver import Resolver
from gputop.util.paths import kernels_dir

MINI = parse_workload("mini")
GPT2 = parse_workload("gpt2-small")
NAIVE = PlanRequest("naive")
RESIDENT = 2
SMS = 100
WARPS_OF = {"90": 64, "120": 48, "110": 48, "121": 48}


class OnSomeDevice(Function):
    """The entry with the facts that its compilation gives; residency is the driver's to tell."""

    def blocks_per_sm(self, threads: int, smem_bytes: int) -> int:
        return RESIDENT

    def allow_smem(self, smem_bytes: int) -> None:
        return


class OnSomeGpcs(KernelLaunch):
    """A launch of which the device, by its driver, holds 23 clusters at once."""

    def clustered_blocks(self) -> int:
        return 23 * self.geometry.cluster


def facts_on(
    arch: str,
    request: PlanRequest = NAIVE,
    site: str = "w1",
    dims: Dims = MINI.dims,
    kind: type[KernelLaunch] = KernelLaunch,
) -> LaunchInfo:
    """Of a plan's product at a site, compiled for a device of this compute capability."""
    pytest.importorskip("cuda.bindings.driver")
    catalog = Resolver.load().on(f"sm_{arch}")
    plan = catalog.resolve(request, dims, "cuda")
    step = next(step for step in catalog.steps(plan, dims) if step.site == site)
    assert step.kernel.launches is not None
    launch, *_ = step.kernel.launches(step.tasks, plan, dims)
    source = kernels_dir() / step.kernel.source
    target = arch_of(source.read_text(encoding="utf-8"), arch)
    assert target is not None
    cubin = compile_source(source, step.kernel.source, target, (kernels_dir(),))
    properties = {"maxThreadsPerMultiProcessor": 32 * WARPS_OF[arch], "warpSize": 32}
    context = cast(
        Context,
        SimpleNamespace(arch=arch, sm_count=SMS, properties=properties, stream=SimpleNamespace(ptr=0)),
    )
    function = OnSomeDevice(None, launch.entry, cubin)
    geometry = Geometry(launch.grid, launch.block, launch.smem_bytes, launch.cluster)
    call = kind(context, function, geometry, b"\0" * 8)
    (facts,) = launch_info(context, [BoundStep(step, (call,))])
    return facts


@pytest.mark.parametrize("arch", WARPS_OF)
def test_a_kernel_has_facts_on_a_device_newer_than_the_tables(arch: str) -> None:
    facts = facts_on(arch)
    assert facts.block is not None
    x, y, z = map(int, facts.block.split("x"))
    assert facts.occupancy_theoretical == RESIDENT * -(-x * y * z // 32) / WARPS_OF[arch]
    assert facts.registers
    assert facts.blocks_per_sm == RESIDENT


def test_what_limits_is_told_where_the_table_knows_the_architecture() -> None:
    assert facts_on("90").occupancy_limiters
    assert facts_on("121").occupancy_limiters == ()


def test_waves_of_clusters_are_of_those_that_the_driver_holds() -> None:
    """wo in 24 x 2 tiles of eight blocks. Two an SM would be 200 at once, where 23 clusters are 184."""
    asked = parse_word("naive,wo:gemm_fp32_cluster_8x4/8")
    facts = facts_on("90", asked, "wo", GPT2.dims, OnSomeGpcs)
    assert facts.blocks == 24 * 2 * 8
    assert facts.waves == facts.blocks / 184
    assert facts.warps_in_flight == 184 * 4
