"""What is told of a kernel that is loaded, on devices that the tables know and on newer ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from gputop.backends.cuda.bind import BoundStep
from gputop.backends.cuda.compile import arch_of, compile_source
from gputop.backends.cuda.context import Context, Function
from gputop.backends.cuda.launch import Geometry, KernelLaunch
from gputop.backends.cuda.launchfacts import launch_facts
from gputop.catalog import Catalog
from gputop.paths import kernels_dir
from gputop.spec import LaunchFacts, PlanRequest
from gputop.workloads import parse_workload

MINI = parse_workload("mini")
RESIDENT = 2
SMS = 100
WARPS_OF = {"90": 64, "120": 48, "110": 48, "121": 48}


class OnSomeDevice(Function):
    """The entry with the facts that its compilation gives; residency is the driver's to tell."""

    def blocks_per_sm(self, threads: int, smem_bytes: int) -> int:
        return RESIDENT


def facts_on(arch: str) -> LaunchFacts:
    """Of the first product of `naive`, compiled for a device of this compute capability."""
    pytest.importorskip("cuda.bindings.driver")
    catalog = Catalog.load().on(f"sm_{arch}")
    plan = catalog.resolve(PlanRequest("naive"), MINI.dims, "cuda")
    step = next(step for step in catalog.steps(plan, MINI.dims) if step.site == "w1")
    assert step.kernel.launches is not None
    launch, *_ = step.kernel.launches(step.tasks, plan, MINI.dims)
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
    call = KernelLaunch(context, function, Geometry(launch.grid, launch.block, launch.smem_bytes), b"\0" * 8)
    (facts,) = launch_facts(context, [BoundStep(step, (call,))])
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
