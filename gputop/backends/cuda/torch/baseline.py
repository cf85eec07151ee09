"""Frameworks that run the whole pass instead of us: PyTorch, eager and compiled, on our own weights.

They read the weights that were drawn for them through DLPack, run on our stream, and are gated and
timed like any plan; where CUPTI is there, their kernels are timed by kind as well.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from statistics import fmean
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from gputop.backends.base import LogitsLeft, PassTimes, PhaseTimes, Say, TimedRun, Trace, run_in_turn
from gputop.backends.cuda.packages import TORCH
from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.status_codes import explained
from gputop.backends.cuda.timing.cupti import KernelRecorder
from gputop.backends.cuda.timing.events import Timer, retry_on_timeout
from gputop.backends.cuda.timing.phase_timer import BLOCKERS
from gputop.backends.cuda.timing.spans import Span
from gputop.backends.cuda.torch import kernel_classifier
from gputop.backends.cuda.torch.compiler import COMPILER
from gputop.backends.cuda.torch.kernel_classifier import KindTimes
from gputop.backends.cuda.weights import DeviceWeights
from gputop.model.weights import TENSORS, Tensor
from gputop.plan.launch_shape import LaunchInfo
from gputop.plan.types import LAYERNORM_EPS, Dims, KernelKind, Plan, Step
from gputop.results.records import Tuned
from gputop.util.errors import Unavailable, UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Tokens = NDArray[np.int32]

WARM_PASSES = 4
"""torch.compile with graphs compiles in the first pass, warms and records in the next two."""
SPLIT_PASSES = 2
"""Passes behind one split by kind, the first dropped."""
STILL_S = 5.0
"""How often a long compilation says that it goes on."""

PEERS: Mapping[str, str] = {
    "torch-eager": "",
    "torch-compile": "reduce-overhead",
    "torch-max-autotune": "max-autotune",
}
"""Peer -> mode of torch.compile; empty: not compiled."""


def prepare_peer(
    context: Context,
    timer: Timer,
    weights: DeviceWeights,
    plan: Plan,
    dims: Dims,
    timed_tokens: Sequence[Tokens],
    recorder: KernelRecorder | None,
    say: Say,
) -> TorchPrepared:
    """Take `weights` in row layout, unfolded. Raise Unavailable, with the extra, if it is not installed."""
    if plan.peer not in PEERS:
        raise UsageError(f"Peer {plan.peer!r} is not known. Known: {', '.join(PEERS)}.")
    try:
        import torch
    except ImportError:
        raise Unavailable(TORCH.sentence) from None
    if not torch.cuda.is_available():
        raise Unavailable("PyTorch sees no CUDA device here; install a build of it for CUDA.")
    return TorchPrepared(torch, context, timer, weights, plan, dims, timed_tokens, recorder, say)


class TorchPrepared:
    """See `backends.base.Prepared`: no steps, no trace, and kinds of kernels for phases."""

    steps: tuple[Step, ...] = ()

    def __init__(
        self,
        torch: Any,
        context: Context,
        timer: Timer,
        weights: DeviceWeights,
        plan: Plan,
        dims: Dims,
        timed_tokens: Sequence[Tokens],
        recorder: KernelRecorder | None,
        say: Say,
    ) -> None:
        """`timed_tokens`: the batches [batch, seq] that timed passes take in turn."""
        self.plan = plan
        self._torch = torch
        self._recorder = recorder
        self._mode = PEERS[plan.peer]
        self._kinds: dict[KernelKind, KindTimes] = {}
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
        if self._mode:
            self._forward = COMPILER.compile(torch, model, self._mode)
        self._shape = (dims.batch, dims.seq)
        timed = np.stack([tokens.reshape(self._shape) for tokens in timed_tokens])
        host, self._host_at = context.mapped(timed.size, ctypes.c_int32)
        self._host_tokens = torch.from_numpy(np.ctypeslib.as_array(host).reshape(timed.shape))
        self._host_tokens.numpy()[:] = timed
        self._token_set = 0
        """Which of the timed batches the next pass takes."""
        self._tokens = torch.empty(self._shape, dtype=torch.int32, device=self._device)
        self._logits: Any = None
        try:
            self._warm_up(say)
        except BaseException:
            self.close()
            raise

    def run(self, tokens: Tokens, poison: float) -> Floats:
        """The framework owns its buffers: there is nothing to poison."""
        with self._ready():
            self._tokens.copy_(self._torch.from_numpy(np.ascontiguousarray(tokens.reshape(self._shape))))
            self._submit()
            self._context.synchronize(f"the pass of {self.plan.peer}")
            logits: Floats = self._logits.float().cpu().numpy()
        return logits

    def run_each(self, runs: Sequence[tuple[Tokens, float]]) -> list[TimedRun]:
        return run_in_turn(self.run, runs)

    def trace(self, tokens: Tokens, poison: float) -> Trace:
        raise UsageError(f"{self.plan.peer} keeps no layer's buffers: its pass is checked as a whole.")

    def sample_pass(self, passes: int) -> PassTimes:
        """Means over `passes` - 1 passes of either clock: the first leaves the caches as they are in use."""
        device, submit, wall, left = [], [], [], LogitsLeft()
        with self._ready():
            for _ in range(passes):
                token_set = self._next_token_set()
                self._tokens.copy_(self._host_tokens[token_set], non_blocking=True)
                (device_s,), submit_s = self._timer.split([[self._submit]])
                left.add(token_set, self._logits.float().cpu().numpy())
                device.append(device_s)
                submit.append(submit_s)
                clock_hz = self._timer.clock_hz()
                token_set = self._next_token_set()
                begun = perf_counter()
                logits = self._pass(token_set)
                wall.append(perf_counter() - begun)
                left.add(token_set, logits.float().numpy())
        return PassTimes(
            wall_s=fmean(wall[1:]),
            device_s=fmean(device[1:]),
            submit_s=fmean(submit[1:]),
            clock_hz=clock_hz,
            logits=left.take(self.plan.batch),
        )

    def sample_phases(self, passes: int) -> tuple[PhaseTimes, ...]:
        """One pass by kind of kernel, in the place of sites. Empty where CUPTI is missing or sees nothing."""
        recorder = self._recorder
        if recorder is None:
            return ()
        spans: list[Span] = []
        # Unavailable where another profiler is attached, or none may be.
        with self._ready(), suppress(Unavailable):
            for _ in range(SPLIT_PASSES):
                spans = retry_on_timeout(lambda: self._recorded(recorder))
        if len(spans) <= BLOCKERS:
            self._recorder = None
            return ()
        self._kinds = kernel_classifier.by_kind(spans)
        times = PhaseTimes(
            time_s={kind: times.time_s for kind, times in self._kinds.items()},
            gap_s={kind: times.gap_s for kind, times in self._kinds.items()},
            overlap_s={kind: times.overlap_s for kind, times in self._kinds.items()},
            timer="cupti",
            timer_floor_s=recorder.floor_s,
        )
        return (times,)

    def _recorded(self, recorder: KernelRecorder) -> list[Span]:
        what = f"the recorded pass of {self.plan.peer}"
        return recorder.record(lambda: self._timer.blocked([self._submit], what), what)

    def facts(self) -> tuple[LaunchInfo, ...]:
        """One a kind, once a pass was recorded."""
        return tuple(
            LaunchInfo(
                site=kind,
                kernel=self.plan.peer,
                launches=times.launches,
                library_kernel=kernel_classifier.listed(kind, times.names),
            )
            for kind, times in self._kinds.items()
        )

    def tuned(self) -> tuple[Tuned, ...]:
        return COMPILER.tuned(self.plan.word)

    def close(self) -> None:
        """Drops the model, and has the framework give its cached memory back to the device.

        Nothing, where a kernel does not end: whatever is given back would wait for it.
        """
        if self._host_at and self._context.hung is None:
            self._forward = _closed
            self._logits = self._tokens = self._host_tokens = None
            self._context.unmap(self._host_at)
            self._host_at = 0
            self._weights.close()
            with explained("giving back PyTorch's memory"):
                if self._mode:
                    COMPILER.release(self._torch)
                self._torch.cuda.empty_cache()

    def _warm_up(self, say: Say) -> None:
        """The first passes, in which a compiler does its work: that may take minutes, and says so."""
        name = self.plan.peer
        with ExitStack() as stack:
            stack.enter_context(_still_going(say, f"{name} is compiling"))
            if self._mode:
                stack.enter_context(COMPILER.listening(self.plan.word))
            stack.enter_context(self._ready())
            for index in range(WARM_PASSES):
                say(f"{name}: pass {index + 1} of {WARM_PASSES} to warm up")
                self._pass(self._next_token_set())
                self._context.synchronize(f"the pass of {name}", deadline_s=60.0)

    def _next_token_set(self) -> int:
        """The timed batches in turn."""
        token_set = self._token_set
        self._token_set = (token_set + 1) % len(self._host_tokens)
        return token_set

    def _pass(self, token_set: int) -> Any:
        """Tokens in, the pass, logits out, as a tensor on the host."""
        self._tokens.copy_(self._host_tokens[token_set], non_blocking=True)
        self._submit()
        return self._logits.cpu()

    def _submit(self) -> None:
        if self._mode:
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

    activation = {
        "relu": torch.relu,
        "gelu": functional.gelu,
        "gelu_new": partial(functional.gelu, approximate="tanh"),
    }[dims.activation]

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
                hidden = activation(linear(normed(x, w.gain2, w.shift2), w.w1, w.b1))
                x = x + linear(hidden, w.w2, w.b2)
            return linear(normed(x[:, -1], outside.gainf, outside.shiftf), outside.whead)

    return Model()


def _closed(tokens: Any) -> Any:
    raise UsageError("This plan was closed.")


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
