"""CUDA's codes become the errors that the worker acts on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum

import pytest

from gputop.backends.cuda.runtime.devices import Visible, choose
from gputop.backends.cuda.runtime.status_codes import LOST, REFUSED, check, explain, explained
from gputop.backends.cuda.timing.events import QUEUE_DEPTH, Call, chunks
from gputop.util.errors import DeviceLost, Unavailable, UsageError

WHAT = "kernel gemm_naive at w1, layer 3"


class Status(IntEnum):
    SUCCESS = 0
    OUT_OF_MEMORY = 2
    ILLEGAL_ADDRESS = 700


class CupyError(RuntimeError):
    """Shaped like CuPy's: a status, and a module of that name."""

    __module__ = "cupy_backends.cuda.api.runtime"

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class OutOfMemoryError(RuntimeError):
    """Shaped like PyTorch's."""

    __module__ = "torch"


class AcceleratorError(RuntimeError):
    """Shaped like PyTorch's: CUDA's code beside a text of several lines."""

    __module__ = "torch"
    error_code = 700


@pytest.mark.parametrize("code", LOST)
def test_what_takes_the_context_ends_the_worker_and_names_the_kernel(code: int) -> None:
    error = explain(code, "CUDA_ERROR", WHAT)
    assert isinstance(error, DeviceLost)
    assert error.exit_code == 4
    assert WHAT in str(error)


@pytest.mark.parametrize("code", [2, *REFUSED])
def test_what_leaves_the_context_whole_costs_one_request(code: int) -> None:
    error = explain(code, "CUDA_ERROR", WHAT)
    assert isinstance(error, UsageError)
    assert WHAT in str(error)


def test_a_code_that_nobody_knows_ends_the_worker() -> None:
    assert isinstance(explain(4242, "CUDA_ERROR_NEW", WHAT), DeviceLost)


def test_check_gives_the_value_or_raises() -> None:
    assert check((Status.SUCCESS, 7), WHAT) == 7
    assert check((Status.SUCCESS,), WHAT) == ()
    with pytest.raises(DeviceLost, match="illegal memory access"):
        check((Status.ILLEGAL_ADDRESS, None), WHAT)


@contextmanager
def raising(error: Exception) -> Iterator[None]:
    with explained(WHAT):
        raise error
    yield


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (CupyError(700, "cudaErrorIllegalAddress: an illegal memory access"), DeviceLost),
        (CupyError(2, "cudaErrorMemoryAllocation: out of memory"), UsageError),
        (CupyError(100, "cudaErrorNoDevice: no device"), Unavailable),
        (MemoryError("Out of memory allocating 1 bytes"), UsageError),
        (OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."), UsageError),
        (AcceleratorError("CUDA error: an illegal memory access was encountered\nSee"), DeviceLost),
    ],
)
def test_errors_of_cupy_and_of_pytorch_are_explained(error: Exception, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="gemm_naive"), raising(error):
        pass


def test_other_errors_pass_through() -> None:
    with pytest.raises(ZeroDivisionError), raising(ZeroDivisionError()):
        pass


DEVICES = (
    Visible(0, "GPU-aaaa1111-0000-0000-0000-000000000000", "NVIDIA H200", "90", 141 << 30),
    Visible(1, "GPU-aaaa2222-0000-0000-0000-000000000000", "NVIDIA L4", "89", 24 << 30),
)


@pytest.mark.parametrize(("wanted", "index"), [(None, 0), ("1", 1), ("GPU-aaaa2", 1), ("AAAA1", 0)])
def test_a_device_by_ordinal_or_beginning_of_its_uuid(wanted: str | None, index: int) -> None:
    assert choose(DEVICES, wanted).index == index


@pytest.mark.parametrize(
    ("wanted", "why"), [("7", "is not here"), ("GPU-aaaa", "several"), ("gpu-", "is not here")]
)
def test_a_device_that_is_not_one_lists_what_there_is(wanted: str, why: str) -> None:
    with pytest.raises(Unavailable, match=why) as raised:
        choose(DEVICES, wanted)
    assert DEVICES[1].uuid in str(raised.value)


def test_no_device_at_all() -> None:
    with pytest.raises(Unavailable, match="none"):
        choose((), None)


def test_no_more_is_enqueued_behind_a_blocker_than_a_stream_takes() -> None:
    sizes = (1, 200, 199, 250, 2 * QUEUE_DEPTH, 3)
    groups: list[Sequence[Call]] = [(lambda: None,) * size for size in sizes]
    found = chunks(groups)
    assert [group for chunk in found for group in chunk] == groups
    assert all(sum(len(group) + 1 for group in chunk) <= QUEUE_DEPTH for chunk in found if len(chunk) > 1)
