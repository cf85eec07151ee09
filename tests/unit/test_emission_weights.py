"""The host part of an emitted program asks the device for the weights that gputop's backend asks for.

Its own C++ is compiled with g++ against a `launch` that prints what it is given. What the kernel makes of
that is the same on both sides: the program carries gputop's kernel.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from collections.abc import Iterator
from math import prod
from pathlib import Path

import numpy as np
import pytest

from gputop.backends.cuda.runtime.utility_kernels import halves
from gputop.emission.cpp_text import joined, template
from gputop.emission.weight_tables import draw_tables, fold_table
from gputop.model import rng
from gputop.model.weights import BY_NAME, FOLDS, GEMM_WEIGHTS, TENSORS, layer_count, parts
from gputop.plan.types import Dims, Plan, PlanRequest, Workload
from gputop.util.paths import kernels_dir

DIMS = Dims(layers=3, d_model=8, heads=2, d_ff=20, seq=5, vocab=7)
WORKLOAD = Workload("odd", DIMS, seed=41)

FRAME = """
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

{constants}

namespace measure_fill {{
{structs}
enum {{ fill_weights, fold_weights, fold_bias }};
}}

struct Shape {{
    std::vector<unsigned> grid, block;
}};
const int sm_count = 2;

// Memory is numbered as it is allocated, so that an address says which tensor and which element.
float* next = reinterpret_cast<float*>(1 << 20);
template <class T>
T* allocate(long long count) {{
    T* const memory = next;
    next += count + 64;
    return memory;
}}

long long place(const float* memory) {{ return memory ? memory - reinterpret_cast<float*>(1 << 20) : -1; }}
unsigned bits(float value) {{
    unsigned word;
    std::memcpy(&word, &value, sizeof word);
    return word;
}}
void launch(int, const Shape&, const measure_fill::FillArgs& a) {{
    std::printf("draw %lld %d %d %d %d %d %d %d %d %u\\n", place(a.out), a.key_low,
                a.key_high, a.count, a.inner, a.first_row, a.rows, a.transposed, a.about_one, bits(a.scale));
}}
void launch(int, const Shape& s, const measure_fill::FoldWeightsArgs& a) {{
    std::printf("folded %lld %lld %d %d %d %d %d %d %u %u %u\\n", place(a.out), place(a.gain), a.key_low,
                a.key_high, a.inner, a.first_row, a.rows, a.transposed, bits(a.scale), s.grid[0], s.block[0]);
}}
void launch(int, const Shape& s, const measure_fill::FoldBiasArgs& a) {{
    std::printf("fold %lld %lld %lld %d %d %d %d %u %u %u\\n", place(a.out), place(a.shift), place(a.bias),
                a.key_low, a.key_high, a.rows, a.inner, bits(a.scale), s.grid[0], s.block[0]);
}}
"""
END = """
int main() {
    draw_all_weights();
    for (const int id : draw_tokens()) std::printf("token %d\\n", id);
}
"""


def program(plan: Plan) -> str:
    source = (kernels_dir() / "measure" / "fill.cu").read_text()
    structs = "\n".join(
        re.findall(
            r"^struct (?:FillArgs|FoldWeightsArgs|FoldBiasArgs) .*?^};$", source, re.MULTILINE | re.DOTALL
        )
    )
    constants = (
        f"constexpr long long SEED = {WORKLOAD.seed};\n"
        f"constexpr int BATCH = {plan.batch}, SEQ = {DIMS.seq}, VOCAB = {DIMS.vocab};"
    )
    return joined(
        (
            FRAME.format(constants=constants, structs=structs),
            template("weights.cu"),
            "\n".join((*draw_tables(plan, DIMS), *fold_table(plan))),
            template("draw_all_weights.cu"),
            END,
        )
    )


def wanted(plan: Plan) -> Iterator[str]:
    """What `backends.cuda.weights.DeviceWeights` launches, and the tokens."""
    folds = FOLDS if plan.fold else ()
    sizes = [(t.name, layer_count(t, DIMS), prod(t.shape(DIMS))) for t in TENSORS]
    sizes += [("bhead", 1, DIMS.vocab)] if plan.fold else []
    bases, place = {}, 0
    for name, layers, elements in sizes:
        bases[name] = (place, elements)
        place += layers * elements + 64

    def at(name: str, layer: int, offset: int = 0) -> int:
        base, elements = bases[name]
        return base + layer * elements + offset

    gains = {fold.weight: fold.gain for fold in folds}
    every = list(parts(DIMS))
    for tensor in TENSORS:
        shape = tensor.shape(DIMS)
        for index in range(len(tensor.draws())):
            for part in [p for p in every if p.tensor == tensor.name and p.offset == index * p.count]:
                turned = int(plan.layout == "transposed" and tensor.name in GEMM_WEIGHTS)
                out, key = at(tensor.name, part.layer), halves(rng.key(WORKLOAD.seed, part.name))
                inner, rows, first_row = shape[-1], prod(shape[:-1]), part.offset // shape[-1]
                if tensor.name in gains:
                    gain, count = at(gains[tensor.name], part.layer), part.count // inner
                    carrying = (out, gain, *key, inner, first_row, rows, turned, word(part.std), count, 128)
                    yield "folded " + " ".join(map(str, carrying))
                    continue
                fields = (
                    out,
                    *key,
                    part.count,
                    inner,
                    first_row,
                    rows,
                    turned,
                    int(part.gain),
                    word(part.std),
                )
                yield "draw " + " ".join(map(str, fields))
    for fold in folds:
        inner = BY_NAME[fold.weight].shape(DIMS)[-1]
        mine = [part for part in every if part.tensor == fold.weight]
        for part in sorted(mine, key=lambda part: (part.offset, part.layer)):
            rows = part.count // inner
            bias = at(fold.bias, part.layer, part.offset // inner)
            has = bias if fold.bias in BY_NAME else -1
            key = halves(rng.key(WORKLOAD.seed, part.name))
            folded = (bias, at(fold.shift, part.layer), has, *key, rows, inner, word(part.std), rows, 128)
            yield "fold " + " ".join(map(str, folded))
    for sequence in np.repeat(rng.tokens(WORKLOAD, 0, 1), plan.batch, axis=0):
        yield from (f"token {token}" for token in sequence)


def word(std: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", float(rng.scale(std))))[0])


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler (g++)")
@pytest.mark.parametrize(
    "plan",
    [
        Plan("cuda", PlanRequest(""), ()),
        Plan("cuda", PlanRequest(""), (), layout="transposed", fold=True, batch=2),
        Plan("cuda", PlanRequest(""), (), fold=True),
    ],
    ids=("plain", "folded, transposed, batch of 2", "folded"),
)
def test_the_program_draws_the_weights_and_tokens_that_gputop_draws(plan: Plan, tmp_path: Path) -> None:
    source, binary = tmp_path / "weights.cpp", tmp_path / "weights"
    source.write_text(program(plan))
    command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", str(source), "-o", str(binary)]
    built = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert built.returncode == 0, built.stderr
    printed = subprocess.run([str(binary)], capture_output=True, text=True, check=True, timeout=60).stdout
    assert printed.splitlines() == list(wanted(plan))
