"""cuBLASLt's products: row-uniform in a batch, right, and with nothing left behind."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from gputop.backends.cuda.libraries.cublas import Gemm
from gputop.backends.cuda.libraries.cublaslt import CublasLt
from gputop.backends.cuda.libraries.row_determinism import RowDeterminism
from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.utility_kernels import Tools, halves
from gputop.backends.cuda.timing.events import Timer
from gputop.plan.plan_string import parse_word
from gputop.plan.types import Dims, Workload
from gputop.session.session import Session
from gputop.util.errors import Unavailable
from tests.gpu.plans import gate_of

SEQ, SEQUENCES = 128, 128
SITES = {"qkv": (2304, 768), "wo": (768, 768), "w1": (3072, 768), "w2": (768, 3072)}
"""Columns and inner axis of the wide products at gpt2-small."""
TF32 = 3e-3


@pytest.fixture
def lt(context: Context, tools: Tools, timer: Timer) -> Iterator[CublasLt]:
    try:
        opened = CublasLt(context, tools, timer)
    except Unavailable as error:
        pytest.skip(str(error))
    yield opened
    opened.close()


class Operands:
    """A product's memory: rows of `SEQUENCES` equal sequences, weights [columns, inner]."""

    def __init__(self, context: Context, columns: int, inner: int, sequences: int) -> None:
        random = np.random.default_rng()
        one = random.standard_normal((SEQ, inner), np.float32)
        self.one, self.w = one, random.standard_normal((columns, inner), np.float32)
        self.context, self.rows, self.sequences = context, SEQ * sequences, sequences
        self.a = self._array(np.tile(one, (sequences, 1)))
        self.w_array = self._array(self.w)
        self.c = context.array((self.rows, columns), np.float32, "a test")
        self.gemm = Gemm(
            self.a.data.ptr, self.w_array.data.ptr, 0, 0, self.c.data.ptr,
            self.rows, columns, inner, inner, inner, 0, columns,
        )  # fmt: skip

    def result(self) -> Any:
        """The product, by sequence."""
        self.context.synchronize("a test")
        return self.context.copy_out(self.c).reshape(self.sequences, SEQ, -1)

    def restore(self) -> None:
        """The inputs again: choosing an algorithm overwrites them."""
        self.context.copy_in(self.a, np.tile(self.one, (self.sequences, 1)))

    def _array(self, host: Any) -> Any:
        array = self.context.array(host.shape, np.float32, "a test")
        self.context.copy_in(array, host)
        return array


@pytest.mark.parametrize("best", [False, True], ids=["first", "best"])
@pytest.mark.parametrize("site", SITES)
def test_equal_sequences_give_equal_bits(lt: CublasLt, context: Context, site: str, best: bool) -> None:
    operands = Operands(context, *SITES[site], SEQUENCES)
    call = lt.gemm(operands.gemm, "tf32", "row", best, SEQUENCES)
    operands.restore()
    call()
    found = operands.result()
    assert (found.view(np.int32) == found[:1].view(np.int32)).all()
    wanted = operands.one.astype(np.float64) @ operands.w.T.astype(np.float64)
    assert np.linalg.norm(found[0] - wanted) <= TF32 * np.linalg.norm(wanted)


def test_descriptions_go_with_the_call(lt: CublasLt, context: Context) -> None:
    operands = Operands(context, *SITES["wo"], 1)
    call = lt.gemm(operands.gemm, "tf32", "row", False, 1)
    other = lt.gemm(operands.gemm, "fp32", "row", True, 1)
    assert lt.described == 2
    del call
    assert lt.described == 1
    other()
    context.synchronize("a test")
    lt.close()
    assert lt.described == 0
    lt.close()


def test_a_row_that_rounds_differently_is_seen(context: Context, tools: Tools) -> None:
    operands = Operands(context, 64, 64, 4)
    alike = RowDeterminism(context, tools)
    copied = struct.pack("<QQiiii", operands.gemm.c, 0, operands.rows, 64, 64, SEQ)
    repeating = tools.launch("row_determinism.cu", "fill_repeating", tools.spread(operands.rows * 64), copied)
    by_place = struct.pack("<Qiii4x", operands.gemm.c, *halves(operands.rows * 64), 1)
    unlike = tools.launch("fill.cu", "fill_noise", tools.spread(operands.rows * 64), by_place)
    assert alike(operands.gemm, 4, repeating, "a test")
    assert not alike(operands.gemm, 4, unlike, "a test")


@pytest.mark.parametrize("word", ["batch,batch=128", "tournament,batch=128"])
def test_a_batch_of_128_passes_its_gates(word: str) -> None:
    """Two layers of gpt2-small's widths: each product has its shape there."""
    session = Session.open("cuda", Workload("two-layers", Dims(2, 768, 12, 3072, SEQ, 256)))
    try:
        gate = gate_of(session, parse_word(word))
    finally:
        session.close()
    assert gate.status == "PASS", gate.where
