"""Weights drawn, laid out and folded on the device are those that NumPy makes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.utility_kernels import Tools
from gputop.backends.cuda.weights import DeviceWeights
from gputop.model import weights as numpy_weights
from gputop.plan.types import Layout, Plan, PlanRequest, Workload
from tests.gpu.plans import STANDARD

FOLDED_BIASES = ("bqkv", "b1", "bhead")
TIED = Workload("tied", replace(STANDARD["tiny"].dims, vocab=257, tied_head=True))
ULP = float(np.finfo(np.float32).eps)


@pytest.mark.parametrize("fold", [False, True], ids=["as drawn", "folded"])
@pytest.mark.parametrize("layout", ["row", "transposed"])
@pytest.mark.parametrize("workload", [STANDARD["tiny"], STANDARD["mini"], TIED], ids=lambda w: w.name)
def test_bit_for_bit(context: Context, tools: Tools, workload: Workload, layout: Layout, fold: bool) -> None:
    """Only a folded bias, a sum in double, may differ in its last bit: NumPy adds in another order."""
    plan = Plan("cuda", PlanRequest(""), (), layout=layout, fold=fold)
    device = DeviceWeights(context, tools, workload, plan, workload.dims)
    context.synchronize("drawing the weights")
    expected = numpy_weights.effective(numpy_weights.master(workload), plan, workload.dims)
    for tensor, layers in expected.items():
        for layer, wanted in enumerate(layers):
            drawn = context.copy_out(device.array(tensor, layer)).reshape(wanted.shape)
            if fold and tensor in FOLDED_BIASES:
                np.testing.assert_allclose(drawn, wanted, rtol=2 * ULP, atol=1e-9)
            else:
                np.testing.assert_array_equal(drawn, wanted, err_msg=f"{tensor} of layer {layer}")
    device.close()
