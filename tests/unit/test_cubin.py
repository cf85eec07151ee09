"""The CUBIN reader refuses what is none; ptxas' words are read whatever surrounds them.

What it reads from real CUBINs is tested in tests/compile.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.backends.cuda.compiler.cubin import FunctionFacts, ptxas_facts, read_cubin
from gputop.util.errors import UsageError

LOG = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '{name}' for 'sm_90'
ptxas info    : Function properties for {name}
ptxas         .     {stack} bytes stack frame, {stores} bytes spill stores, {loads} bytes spill loads
ptxas info    : Used {registers} registers, used {barriers} barriers, {smem} bytes smem
ptxas info    : Compile time = 18.213 ms
"""
sizes = st.integers(min_value=0, max_value=100_000)


@given(st.binary(max_size=300))
def test_anything_but_a_cubin_is_bad_input(data: bytes) -> None:
    with pytest.raises(UsageError, match="CUBIN"):
        read_cubin(data)


@given(st.binary(max_size=300))
def test_an_elf_header_and_noise_is_bad_input(data: bytes) -> None:
    with pytest.raises(UsageError, match="CUBIN"):
        read_cubin(b"\x7fELF" + data)


@given(sizes, sizes, st.integers(min_value=0, max_value=16))
def test_spills_and_barriers_are_read_per_function(stores: int, loads: int, barriers: int) -> None:
    numbers = {"stack": 8, "registers": 40, "smem": 1024}
    log = LOG.format(name="first", stores=stores, loads=loads, barriers=barriers, **numbers)
    log += LOG.format(name="second", stores=0, loads=0, barriers=1, **numbers)
    found = ptxas_facts({name: FunctionFacts(name) for name in ("first", "second", "silent")}, log)
    assert found["first"].spill_bytes == stores + loads
    assert found["first"].barriers == barriers
    assert found["second"].spill_bytes == 0
    assert found["silent"].spill_bytes is None
