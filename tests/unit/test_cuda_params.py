"""Arguments are packed as a C++ compiler lays out the same struct."""

from __future__ import annotations

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.backends.cuda.runtime.params import pack
from gputop.plan.types import Argument, Scratch, View, WeightView
from gputop.util.errors import UsageError

i32 = st.integers(min_value=-(2**31), max_value=2**31 - 1)
scalars = st.one_of(i32, st.floats(width=32, allow_nan=False))
pointers: st.SearchStrategy[Argument] = st.one_of(
    st.none(),
    st.builds(View, st.just("x"), st.just(0), i32, i32, i32),
    st.builds(WeightView, st.just("w1"), i32, i32, i32),
    st.builds(Scratch, st.just("partial"), i32),
)


def address(operand: object) -> int:
    return hash(operand) & 0xFFFF_FFFF_FFFF


@given(st.lists(pointers, max_size=8), st.lists(scalars, max_size=12))
def test_like_the_struct_of_a_c_compiler(operands: list[Argument], numbers: list[int | float]) -> None:
    fields: list[tuple[str, type]] = [(f"p{i}", ctypes.c_void_p) for i in range(len(operands))]
    fields += [
        (f"s{i}", ctypes.c_float if isinstance(number, float) else ctypes.c_int32)
        for i, number in enumerate(numbers)
    ]
    struct = type("Struct", (ctypes.Structure,), {"_fields_": fields})
    expected = struct(*(0 if o is None else address(o) for o in operands), *numbers)
    packed = pack((*operands, *numbers), address)
    aligned = bytes(expected).ljust(len(packed), b"\0")
    assert packed == aligned
    assert len(packed) % 4 == 0
    if operands:
        assert len(packed) == ctypes.sizeof(expected)


def test_a_pointer_after_a_number_is_refused() -> None:
    with pytest.raises(UsageError, match="come before"):
        pack((1, None), address)


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1])
def test_a_number_too_large_for_its_field_is_refused(number: int) -> None:
    with pytest.raises(UsageError, match="do not fit"):
        pack((number,), address)
