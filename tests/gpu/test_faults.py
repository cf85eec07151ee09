"""A kernel that faults, one that never ends, and an allocation that fails: named, one request each.

In a real worker, since a fault costs the process that meets it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from gputop.backends.cuda.context import Context
from gputop.client import Client
from gputop.errors import BadInput, WorkerLost
from gputop.paths import kernels_dir
from gputop.spec import PlanRequest
from tests.gpu.plans import STANDARD

FAULTS = {
    "a wild address": ("    args.c[1ull << 40] = 1.0f;\n", "illegal memory access"),
    "a loop without end": ("    while (true) __nanosleep(1000);\n", "still running"),
}
BODY = "gemm_naive(const __grid_constant__ GemmArgs args) {\n"
SLACK_BYTES = 64 << 20
LEFT_BYTES = 200 << 20
"""Less than gpt2-small's weights take."""


def planted(folder: Path, fault: str) -> Path:
    """Our kernels with a fault in the naive product."""
    copy = folder / "kernels"
    shutil.copytree(kernels_dir(), copy)
    source = copy / "gemm" / "01_naive.cu"
    text = source.read_text()
    assert BODY in text
    source.write_text(text.replace(BODY, BODY + fault))
    return copy


def used_bytes() -> int:
    """Memory in use on the first device, by anybody."""
    import pynvml

    pynvml.nvmlInit()
    info = pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(0))
    pynvml.nvmlShutdown()
    return int(info.used)


@pytest.mark.parametrize(("fault", "said"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_named_its_memory_comes_back_and_the_next_worker_goes_on(
    tmp_path: Path, fault: str, said: str
) -> None:
    mini, naive = STANDARD["mini"], PlanRequest("naive")
    before = used_bytes()
    with Client(log_path=tmp_path / "worker.log") as client:
        client.open("cuda", mini, kernels_dir=str(planted(tmp_path, fault)))
        with pytest.raises(WorkerLost, match=said) as raised:
            client.check(naive)
        assert "gemm_naive" in str(raised.value)
        assert not client.alive
        assert used_bytes() < before + SLACK_BYTES
        client.start()
        client.open("cuda", mini)
        assert client.check(naive).ok


def test_an_allocation_that_fails_costs_one_request(tmp_path: Path, context: Context) -> None:
    with Client(log_path=tmp_path / "worker.log") as client:
        client.open("cuda", STANDARD["gpt2-small"])
        taken = context.array((context.free_bytes() - LEFT_BYTES,), np.uint8, "a test")
        with pytest.raises(BadInput, match="memory"):
            client.check(PlanRequest("coalesced"))
        del taken
        assert client.check(PlanRequest("coalesced")).ok
