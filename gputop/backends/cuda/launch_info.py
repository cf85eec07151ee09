"""What is known of each site's kernel once it is loaded: geometry, registers, occupancy, waves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from gputop.backends.cuda.bind import BoundStep, Call
from gputop.backends.cuda.compiler.code_facts import code_facts
from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.graph import KernelNode, kernel_nodes
from gputop.backends.cuda.runtime.launch import KernelLaunch
from gputop.perf import occupancy
from gputop.plan.launch_shape import LaunchFacts, LaunchInfo
from gputop.util.errors import UsageError


def launch_info(context: Context, bound: Sequence[BoundStep]) -> tuple[LaunchInfo, ...]:
    """One per site that is timed, in pass order. Of a site of several launches, the first is described.

    A stamped kernel's one launch counts for the first of its sites; the others show its geometry.
    """
    found: dict[str, LaunchInfo] = {}
    described: dict[str, LaunchInfo] = {}
    for step in bound:
        site = step.step.site
        if site not in described:
            described[site] = _facts(context, step)
        facts = described[site]
        for position, part in enumerate(step.step.apart()):
            known = found.get(part.site) or replace(facts, site=part.site, launches=0)
            launches = 0 if position else facts.launches
            found[part.site] = replace(known, launches=known.launches + launches)
    return tuple(found.values())


def kernel_counts(context: Context, bound: Sequence[BoundStep]) -> tuple[int, ...]:
    """Kernels that each step launches: a library call may launch several."""
    by_site: dict[str, int] = {}
    for step in bound:
        if step.step.site not in by_site:
            by_site[step.step.site] = _facts(context, step).launches
    return tuple(by_site[step.step.site] for step in bound)


def _facts(context: Context, step: BoundStep) -> LaunchInfo:
    """Read the facts of one instance of a step.

    It must have run before: a library loads its kernels at the first call.
    """
    lead = step.calls[0]
    if isinstance(lead, KernelLaunch):
        return _own(context, step, lead)
    return _library(context, step)


def _own(context: Context, step: BoundStep, lead: KernelLaunch) -> LaunchInfo:
    geometry, function = lead.geometry, lead.function
    facts = function.facts
    resident = function.blocks_per_sm(geometry.threads, geometry.smem_bytes)
    clustered = lead.clustered_blocks()
    warps = -(-geometry.threads // 32)
    known = bool(resident) and clustered != 0
    return LaunchInfo(
        site=step.step.site,
        kernel=str(step.step.choice),
        launches=len(step.calls),
        grid=shape(geometry.grid),
        block=shape(geometry.block),
        registers=facts.registers,
        smem_bytes=facts.smem_bytes + geometry.smem_bytes,
        spill_bytes=facts.spill_bytes,
        occupancy_theoretical=resident * warps / _warps_per_sm(context),
        occupancy_grid=_given(context, geometry.blocks, resident) * warps / _warps_per_sm(context),
        occupancy_limiters=_limiters(context, lead),
        waves=occupancy.waves(geometry.blocks, resident, context.sm_count, clustered) if known else None,
        warps_in_flight=float(
            occupancy.warps_in_flight(
                geometry.blocks, geometry.threads, resident, context.sm_count, clustered
            )
        )
        if known
        else None,
        blocks=geometry.blocks,
        blocks_per_sm=resident if known else None,
        cubin=function.cubin.digest,
        each=tuple(facts for call in step.calls for facts in _launches(context, step, call)),
    )


def _warps_per_sm(context: Context) -> int:
    """Ask the device, which may be newer than the table of architectures."""
    properties = context.properties
    return int(properties["maxThreadsPerMultiProcessor"]) // int(properties["warpSize"])


def _given(context: Context, blocks: int, resident: int) -> int:
    """Blocks that the SM with most of them holds at once."""
    return min(resident, -(-blocks // context.sm_count))


def _limiters(context: Context, lead: KernelLaunch) -> tuple[str, ...]:
    facts = lead.function.facts
    try:
        return occupancy.theoretical(
            context.arch,
            lead.geometry.threads,
            facts.registers or 0,
            facts.smem_bytes,
            lead.geometry.smem_bytes,
            barriers=facts.barriers or 0,
            cluster=lead.geometry.cluster,
        ).limiters
    except UsageError:
        # An architecture newer than the table: the driver still counts, but nobody says what limits.
        return ()


def _library(context: Context, step: BoundStep) -> LaunchInfo:
    every = kernel_nodes(context, step.calls, step.label)
    nodes = kernel_nodes(context, step.calls[:1], step.label)
    main = nodes[0] if nodes else None
    held = _held(context, main) if main else None
    warps = -(-prod(main.block) // 32) if main else 0
    return LaunchInfo(
        site=step.step.site,
        kernel=str(step.step.choice),
        launches=len(every),
        library_kernel="; ".join(dict.fromkeys(node.name for node in nodes)) or None,
        grid=shape(main.grid) if main else None,
        block=shape(main.block) if main else None,
        registers=main.registers if main else None,
        smem_bytes=main.smem_bytes if main else None,
        occupancy_theoretical=held.warps_per_sm / _warps_per_sm(context) if held else None,
        occupancy_grid=_given(context, prod(main.grid), held.blocks_per_sm) * warps / _warps_per_sm(context)
        if main and held
        else None,
        occupancy_limiters=held.limiters if held else (),
        each=tuple(_node(context, node) for node in every),
    )


def _launches(context: Context, step: BoundStep, call: Call) -> tuple[LaunchFacts, ...]:
    """What one call launches: a call of ours one kernel, a library's as many as it likes."""
    if not isinstance(call, KernelLaunch):
        return tuple(_node(context, node) for node in kernel_nodes(context, (call,), step.label))
    geometry, function = call.geometry, call.function
    return (
        LaunchFacts(
            name=function.name,
            grid=geometry.grid,
            block=geometry.block,
            registers=function.facts.registers,
            smem_bytes=function.facts.smem_bytes + geometry.smem_bytes,
            blocks_per_sm=function.blocks_per_sm(geometry.threads, geometry.smem_bytes) or None,
            clustered_blocks=call.clustered_blocks(),
            code=code_facts(function.cubin, function.name),
        ),
    )


def _node(context: Context, node: KernelNode) -> LaunchFacts:
    held = _held(context, node)
    return LaunchFacts(
        name=node.name,
        grid=node.grid,
        block=node.block,
        registers=node.registers,
        smem_bytes=node.smem_bytes,
        blocks_per_sm=held.blocks_per_sm if held else None,
    )


def _held(context: Context, node: KernelNode) -> occupancy.Occupancy | None:
    """By the kernel's dynamic shared memory alone: what it has besides, the graph does not say."""
    if node.registers is None:
        return None
    try:
        held = occupancy.theoretical(context.arch, prod(node.block), node.registers, 0, node.smem_bytes)
    except UsageError:
        # An architecture newer than the table.
        return None
    return held if held.blocks_per_sm else None


def shape(extent: tuple[int, int, int]) -> str:
    """`96x16x1`."""
    return "x".join(map(str, extent))
