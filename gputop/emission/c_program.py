"""The rung cpu-loops as one C file for a single core."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from gputop import __version__
from gputop.emission import reference_logits
from gputop.emission.cpp_text import comment, joined, string, template
from gputop.emission.file_header import model_lines, what_it_prints
from gputop.emission.weight_tables import draw_tables
from gputop.model.activation_functions import FUNCTIONS
from gputop.plan.types import LAYERNORM_EPS, Plan, Workload
from gputop.util.errors import UsageError
from gputop.validation.gate import PASS_TOLERANCES

RUNG = "cpu-loops"
"""The one rung of the cpu backend that is loops of its own; the others call NumPy's BLAS or its threads."""
SUFFIX = ".c"


def build_command(file: str) -> str:
    """The command that builds `file`."""
    return shlex.join(("cc", "-O3", file, "-o", file.removesuffix(SUFFIX), "-lm"))


def c_program(workload: Workload, plan: Plan) -> str:
    """The text of the C file. UsageError for every plan but cpu-loops as it stands."""
    if plan.word != RUNG:
        raise UsageError(
            f"emit can't write {plan.word}: of the cpu plans it writes only {RUNG}, for a batch of 1."
        )
    return joined(
        (
            comment(_header(workload, PASS_TOLERANCES[plan.math])),
            "\n".join(
                f"#include <{name}.h>" for name in ("math", "stdbool", "stdint", "stdio", "stdlib", "time")
            ),
            "\n".join(_constants(workload, PASS_TOLERANCES[plan.math])),
            _STRUCTS,
            "\n".join(draw_tables(plan, workload.dims)),
            template("cpu_loops.c"),
        )
    )


_STRUCTS = """typedef struct {
    bool in_layers;
    int layers, rows, columns;  // [rows, columns] = [out, in] of each layer; a vector has one row
    bool transposed;
    float* memory;  // set when the weights are drawn
} Tensor;

// Rows of a tensor that are drawn with a key of their own.
typedef struct {
    Tensor* tensor;
    const char* name;  // as hashed, behind the layer
    int first_row, rows;
    double std_deviation;
    bool about_one;  // 1 is added
} Draw;"""


def _header(workload: Workload, tolerance: float) -> Iterator[str]:
    yield f"Plan {RUNG}: one forward pass of a GPT-2 model on one core, written by gputop {__version__}."
    yield ""
    yield from model_lines(workload)
    yield ""
    yield "Build and run:"
    yield f"  {build_command(RUNG + SUFFIX)}"
    yield f"  ./{RUNG} [PASSES TO TIME]"
    yield ""
    yield (
        f"{what_it_prints(workload, tolerance)} Then it prints the median time of a pass. "
        "Exit code 0; 1 if the logits are off; 3 if there is no memory."
    )


def _constants(workload: Workload, tolerance: float) -> Iterator[str]:
    dims = workload.dims
    if macro := FUNCTIONS[dims.activation].macro:
        yield f"#define {macro}  // the model's activation function"
        yield ""
    yield f"static const char WORKLOAD[] = {string(workload.name)};"
    yield f"static const long long SEED = {workload.seed};"
    yield (
        f"enum {{ LAYERS = {dims.layers}, D_MODEL = {dims.d_model}, HEADS = {dims.heads}, "
        f"D_HEAD = {dims.d_head}, D_FF = {dims.d_ff}, SEQ = {dims.seq}, VOCAB = {dims.vocab} }};"
    )
    yield f"static const float LAYERNORM_EPS = {LAYERNORM_EPS}f;"
    yield f"static const double TOLERANCE = {tolerance:g};"
    yield ""
    yield from reference_logits.declaration(workload, "static const")
