"""Frozen records for kernels, phases and plans. Standard library only; nothing here computes costs.

Sizes are element counts, bytes end in `_bytes`, seconds in `_s`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from gputop.plan.launch_shape import LaunchShape
from gputop.plan.work import Work

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.floating[Any]]

Math = Literal["fp32", "tf32", "bf16"]
STORED_MATHS: tuple[Math, ...] = ("bf16",)
"""In which activations and the products' weights are stored too (`gputop.model.number_formats`)."""
Layout = Literal["row", "transposed"]
"""`row`: a weight is [out, in], one output's weights consecutive. `transposed`: [in, out]."""

Activation = Literal["relu", "gelu", "gelu_new"]
"""The function between the feed-forward products, named as Hugging Face names it: `gelu` is the exact form
(erf), `gelu_new` the approximation by tanh that GPT-2 was trained with."""

LAYERNORM_EPS = 1e-5
WORD_BYTES = 4

Verdict = Literal["FASTER", "SLOWER", "SAME", "UNRESOLVED"]


@dataclass(frozen=True, slots=True)
class Dims:
    """The model's sizes, the forms that it takes, and the question asked of it."""

    layers: int
    d_model: int
    heads: int
    d_ff: int
    seq: int
    vocab: int
    batch: int = 1
    activation: Activation = "relu"
    tied_head: bool = False
    """Whether the head multiplies by the token embedding instead of a weight of its own."""

    @property
    def d_head(self) -> int:
        return self.d_model // self.heads

    @property
    def tokens(self) -> int:
        """Rows of the token matrix: batch x seq."""
        return self.batch * self.seq


@dataclass(frozen=True, slots=True)
class WeightsFile:
    """Where a model's weights are read from, and what they are known by."""

    path: str = field(compare=False, repr=False)
    sha256: str
    """Of the whole file, in hexadecimal."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A named model with the seed of its weights and tokens."""

    name: str
    dims: Dims
    seed: int = 0
    weights: WeightsFile | None = None
    """None: they are drawn from the seed."""


@dataclass(frozen=True, slots=True)
class Site:
    """A phase at its number of rows: where a kernel is chosen."""

    name: str
    """`w1`, in a pruned last layer `w1@1`, `kv`, `q@1`."""
    phase: str
    rows: int
    """Rows of output: batch x seq, or batch where only the last token is asked for."""
    columns: int
    """Width of the output; for a GEMM its N."""
    inner: int
    """For a GEMM its K, else 0."""
    layers: tuple[int, int]
    """Half-open range of layers; (0, 1) for a phase that stands outside the layers."""
    folded: bool = False
    """Whether the weights after a layernorm hold its gain and shift: they are then no part of its work."""

    @property
    def count(self) -> int:
        """Instances in one pass."""
        return self.layers[1] - self.layers[0]


@dataclass(frozen=True, slots=True)
class View:
    """A rectangle of an activation buffer, by name; backends bind it to memory."""

    buffer: str
    slot: int
    """Which copy of the buffer: its layer when every layer is kept, 0 when timed."""
    rows: int
    columns: int
    ld: int
    """Elements from one row of the view to its next."""
    offset: int = 0
    """Elements from the slot's start to the view's first element."""


@dataclass(frozen=True, slots=True)
class WeightView:
    """The outputs [start, start + outs) of one weight tensor in the plan's layout, or of a vector."""

    tensor: str
    """`embedding position gain1 shift1 wqkv bqkv wo bo gain2 shift2 w1 b1 w2 b2 gainf shiftf whead bhead`."""
    layer: int
    """0 for tensors that stand outside the layers."""
    start: int
    outs: int
    ld: int = 1
    """Elements between consecutive rows as stored in the plan's layout; 1 for a vector."""
    offset: int = 0
    """Elements from the tensor's start (of that layer) to the first element."""


@dataclass(frozen=True, slots=True)
class Scratch:
    """Workspace private to one step, shared by all its instances."""

    name: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Task:
    """One instance of a phase with its operands: what a kernel is given and what the gate checks."""

    site: Site
    layer: int
    inputs: tuple[tuple[str, View | WeightView], ...]
    """Role -> operand. GEMM: `a w bias residual`; layernorm: `x gain shift`; attention: `q k v`;
    embed: `tokens embedding position`. A role that the plan does without is absent."""
    output: View
    activation: Activation | None = None
    """What is applied to the product and its bias, before the residual; None: nothing."""
    splits: int = 1
    """Parts into which the kernel is to divide the inner axis: the plan's choice of those that it offers."""

    def operand(self, role: str) -> View | WeightView | None:
        """The operand in this role, or None."""
        return dict(self.inputs).get(role)


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A tensor in global memory and the box of it that one bulk copy of the copy engine brings.

    Shared memory gets rows of 128 bytes with the 128-byte swizzle.
    """

    operand: View | WeightView
    """Whose first element the tensor's is."""
    sizes: tuple[int, ...]
    """In elements, innermost dimension first; five dimensions at most."""
    strides: tuple[int, ...]
    """Elements from one index to the next in every dimension but the innermost: multiples of 16 bytes."""
    box: tuple[int, ...]
    """In elements; at most 128 bytes in the innermost dimension and 256 in the others."""
    format: Literal["tf32", "bf16"] = "tf32"
    """What it holds: float32, rounded to TF32 on its way, or bf16."""


Argument = TensorMap | View | WeightView | Scratch | int | float | None
"""Kernel argument. A tensor map packs as 128 bytes, the next three and None (a null pointer) as 8, int i32,
float as f32."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel launch. `args` fill the kernel's single by-value struct: tensor maps, pointers, numbers."""

    entry: str
    grid: tuple[int, int, int]
    """(0, 0, 0) of a cooperative launch: one wave, (blocks that an SM holds of it x SMs, 1, 1)."""
    block: tuple[int, int, int]
    args: tuple[Argument, ...]
    source: str = ""
    """The .cu below kernels/, when it is not the kernel's own (pointwise helpers)."""
    smem_bytes: int = 0
    """Dynamic shared memory."""
    cluster: int = 1
    """Blocks of a cluster, along x."""
    cooperative: bool = False
    pdl: bool = False
    """In a plan with `pdl` it may start while the launch before drains: it waits before it reads."""
    library: str = ""
    """`cublas` or `cublaslt` instead of an entry of ours; then `entry` names the operation."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """One implementation of one or more phases."""

    name: str
    backend: str
    idea: str
    covers: tuple[str, ...]
    """Phases it can compute. With `fuses`, it computes all of them in one launch."""
    entries: tuple[str, ...] = ()
    """Functions in `source`; for cpu the function in the cpu backend's kernel table."""
    source: str = ""
    """`<family>/<nn>_<idea>.cu` below kernels/; empty for cpu and library kernels of ours."""
    record: str = ""
    """Of a user's own kernel: its TOML file below the folder that `--kernels` names."""
    splits: tuple[int, ...] = ()
    """Into how many parts it can divide the inner axis, from the fewest; empty if it divides nothing. Which
    of them a plan chose stands in the task (`Task.splits`), and is written `name/splits`."""
    blocks_per_sm: int = 1
    """With `splits`: how many blocks an SM should get if a plan does not say into how many parts."""
    fuses: bool = False
    stamped: bool = False
    """With `fuses`: it writes every task's output to memory and notes when each of its tasks ends, so that
    gate, model and phase table see them apart. The notes are a `Scratch` named `stamps`: of each task's
    end, and before them of the first one's begin, cycles and nanoseconds as two int64."""
    maths: tuple[Math, ...] = ("fp32", "tf32")
    """Of plans that it may serve. With bf16 it reads and stores as `gputop.model.number_formats` says."""
    layouts: tuple[Layout, ...] = ("row", "transposed")
    fused_stores: bool = False
    """Whether it can write bias, activation and residual in its own store."""
    library: str = ""
    min_arch: int = 80
    only_arch: str = ""
    """`sm_90`: its instructions exist there alone."""
    bitwise_row_invariant: bool = True
    """Whether equal rows of input give equal bits wherever they stand. A BLAS need not: it chooses code by
    a row's place in its block, and so rounds in another order."""
    repeats_bits: bool = True
    """Whether equal inputs give equal bits at every run. A library promises that for some code only."""
    limits: Callable[[Task, Plan, Dims], str | None] | None = None
    """Why it can't take this task (`needs K a multiple of 16, got 100`), or None."""
    launches: Callable[[tuple[Task, ...], Plan, Dims], tuple[Launch, ...]] | None = None
    """Given the tasks it covers in one go: one task, or with `fuses` several in pass order."""
    shapes: Callable[[tuple[Task, ...], Plan, Dims], tuple[LaunchShape, ...]] | None = None
    """What each of those launches asks of the chip, in the same order; of a stamped kernel, given one task,
    what that task asks.
    """


@dataclass(frozen=True, slots=True)
class KernelChoice:
    """A kernel by name, and into how many parts it divides the inner axis."""

    kernel: str
    splits: int | None = None
    """None if the kernel divides nothing, and in a request that leaves the number to the resolver."""

    def __str__(self) -> str:
        return self.kernel if self.splits is None else f"{self.kernel}/{self.splits}"


KernelKind = Literal["gemm", "attention", "pointwise", "other"]
"""Coarse class of a kernel, comparable between our passes and PyTorch's. `pointwise`: one row or element at a
time, layernorm and lookups included. `other`: unknown, or several kinds."""
KINDS: tuple[KernelKind, ...] = ("gemm", "attention", "pointwise", "other")


@dataclass(frozen=True, slots=True)
class Rounded:
    """A phase's exact output, and how far rounding alone may take each element from it: [rows, columns]."""

    value: Array
    """float64."""
    below: Array
    """How far an element may lie below its value; at least 0."""
    above: Array


@dataclass(frozen=True, slots=True)
class Phase:
    """A named step of the pass."""

    name: str
    title: str
    order: int
    work: Callable[[Site, Dims], Work]
    reference: Callable[[Mapping[str, Array], Task, Dims], Array]
    """float64 in, float64 out; operands by role, weights as [out, in]."""
    rounded: Callable[[Mapping[str, Array], Mapping[str, Array], Task, Dims, Math], Rounded]
    """(operands, slack, task, dims, math) -> the reference with its bounds. `slack`: of operands that are
    themselves rounded, how far each element is off; absent for those known exactly. `math`: of the products,
    fp32 for a phase that has none."""
    sites: Callable[[Dims, bool], tuple[Site, ...]]
    """(dims, pruned) -> where it runs."""
    task: Callable[[Site, int, Plan, Dims, bool], Task]
    """(site, layer, plan, dims, keep_layers) -> operands."""
    tolerances: Mapping[Math, float]
    """Worst-row relative error allowed, by the plan's math."""
    place: Literal["before", "layer", "after"] = "layer"
    """Whether it runs once before the layers, in each, or once after them."""
    kind: KernelKind = "pointwise"


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """A plan as a user asks for it, not yet resolved."""

    rung: str
    sets: tuple[tuple[str, str], ...] = ()
    """Toggle -> value."""
    uses: tuple[tuple[str, KernelChoice], ...] = ()
    """Site or phase -> kernel."""

    def with_set(self, toggle: str, value: str) -> PlanRequest:
        """The same with a toggle set, whatever it was set to."""
        kept = tuple(item for item in self.sets if item[0] != toggle)
        return replace(self, sets=(*kept, (toggle, value)))

    def __str__(self) -> str:
        """The plan string that parses to it: RUNG[,TOGGLE=VALUE...][,SITE:KERNEL[/SPLITS]...]."""
        sets = (f"{name}={value}" for name, value in self.sets)
        uses = (f"{site}:{choice}" for site, choice in self.uses)
        return ",".join((self.rung, *sets, *uses))


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that fixes a runnable pass.

    Two plans are equal if they are the same pass, whatever rung and changes led to it.
    """

    backend: str
    request: PlanRequest = field(compare=False)
    """Its rung with the fewest changes that give this plan."""
    dispatch: tuple[tuple[str, KernelChoice], ...]
    """Every site of the pass -> kernel."""
    layout: Layout = "row"
    math: Math = "fp32"
    fold: bool = False
    """Layernorm scale and shift folded into the next weights."""
    fused_stores: bool = False
    fused_qkv: bool = False
    prune: bool = False
    graph: bool = False
    pdl: bool = False
    carveout: Literal["auto", "shared"] = "auto"
    """How an SM's memory is divided between L1 and shared memory; `shared`: as much as possible shared."""
    threads: Literal["1", "all"] = "1"
    """BLAS threads of the cpu backend."""
    batch: int = 1
    peer: str = ""
    """A framework that runs the whole pass instead of our kernels."""

    @property
    def rung(self) -> str:
        """Id of the rung that it was asked for by."""
        return self.request.rung

    @property
    def word(self) -> str:
        """The plan string, as `compare` takes it and files name it."""
        return str(self.request)

    @property
    def kernels(self) -> tuple[KernelChoice, ...]:
        """The kernels of its dispatch, once each, in pass order."""
        return tuple(dict.fromkeys(choice for _, choice in self.dispatch))

    def change(self, **fields: Any) -> Plan:
        return replace(self, **fields)


@dataclass(frozen=True, slots=True)
class Step:
    """One kernel and the consecutive tasks it computes: what a backend binds and times."""

    kernel: Kernel
    tasks: tuple[Task, ...]

    @property
    def site(self) -> str:
        """`w1`, or for a fused kernel `ln2+w1`; a site that occurs several times stands once."""
        return "+".join(dict.fromkeys(task.site.name for task in self.tasks))

    @property
    def choice(self) -> KernelChoice:
        """The kernel with its number of parts, as plans and tables name it."""
        return KernelChoice(self.kernel.name, self.tasks[0].splits if self.kernel.splits else None)

    def apart(self) -> tuple[Step, ...]:
        """One step a task where the kernel stamps its tasks, else this one: what is checked and timed."""
        if not self.kernel.stamped:
            return (self,)
        return tuple(Step(self.kernel, (task,)) for task in self.tasks)
