"""Kernel records read by CUPTI's own library, which needs no driver for that."""

from __future__ import annotations

import ctypes

import pytest
from cuda import pathfinder
from hypothesis import given
from hypothesis import strategies as st

from gputop.backends.cuda.timing import cupti_ffi
from gputop.backends.cuda.timing.cupti_ffi import CONCURRENT_KERNEL, Cupti, KernelRecord
from gputop.backends.cuda.timing.spans import Span

RECORD_BYTES = 216
"""CUpti_ActivityKernel10, which CUPTI 13.0 writes."""
NAMES = (b"gemm_tiled", b"", b"_Z9layernormPKf", b"n\xffme")

spans = st.tuples(st.integers(1, 2**63), st.integers(0, 2**40), st.sampled_from(NAMES))


@pytest.fixture(scope="module")
def cupti() -> Cupti:
    library = cupti_ffi.load()
    assert library is not None, "the extra `dev` brings it"
    return library


def written(kernels: list[tuple[int, int, bytes]]) -> ctypes.Array[ctypes.c_char]:
    """A buffer as CUPTI hands it over, with these kernels in it."""
    buffer = ctypes.create_string_buffer(max(1, len(kernels)) * RECORD_BYTES)
    for index, (start, length, name) in enumerate(kernels):
        record = KernelRecord.from_buffer(buffer, index * RECORD_BYTES)
        record.kind, record.start, record.end = CONCURRENT_KERNEL, start, start + length
        record.name = name
    return buffer


@given(st.lists(spans, max_size=20))
def test_records_are_read_as_they_were_written(cupti: Cupti, kernels: list[tuple[int, int, bytes]]) -> None:
    buffer = written(kernels)
    read = cupti.read(ctypes.addressof(buffer), len(kernels) * RECORD_BYTES)
    assert read == [
        Span(start, start + length, name.decode(errors="replace")) for start, length, name in kernels
    ]


def test_a_kernel_whose_times_could_not_be_had_is_left_out(cupti: Cupti) -> None:
    buffer = written([(0, 0, b"untimed"), (7, 2, b"timed")])
    assert cupti.read(ctypes.addressof(buffer), 2 * RECORD_BYTES) == [Span(7, 9, "timed")]


def test_a_library_that_is_broken_is_told_apart_from_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(error: Exception) -> None:
        def load(name: str) -> None:
            raise error

        monkeypatch.setattr(pathfinder, "load_nvidia_dynamic_lib", load)

    look = cupti_ffi.load.__wrapped__
    fails(pathfinder.DynamicLibNotFoundError("nowhere"))
    assert look() is None
    fails(RuntimeError("libcupti.so.13: invalid ELF header"))
    with pytest.raises(OSError, match="invalid ELF header"):
        look()
    monkeypatch.setattr(pathfinder, "SUPPORTED_NVIDIA_LIBNAMES", ("cudart",))
    assert look() is None


def test_a_kernel_without_a_name_has_an_empty_one(cupti: Cupti) -> None:
    buffer = written([(1, 1, b"")])
    KernelRecord.from_buffer(buffer).name = None
    assert cupti.read(ctypes.addressof(buffer), RECORD_BYTES) == [Span(1, 2, "")]
