"""What a change of a measured plan would do by the model: other sizes, math, kernel or device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from gputop.perf.block_shape import BlockShape
from gputop.perf.gpu_specs import GpuModel
from gputop.plan.launch_shape import LaunchInfo
from gputop.plan.types import Dims, Plan, PlanRequest
from gputop.planner.kernel_calls import launches_of
from gputop.planner.resolver import Resolver
from gputop.results.phase_facts import block_shape, extent_of, phases_of
from gputop.results.records import Ceiling, Ceilings, DeviceFacts, PlanResult, Row
from gputop.results.whatif import SiteChange, WhatIf
from gputop.session.cost_model import Machine, SiteModel, modelled_s, site_models

DATASHEET_CEILINGS = {
    "dram_read": "B/s", "fp32": "FLOP/s", "tf32_mma": "FLOP/s", "bf16_mma": "FLOP/s",
    "tf32_wgmma": "FLOP/s", "bf16_wgmma": "FLOP/s",
}  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """A pass on a device: what the model is asked of."""

    resolver: Resolver
    plan: Plan
    dims: Dims
    machine: Machine

    @classmethod
    def of(cls, resolver: Resolver, request: PlanRequest, dims: Dims, machine: Machine) -> Setting:
        """Resolve a request for a device. Raise UsageError for a plan that can't be there."""
        facts = machine.facts
        known = resolver.on(facts.arch, facts.sm_count)
        plan = known.resolve(request, dims, known.rung(request.rung).backend)
        return cls(known, plan, replace(dims, batch=plan.batch), machine)

    @classmethod
    def recorded(cls, resolver: Resolver, plan: Plan, dims: Dims, machine: Machine) -> Setting:
        """Return a plan as it was recorded."""
        facts = machine.facts
        return cls(resolver.on(facts.arch, facts.sm_count), plan, replace(dims, batch=plan.batch), machine)

    def models(self, infos: Mapping[str, LaunchInfo]) -> tuple[SiteModel, ...]:
        """Return the model of each site; `infos` of kernels that were prepared may be empty."""
        steps = self.resolver.steps(self.plan, self.dims)
        return site_models(self.resolver, self.plan, self.dims, steps, self.machine, infos)

    def shape(self, site: str, measured: Row | None) -> BlockShape | None:
        """Return what a site's blocks need here: grid and block by its record, registers as measured.

        None for a library's kernel, a site without launches, or a kernel whose registers nobody measured.
        """
        step = next((step for step in self.resolver.steps(self.plan, self.dims) if step.site == site), None)
        if step is None or step.kernel.launches is None or measured is None or measured.registers is None:
            return None
        if measured.kernel is None or measured.kernel.split("/")[0] != step.kernel.name:
            return None
        main = launches_of(step, self.plan, self.dims)[0]
        blocks, threads = (extent_of("x".join(map(str, extent))) for extent in (main.grid, main.block))
        if main.library or not blocks or not threads:
            return None
        return BlockShape(threads, measured.registers, measured.smem_bytes or main.smem_bytes, blocks)


def what_if(before: Setting, after: Setting, lane: PlanResult, source: str = "") -> WhatIf:
    """Return each site of a measured plan beside the same of a changed one.

    `lane` holds the measured rows of `before`. Registers and shared memory are those that were measured.
    """
    rows = {row.phase: row for row in phases_of(lane)}
    infos = {site: _launch_info(row) for site, row in rows.items()}
    same_device = before.machine.facts == after.machine.facts
    kept = infos if same_device and before.dims == after.dims else {}
    was, will_be = before.models(infos), {site.name: site for site in after.models(_unchanged(kept, after))}
    sites = tuple(
        SiteChange(
            site.name,
            (str(site.choice), str(will_be[site.name].choice)),
            rows[site.name].time_s if site.name in rows else None,
            (site.floor.value_s, will_be[site.name].floor.value_s),
            (modelled_s((site,)), modelled_s((will_be[site.name],))),
            same_device,
            (
                block_shape(rows[site.name]) if site.name in rows else None,
                after.shape(site.name, rows.get(site.name)),
            ),
        )
        for site in was
        if site.name in will_be
    )
    return WhatIf(
        (before.plan.word, after.plan.word),
        (before.machine.facts.name, after.machine.facts.name),
        source,
        sites,
        (modelled_s(was), modelled_s(will_be.values())),
        lane.device_s,
        (before.dims.tokens, after.dims.tokens),
    )


def datasheet_machine(model: GpuModel) -> Machine:
    """Return a card as its vendor describes it: it has no latencies and no cost of a launch."""
    items: Iterable[Ceiling] = (
        Ceiling(name, value, unit, f"data sheet: {model.source}", model.boost_hz)  # type: ignore[arg-type]
        for name, unit in DATASHEET_CEILINGS.items()
        if (value := model.get(name)) is not None
    )
    facts = DeviceFacts(
        backend="cuda", name=f"NVIDIA {model.name}", arch=model.arch, sm_count=model.sm_count,
        l2_bytes=model.l2_bytes,
    )  # fmt: skip
    return Machine(facts, Ceilings(facts.name, None, "", tuple(items)), model.boost_hz)


def _unchanged(infos: Mapping[str, LaunchInfo], after: Setting) -> dict[str, LaunchInfo]:
    """Return what is known of launches whose kernel the changed plan has at the same site."""
    kernels = {step.site: str(step.choice) for step in after.resolver.steps(after.plan, after.dims)}
    return {site: info for site, info in infos.items() if kernels.get(site) == info.kernel}


def _launch_info(row: Row) -> LaunchInfo:
    return LaunchInfo(
        site=row.phase,
        kernel=row.kernel or "",
        launches=row.launches or 0,
        library_kernel=row.library_kernel,
        grid=row.grid,
        block=row.block,
        registers=row.registers,
        smem_bytes=row.smem_bytes,
        spill_bytes=row.spill_bytes,
        occupancy_theoretical=row.occupancy_theoretical,
        waves=row.waves,
        warps_in_flight=row.warps_in_flight,
        cubin=row.cubin,
        blocks=extent_of(row.grid),
        blocks_per_sm=None,
    )
