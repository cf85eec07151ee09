"""The comment that an emitted CUDA program begins with: what it is, how to build it, what it prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gputop import __version__
from gputop.emission.launch_lines import StepLaunches, launch_table
from gputop.emission.reference_logits import expected_logits, how_many
from gputop.model.activation_functions import FUNCTIONS
from gputop.plan.types import Dims, Plan, Workload
from gputop.validation.gate import PASS_TOLERANCES


def cuda_header(
    workload: Workload, plan: Plan, dims: Dims, steps: Sequence[StepLaunches], build: str, binary: str
) -> Iterator[str]:
    """Paragraphs of the comment. `build`: the command that builds `binary`."""
    yield f"Plan {plan.word}: one forward pass of a GPT-2 model, written by gputop {__version__}."
    yield ""
    yield from model_lines(workload)
    yield from _plan_lines(plan, dims)
    yield ""
    yield "Build and run:"
    yield f"  {build}"
    yield f"  ./{binary} [PASSES TO TIME]"
    yield ""
    yield (
        f"{what_it_prints(workload, PASS_TOLERANCES[plan.math])} Then it prints the device time of a pass, "
        "the median over passes that the host enqueues as a whole before the device begins. "
        "Exit code 0; 1 if the logits are off; 3 if a CUDA call fails."
    )
    for note in _library_notes(plan, steps):
        yield ""
        yield note
    yield ""
    count = sum(len(step.launches) for step in steps)
    yield f"The {count} launches of a pass{', captured into one graph' if plan.graph else ''}:"
    yield ""
    yield from (f"  {line}" for line in launch_table(steps, plan))


def model_lines(workload: Workload) -> Iterator[str]:
    dims = workload.dims
    yield (
        f"Model {workload.name}: {dims.layers} layers, d_model {dims.d_model}, {dims.heads} heads, "
        f"d_ff {dims.d_ff}, seq {dims.seq}, vocab {dims.vocab}, {FUNCTIONS[dims.activation].title}"
        f"{', the head tied to the embedding' if dims.tied_head else ''}."
    )
    yield f"Weights and tokens are drawn from seed {workload.seed}."


def what_it_prints(workload: Workload, tolerance: float) -> str:
    one, two = expected_logits(workload)[:2]
    return (
        f"It prints the first two logits, {one:.6f} {two:.6f} but for rounding, and checks "
        f"{how_many(workload)} against a float64 reference: the relative error is at most {tolerance:g}."
    )


def _plan_lines(plan: Plan, dims: Dims) -> Iterator[str]:
    stored = "[in, out]" if plan.layout == "transposed" else "[out, in]"
    yield f"Batch {dims.batch}, math {plan.math}, weights stored {stored}."
    if plan.fold:
        yield "Layernorm gains and shifts are folded into the weights and biases after them."
    if plan.prune:
        yield "In the last layer, queries and all that follows them are computed for the last token only."


def _library_notes(plan: Plan, steps: Sequence[StepLaunches]) -> Iterator[str]:
    """Return how a library's products differ from those of gputop."""
    called = {(launch.library, launch.entry) for step in steps for launch in step.launches}
    if ("cublaslt", "gemm_best") in called:
        yield (
            "gputop measures 16 algorithms of cuBLASLt for each product and takes the fastest. This program "
            "takes the one that the library's heuristic names first."
        )
    if plan.batch > 1 and any(library == "cublaslt" for library, _ in called):
        yield (
            "In a batch gputop takes only algorithms of cuBLASLt that give equal sequences equal bits. This "
            "program takes the one that the library's heuristic names first."
        )
