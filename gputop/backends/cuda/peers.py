"""Frameworks that run the whole pass instead of us: PyTorch, eager and compiled, on our own weights.

They read the weights that were drawn for them through DLPack, run on our stream, and are gated and
timed like any plan, as a whole only.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from statistics import fmean
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from gputop.backends.base import PassTimes, Say, Trace
from gputop.backends.cuda.context import Context
from gputop.backends.cuda.faults import explained
from gputop.backends.cuda.packages import TORCH
from gputop.backends.cuda.timing import Timer
from gputop.backends.cuda.weights import DeviceWeights
from gputop.errors import BadInput, NotHere
from gputop.spec import LAYERNORM_EPS, Dims, LaunchFacts, Plan, Step
from gputop.weights import TENSORS, Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Tokens = NDArray[np.int32]

WARM_PASSES = 4
"""torch.compile in reduce-overhead mode compiles in the first pass, warms and records in the next two."""
STILL_S = 5.0
"""How often a long compilation says that it goes on."""
COMPILED = "torch-compile"
PEERS = ("torch-eager", COMPILED)


def prepare_peer(
    context: Context,
    timer: Timer,
    weights: DeviceWeights,
    plan: Plan,
    dims: Dims,
    tokens: Tokens,
    say: Say,
) -> TorchPrepared:
    """`weights`: in the row layout, unfolded. NotHere without the framework, with the extra that has it."""
    if plan.peer not in PEERS:
        raise BadInput(f"Peer {plan.peer!r} is not known. Known: {', '.join(PEERS)}.")
    try:
        import torch
    except ImportError:
        raise NotHere(TORCH.sentence) from None
    if not torch.cuda.is_available():
        raise NotHere("PyTorch sees no CUDA device here; install a build of it for CUDA.")
    return TorchPrepared(torch, context, timer, weights, plan, dims, tokens, say)


class TorchPrepared:
    """See `backends.base.Prepared`: no steps, no phases, no trace."""

    steps: tuple[Step, ...] = ()

    def __init__(
        self,
        torch: Any,
        context: Context,
        timer: Timer,
        weights: DeviceWeights,
        plan: Plan,
        dims: Dims,
        tokens: Tokens,
        say: Say,
    ) -> None:
        self.plan = plan
        self._torch = torch
        self._context = context
        self._timer = timer
        self._weights = weights
        self._device = torch.device("cuda", context.index)
        torch.cuda.set_device(self._device)
        self._stream = torch.cuda.ExternalStream(context.stream.ptr, device=self._device)
        context.synchronize("drawing the weights")
        with explained(f"the weights of {plan.peer}"):
            model = _model(torch, weights, dims, plan)
        self._forward: Callable[[Any], Any] = model
        if plan.peer == COMPILED:
            self._forward = torch.compile(model, mode="reduce-overhead", fullgraph=True, dynamic=False)
        shape = (dims.batch, dims.seq)
        host, self._host_at = context.mapped(dims.tokens, ctypes.c_int32)
        self._host_tokens = torch.from_numpy(np.ctypeslib.as_array(host).reshape(shape))
        self._timed = np.ascontiguousarray(tokens.reshape(shape))
        self._host_tokens.numpy()[:] = self._timed
        self._tokens = torch.empty(shape, dtype=torch.int32, device=self._device)
        self._logits: Any = None
        with _still_going(say, f"{plan.peer} is compiling"), self._ready():
            for index in range(WARM_PASSES):
                say(f"{plan.peer}: pass {index + 1} of {WARM_PASSES} to warm up")
                self._pass()
                context.synchronize(f"the pass of {plan.peer}", deadline_s=60.0)

    def run(self, tokens: Tokens, poison: float) -> Floats:
        """The framework owns its buffers: there is nothing to poison."""
        with self._ready():
            self._tokens.copy_(
                self._torch.from_numpy(np.ascontiguousarray(tokens.reshape(self._timed.shape)))
            )
            self._submit()
            self._context.synchronize(f"the pass of {self.plan.peer}")
            logits: Floats = self._logits.float().cpu().numpy()
        return logits

    def trace(self, tokens: Tokens, poison: float) -> Trace:
        raise BadInput(f"{self.plan.peer} keeps no layer's buffers: its pass is checked as a whole.")

    def sample_pass(self, passes: int) -> PassTimes:
        """Means over `passes` - 1 passes of either clock: the first leaves the caches as they are in use."""
        device, submit, wall = [], [], []
        with self._ready():
            for _ in range(passes):
                (device_s,), submit_s = self._timer.split([[self._submit]])
                device.append(device_s)
                submit.append(submit_s)
                begun = perf_counter()
                self._pass()
                wall.append(perf_counter() - begun)
        return PassTimes(wall_s=fmean(wall[1:]), device_s=fmean(device[1:]), submit_s=fmean(submit[1:]))

    def sample_phases(self) -> None:
        return None

    def facts(self) -> tuple[LaunchFacts, ...]:
        return ()

    def close(self) -> None:
        """Drops the model, and has the framework give its cached memory back to the device."""
        if self._host_at:
            self._forward = _closed
            self._logits = self._tokens = self._host_tokens = None
            self._context.unmap(self._host_at)
            self._host_at = 0
            self._weights.close()
            with explained("giving back PyTorch's memory"):
                if self.plan.peer == COMPILED:
                    # Recorded graphs hold their memory pools until the compiler forgets them.
                    self._torch.compiler.reset()
                self._torch.cuda.empty_cache()

    def _pass(self) -> None:
        """Tokens in, the pass, logits out."""
        self._tokens.copy_(self._host_tokens, non_blocking=True)
        self._submit()
        self._logits.cpu()

    def _submit(self) -> None:
        if self.plan.peer == COMPILED:
            self._torch.compiler.cudagraph_mark_step_begin()
        self._logits = self._forward(self._tokens)

    @contextmanager
    def _ready(self) -> Iterator[None]:
        """Our stream, no gradients, and this plan's math: PyTorch keeps it in a global."""
        torch = self._torch
        torch.set_float32_matmul_precision("high" if self.plan.math == "tf32" else "highest")
        with explained(f"the pass of {self.plan.peer}"), torch.cuda.stream(self._stream), torch.no_grad():
            yield


def _model(torch: Any, weights: DeviceWeights, dims: Dims, plan: Plan) -> Any:
    """The pass as a module whose parameters are views of our weights (for bf16: copies).

    Parameters, since a compiled graph reads those in place; any other tensor it would copy at each pass.
    """
    # Plain numbers: the compiler follows those more surely than it follows records.
    batch, seq, heads, d_head, d_model = dims.batch, dims.seq, dims.heads, dims.d_head, dims.d_model
    functional = torch.nn.functional
    dtype = torch.bfloat16 if plan.math == "bf16" else torch.float32

    def parameter(tensor: Tensor, layer: int) -> Any:
        view = torch.from_dlpack(weights.array(tensor.name, layer)).view(*tensor.shape(dims))
        return torch.nn.Parameter(view.to(dtype), requires_grad=False)

    class Parameters(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, tensors: Iterable[Tensor], layer: int) -> None:
            super().__init__()
            for tensor in tensors:
                self.register_parameter(tensor.name, parameter(tensor, layer))

    def normed(x: Any, gain: Any, shift: Any) -> Any:
        return functional.layer_norm(x, (d_model,), gain, shift, LAYERNORM_EPS)

    def attention(qkv: Any) -> Any:
        parts = qkv.view(batch, seq, 3, heads, d_head)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return mixed.transpose(1, 2).reshape(batch, seq, d_model)

    class Model(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            inside = [tensor for tensor in TENSORS if tensor.in_layers]
            self.outside = Parameters([tensor for tensor in TENSORS if not tensor.in_layers], 0)
            self.layers = torch.nn.ModuleList(Parameters(inside, layer) for layer in range(dims.layers))

        def forward(self, tokens: Any) -> Any:
            """Logits [batch, vocab] of each sequence's last token."""
            linear, outside = functional.linear, self.outside
            x = functional.embedding(tokens, outside.embedding) + outside.position
            for w in self.layers:
                qkv = linear(normed(x, w.gain1, w.shift1), w.wqkv, w.bqkv)
                x = x + linear(attention(qkv), w.wo, w.bo)
                hidden = torch.relu(linear(normed(x, w.gain2, w.shift2), w.w1, w.b1))
                x = x + linear(hidden, w.w2, w.b2)
            return linear(normed(x[:, -1], outside.gainf, outside.shiftf), outside.whead)

    return Model()


def _closed(tokens: Any) -> Any:
    raise BadInput("This plan was closed.")


@contextmanager
def _still_going(say: Say, text: str) -> Iterator[None]:
    """Says so every few seconds, so that a compilation of minutes is not taken for a hung worker."""
    done = threading.Event()

    def tell() -> None:
        while not done.wait(STILL_S):
            say(text)

    teller = threading.Thread(target=tell, name="peer-compiling", daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()
