"""One CUDA device, opened for one workload: facts, health, ceilings, memory, and plans prepared on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

from gputop.backends.base import Prepared, Say
from gputop.backends.cuda.bind import Binder, Libraries, plan_launches
from gputop.backends.cuda.ceilings import measure as ceilings_of
from gputop.backends.cuda.compiler.nvrtc import toolchain
from gputop.backends.cuda.compiler.sources import Sources
from gputop.backends.cuda.machine_code import machine_code
from gputop.backends.cuda.memory import scratch_bytes
from gputop.backends.cuda.packages import several_cupys
from gputop.backends.cuda.prepared import CudaPrepared
from gputop.backends.cuda.refusal import refusal
from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.device_warmup import awake
from gputop.backends.cuda.runtime.status_codes import explained
from gputop.backends.cuda.runtime.utility_kernels import Tools
from gputop.backends.cuda.separate.messages import Prepare
from gputop.backends.cuda.separate.prepared import SeparatePrepared
from gputop.backends.cuda.timing.cupti import open_recorder
from gputop.backends.cuda.timing.events import Timer
from gputop.backends.cuda.timing.sentinel import LaunchSentinel
from gputop.backends.cuda.weights import DeviceWeights, check_fill, plan_weight_bytes
from gputop.model import activations
from gputop.plan.types import Dims, Kernel, Plan, Step, Task, Workload
from gputop.planner.registry import Registry
from gputop.planner.resolver import plan_dims
from gputop.results.kernel_report import MachineCode
from gputop.results.records import Ceilings, DeviceFacts, Health
from gputop.util.startup_trace import mark
from gputop.validation import gate

LIBRARY_BYTES = 64 << 20
"""What the libraries take for their workspaces when a plan first uses them."""
CONTEXT_BYTES = 640 << 20
"""What a process takes on the device for itself, with the libraries' code."""


class CudaBackend:
    """See `backends.base.Backend`."""

    name = "cuda"
    cache_state = "in-situ"
    aa_minimum = 0.003

    def __init__(self, workload: Workload, device: str | None, say: Say, registry: Registry) -> None:
        """Raise Unavailable if the device is missing, UsageError if memory or a probe is refused."""
        mark("cuda: the device")
        self.workload = workload
        found = awake(device)
        self._device, self._nvml = found.device, found.nvml
        say(f"opening {self._device.name}")
        self._context = Context(self._device.index)
        mark("cuda: kernels and rungs")
        found.claim()
        self._sources = Sources.before_ours(registry.kernels_dir, workload.dims.activation)
        self._registry = registry
        self._tools = Tools(self._context, self._sources)
        # Clocks and ceilings are measured by our kernels, whatever a user's folder has of them.
        self._measuring = Tools(self._context, Sources.before_ours())
        say("comparing weights drawn on the device with NumPy's")
        check_fill(self._context, self._tools, workload)
        mark("cuda: the timer's floor")
        self._timer = Timer(self._context, self._measuring)
        self.timer_floor_s = self._timer.floor_s
        self._sentinel = LaunchSentinel(self._context, self._measuring, self._timer)
        self._libraries = Libraries(self._context, self._tools, self._timer)
        self._binder = Binder(self._context, self._sources, self._libraries)
        self._ceilings: Ceilings | None = None
        mark("cuda: CUPTI")
        self._recorder, self._recorder_note = open_recorder(self._context, self._measuring)
        mark("cuda: facts")
        self._facts = self._read_facts()

    @property
    def context(self) -> Context:
        """The device as this process holds it."""
        return self._context

    def facts(self) -> DeviceFacts:
        return self._facts

    def health(self) -> Health:
        return replace(self._nvml.health(), launch_s=self._sentinel.launch_s())

    def ceilings(self, force: bool, say: Say) -> Ceilings:
        kept = None if force else self.kept_ceilings()
        if kept is None:
            probe = ceilings_of.Prober(
                self._context, self._measuring, self._timer, self._libraries, self._nvml, self._facts
            )
            kept = self._ceilings = probe.measure(say)
            ceilings_of.save(self._facts, kept)
        return kept

    def kept_ceilings(self) -> Ceilings | None:
        if self._ceilings is None:
            self._ceilings = ceilings_of.load(self._facts)
        return self._ceilings

    def refuses(self, plan: Plan) -> str | None:
        names = dict.fromkeys(choice.kernel for _, choice in plan.dispatch)
        kernels = [self._registry.kernel(name) for name in names]
        return refusal(plan, kernels, self._context.arch, self._sources)

    def fixed_toggles(self) -> Mapping[str, str]:
        """A GPU's toggles are all gputop's own."""
        return {}

    def note(self, plan: Plan) -> str:
        """A plan says all of itself."""
        return ""

    def need_bytes(self, plan: Plan) -> int:
        """Weights, activations for timing and with every layer kept for the gate, and workspaces of both."""
        dims = plan_dims(self.workload, plan)
        steps = self._registry.steps(plan, dims)
        workspaces = sum(scratch_bytes(plan_launches(steps, plan, dims)).values())
        kept, timed = (activations.activation_bytes(dims, plan.prune, keep) for keep in (True, False))
        library = LIBRARY_BYTES if plan.peer or any(step.kernel.library for step in steps) else 0
        weights = plan_weight_bytes(dims, plan)
        # What is computed in bf16 is rounded from these to copies.
        copies = weights // 2 if plan.math == "bf16" else 0
        process = CONTEXT_BYTES if is_separate(plan, steps) else 0
        return weights + copies + kept + timed + 2 * workspaces + library + process

    def free_bytes(self) -> int:
        return self._context.free_bytes()

    def prepare(self, plan: Plan, steps: tuple[Step, ...], say: Say) -> Prepared:
        """Plans whose libraries would slow down the launches of all others have a process of their own."""
        if not is_separate(plan, steps):
            return self.prepare_here(plan, steps, say)
        say(f"starting a process for {plan.word}")
        before = self._nvml.pids()
        request = Prepare(self.workload, self._device.uuid, self._registry.kernels_dir, plan)
        separate = SeparatePrepared(request, steps, say)
        self._nvml.own(self._nvml.appeared_since(before) | {separate.pid})
        return separate

    def prepare_here(self, plan: Plan, steps: tuple[Step, ...], say: Say) -> Prepared:
        """Prepare a plan in this process, whatever it calls."""
        dims = plan_dims(self.workload, plan)
        sites = self._registry.sites(dims, plan.prune, plan.fold)
        self._context.expect(self._registry.work(sites, dims).flops)
        say(f"drawing the weights of {plan.word}")
        # A framework reads weights as it defines them, whatever the rung before it did to ours, and rounds
        # its own copies.
        stored = plan.change(layout="row", fold=False, math="fp32") if plan.peer else plan
        weights = DeviceWeights(self._context, self._tools, self.workload, stored, dims)
        timed_tokens = gate.timed_tokens(self.workload, dims)
        if plan.peer:
            from gputop.backends.cuda.torch.baseline import prepare_peer

            peer: Prepared = prepare_peer(
                self._context, self._timer, weights, plan, dims, timed_tokens, self._recorder, say
            )
            return peer
        say(f"compiling the kernels of {plan.word}")
        return CudaPrepared(
            context=self._context,
            tools=self._tools,
            timer=self._timer,
            binder=self._binder,
            weights=weights,
            plan=plan,
            dims=dims,
            steps=steps,
            kept_steps=self._registry.steps(plan, dims, keep_layers=True),
            timed_tokens=timed_tokens,
            recorder=self._recorder,
            say=say,
        )

    def take_registry(self, registry: Registry) -> None:
        self._registry = registry
        self._context.forget(registry.kernels_dir)

    def machine_code(self, kernel: Kernel, task: Task, plan: Plan, dims: Dims) -> MachineCode | None:
        return machine_code(kernel, task, plan, dims, self._context.arch, self._sources)

    def close(self) -> None:
        self._libraries.close()
        self._context.close()
        self._nvml.close()

    def _read_facts(self) -> DeviceFacts:
        properties = self._context.properties
        index, uuid = self._device.index, self._device.uuid
        return DeviceFacts(
            backend=self.name,
            name=self._device.name,
            uuid=uuid,
            index=index,
            driver=self._nvml.driver(),
            arch=f"sm_{self._context.arch}",
            sm_count=self._context.sm_count,
            l2_bytes=self._context.l2_bytes,
            memory_bytes=int(properties["totalGlobalMem"]),
            versions=self._versions(),
            notes=(*self._nvml.notes(), *self._recorder_note, *_package_notes()),
        )

    def _versions(self) -> str:
        import cupy

        with explained("reading versions"):
            driver = _cuda_version(cupy.cuda.runtime.driverGetVersion())
        parts = (
            f"CUDA driver {driver}",
            f"NVRTC {toolchain().version}",
            f"cupy {cupy.__version__}",
            f"cuda-bindings {_distribution('cuda-bindings')}",
        )
        return ", ".join(parts)


def is_separate(plan: Plan, steps: tuple[Step, ...]) -> bool:
    """Return whether a plan calls a library that changes the cost of later launches: PyTorch, or cuBLAS,
    which may split products.
    """
    return bool(plan.peer) or any(step.kernel.library == "cublas" for step in steps)


def _package_notes() -> tuple[str, ...]:
    several = several_cupys()
    return (f"{several[0]}: {several[1]}",) if several else ()


def _cuda_version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _distribution(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "of unknown version"
