"""Every source compiles, keeps out of local memory, and loses nothing to a compiler that gave up."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable

import pytest

from gputop.util.paths import kernels_dir
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


def test_what_two_files_share_stands_in_a_header() -> None:
    """Structs and functions on the device; that two entries are alike is their own affair."""
    files_of: dict[str, set[str]] = defaultdict(set)
    for path in sorted(kernels_dir().rglob("*.cu*")):
        code = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))
        for body in re.findall(r"^(?:struct|template|__device__)\b[^;{}]*(\{\n.*?^\})", code, re.S | re.M):
            files_of[" ".join(body.split())].add(path.name)
    assert files_of
    assert not {body: files for body, files in files_of.items() if len(files) > 1}
