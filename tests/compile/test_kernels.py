"""Every source compiles, keeps out of local memory, and loses nothing to a compiler that gave up."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.compile import sources

MOST_REGISTERS = 255
MAY_SPILL: frozenset[str] = frozenset()
"""Entries that may keep something in local memory, on some architecture."""


@pytest.mark.parametrize("name", sources.NAMES)
def test_compiles_without_spills(
    name: str, device_arch: str, record_property: Callable[[str, object], None]
) -> None:
    cubin = sources.cubin(name, device_arch)
    if cubin is None:
        pytest.skip(f"{name} has instructions that sm_{device_arch} lacks")
    assert cubin.functions
    for entry, facts in cubin.functions.items():
        record_property(
            f"{cubin.arch} {entry}", f"{facts.registers} registers, {facts.spill_bytes} B spilled"
        )
        assert facts.registers is not None
        assert 0 < facts.registers <= MOST_REGISTERS
        assert facts.code_bytes > 0
        assert facts.spill_bytes is not None, f"ptxas reported nothing of {entry}"
        if entry not in MAY_SPILL:
            assert facts.spill_bytes == 0, f"{entry} spills {facts.spill_bytes} B on {cubin.arch}"
    assert "Potential Performance Loss" not in cubin.log
