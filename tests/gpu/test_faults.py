"""A kernel that faults, one that never ends, and an allocation that fails: named, one request each.

In a real worker, since a fault costs the process that meets it.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from gputop.backends.cuda.runtime.context import Context
from gputop.backends.cuda.runtime.devices import visible_devices
from gputop.ipc.worker_client import WorkerClient
from gputop.plan.types import PlanRequest
from gputop.util.errors import UsageError, WorkerLost
from gputop.util.paths import kernels_dir
from tests.gpu.plans import STANDARD

POISONED = "isnan(*(volatile float*)args.c)"
"""So is what a pass under the gate finds, and nothing that a kernel's first run does."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong in the naive product, and how the error is told."""

    code: str
    said: str
    of: str
    """What the error is said of."""


FAULTS = {
    "a wild address": Fault("args.c[1ull << 40] = 1.0f;", "illegal memory access", "gemm_naive"),
    "a loop without end": Fault("while (true) __nanosleep(1000);", "still running", "gemm_naive"),
    "a wild address in the gate": Fault(
        f"if ({POISONED}) args.c[1ull << 40] = 1.0f;", "illegal memory access", "the pass of naive"
    ),
    "a loop without end in the gate": Fault(
        f"while ({POISONED}) __nanosleep(1000);", "still running", "the pass of naive"
    ),
}
BODY = "gemm_naive(const __grid_constant__ GemmArgs args) {\n"
SLACK_BYTES = 64 << 20
LEFT_BYTES = 200 << 20
"""Less than gpt2-small's weights take."""


def planted(folder: Path, code: str) -> Path:
    """Our kernels with a fault in the naive product."""
    copy = folder / "kernels"
    shutil.copytree(kernels_dir(), copy)
    source = copy / "gemm" / "01_naive.cu"
    text = source.read_text()
    assert BODY in text
    source.write_text(text.replace(BODY, f"{BODY}    {code}\n"))
    return copy


def used_bytes() -> int:
    """Memory in use on CUDA's first device, by anybody."""
    import pynvml

    pynvml.nvmlInit()
    first, *_ = visible_devices()
    info = pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByUUID(first.uuid))
    pynvml.nvmlShutdown()
    return int(info.used)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_named_its_memory_comes_back_and_the_next_worker_goes_on(
    tmp_path: Path, fault: Fault
) -> None:
    mini, naive = STANDARD["mini"], PlanRequest("naive")
    before = used_bytes()
    with WorkerClient(log_path=tmp_path / "worker.log") as client:
        client.open("cuda", mini, kernels_dir=str(planted(tmp_path, fault.code)))
        with pytest.raises(WorkerLost, match=fault.said) as raised:
            client.check(naive)
        assert fault.of in str(raised.value)
        assert not client.alive
        assert used_bytes() < before + SLACK_BYTES
        client.start()
        client.open("cuda", mini)
        assert client.check(naive).ok


def test_an_allocation_that_fails_costs_one_request(tmp_path: Path, context: Context) -> None:
    with WorkerClient(log_path=tmp_path / "worker.log") as client:
        client.open("cuda", STANDARD["gpt2-small"])
        taken = context.array((context.free_bytes() - LEFT_BYTES,), np.uint8, "a test")
        with pytest.raises(UsageError, match="memory"):
            client.check(PlanRequest("coalesced"))
        del taken
        assert client.check(PlanRequest("coalesced")).ok
