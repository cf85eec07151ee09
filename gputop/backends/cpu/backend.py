"""The cpu as a device: facts, ceilings, memory, and plans prepared on it."""

from __future__ import annotations

from collections.abc import Mapping

from gputop.backends.base import Say
from gputop.backends.cpu import activation_calls, ceilings, machine, own_kernels, warmup
from gputop.backends.cpu.kernels import Bind, function_of
from gputop.backends.cpu.memory import Floats, own_copy
from gputop.backends.cpu.prepared import CpuPrepared, LastPass
from gputop.model import activations, weights
from gputop.plan.types import WORD_BYTES, Dims, Kernel, Layout, Plan, Site, Step, Task, Workload
from gputop.planner.registry import Registry
from gputop.planner.resolver import plan_dims
from gputop.results.kernel_report import MachineCode
from gputop.results.records import Ceilings, DeviceFacts, Health
from gputop.util import host_cpu
from gputop.util.errors import UsageError
from gputop.validation import gate

THREADS_UNKNOWN = f"{machine.UNKNOWN_BLAS}, which can't tell it how many to run"
MASTER_FORM: tuple[Layout, bool] = ("row", False)
"""Layout and fold of the canonical weights, which plans of this form use as they are."""


class CpuBackend:
    """See `backends.base.Backend`."""

    name = "cpu"
    cache_state = "in-situ"
    aa_minimum = 0.02
    """A core that others share is noisier than a clock-locked GPU."""

    def __init__(self, workload: Workload, registry: Registry) -> None:
        self.workload = workload
        self._registry = registry
        self.timer_floor_s = ceilings.timer_floor_s()
        self._ceilings: Ceilings | None = None
        self._prepared: list[CpuPrepared] = []
        self._last_pass = LastPass()
        self._has_master = warmup.begin(workload)
        """Whether the canonical weights were drawn, which stay, or are being."""
        self._stored: dict[tuple[Layout, bool], dict[str, Floats]] = {}
        """Layout and fold -> the weights in that form."""

    def facts(self) -> DeviceFacts:
        return DeviceFacts(
            backend=self.name,
            name=machine.processor(),
            arch=machine.blas().kernels,
            sm_count=host_cpu.whole_cores(),
            l2_bytes=machine.last_cache_bytes(),
            memory_bytes=machine.memory_bytes(),
            versions=machine.versions(),
        )

    def health(self) -> Health:
        return Health(sm_clock_hz=machine.clock_hz())

    def ceilings(self, force: bool, say: Say) -> Ceilings:
        kept = None if force else self.kept_ceilings()
        if kept is None:
            kept = self._ceilings = ceilings.measure(self._master().values(), say)
            ceilings.save(kept)
        return kept

    def kept_ceilings(self) -> Ceilings | None:
        if self._ceilings is None:
            self._ceilings = ceilings.load()
        return self._ceilings

    def refuses(self, plan: Plan) -> str | None:
        """NumPy runs whatever the catalog lets through; a C function of the user's own needs a compiler."""
        own = any(self._registry.kernel(choice.kernel).record for _, choice in plan.dispatch)
        return own_kernels.why_no_compiler() if own else None

    def fixed_toggles(self) -> Mapping[str, str]:
        """Threads, if the BLAS can't be told how many to run, or all are one."""
        all_threads = machine.blas().all_threads
        if all_threads is None:
            return {"threads": f"{THREADS_UNKNOWN}, so two plans would be one pass"}
        if all_threads == 1:
            return {"threads": "the BLAS may run 1 thread here, so two plans would be one pass"}
        return {}

    def note(self, plan: Plan) -> str:
        """Return how many threads `all` means."""
        all_threads = machine.blas().all_threads
        if all_threads is None:
            return f"threads unknown: {THREADS_UNKNOWN}"
        plural = "" if all_threads == 1 else "s"
        return f"threads=all: {all_threads} BLAS thread{plural}" if plan.threads == "all" else ""

    def need_bytes(self, plan: Plan) -> int:
        """Return an upper bound: a set of weights, activations as timed and as kept for the gate,
        workspaces, the gate's.

        Adds the canonical weights if they are not there yet and the plan stores them in another form.
        """
        dims = plan_dims(self.workload, plan)
        sets = 1 if self._has_master or (plan.layout, plan.fold) == MASTER_FORM else 2
        scores = (2 * (dims.heads + 1) + 1) * dims.seq * dims.seq * WORD_BYTES
        workspaces = scores + 2 * activation_calls.scratch_bytes(dims)
        kept, timed = (activations.activation_bytes(dims, plan.prune, keep) for keep in (True, False))
        return sets * weights.weight_bytes(dims) + kept + timed + workspaces + gate.need_bytes(dims)

    def free_bytes(self) -> int:
        return machine.free_bytes()

    def prepare(self, plan: Plan, steps: tuple[Step, ...], say: Say) -> CpuPrepared:
        """Plans that store their weights alike share them; a second copy of one plan shares nothing."""
        dims = plan_dims(self.workload, plan)
        say(f"placing the weights of {plan.word}")
        self._prepared = [other for other in self._prepared if not other.closed]
        arrays = self._weights(plan, dims)
        if any(other.plan == plan for other in self._prepared):
            arrays = own_copy(arrays)
        blas = machine.blas()
        one_thread = plan.threads == "1" and blas.all_threads is not None
        count = 1 if one_thread else blas.all_threads
        prepared = CpuPrepared(
            plan=plan,
            dims=dims,
            steps=steps,
            kept_steps=self._registry.steps(plan, dims, keep_layers=True),
            weights=arrays,
            timed_tokens=gate.timed_tokens(self.workload, dims),
            threads=lambda: blas.threads(count),
            one_thread=one_thread,
            last_pass=self._last_pass,
            timer_floor_s=self.timer_floor_s,
            table={step.kernel.name: self._bind_of(step.kernel) for step in steps},
            digests={step.kernel.name: self._digest(step.kernel) for step in steps if step.kernel.record},
            deadline_s=own_kernels.deadline_s(self._registry.work(self._sites(plan, dims), dims)),
        )
        self._prepared.append(prepared)
        return prepared

    def take_registry(self, registry: Registry) -> None:
        """C functions are loaded by their text, so there is nothing to forget."""
        self._registry = registry

    def machine_code(self, kernel: Kernel, task: Task, plan: Plan, dims: Dims) -> MachineCode | None:
        """A C function is compiled; nothing is read of what it was compiled to."""
        if kernel.record:
            own_kernels.bind_of(kernel, self._registry.kernels_dir, self.workload.dims.activation)
        return None

    def _bind_of(self, kernel: Kernel) -> Bind:
        if kernel.record:
            return own_kernels.bind_of(kernel, self._registry.kernels_dir, self.workload.dims.activation)
        return function_of(kernel)

    def _digest(self, kernel: Kernel) -> str:
        folder, activation = self._registry.kernels_dir, self.workload.dims.activation
        return own_kernels.code_digest(kernel, folder, activation)

    def _sites(self, plan: Plan, dims: Dims) -> tuple[Site, ...]:
        return self._registry.sites(dims, plan.prune, plan.fold)

    def close(self) -> None:
        for prepared in self._prepared:
            prepared.close()
        self._prepared.clear()
        self._stored.clear()

    def _weights(self, plan: Plan, dims: Dims) -> dict[str, Floats]:
        """Return the weights as the plan stores them. Drops sets that no prepared plan uses."""
        used = {(other.plan.layout, other.plan.fold) for other in self._prepared}
        self._stored = {form: arrays for form, arrays in self._stored.items() if form in used}
        form = (plan.layout, plan.fold)
        if form not in self._stored:
            self._stored[form] = weights.effective(self._master(), plan, dims)
        return self._stored[form]

    def _master(self) -> dict[str, Floats]:
        self._has_master = True
        return warmup.master(self.workload)


def available() -> str | None:
    """NumPy is all it needs: always usable."""
    return None


def open_backend(
    workload: Workload, device: str | None, say: Say, registry: Registry | None = None
) -> CpuBackend:
    """Raise UsageError for a device: there is one cpu."""
    if device is not None:
        raise UsageError(f"The cpu backend has no device {device!r}: leave --device out.")
    return CpuBackend(workload, registry or Registry.load())
