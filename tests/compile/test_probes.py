"""The probes of peaks keep their machine code's promise: what a loop is counted to do is what it does."""

from __future__ import annotations

import pytest

from gputop.backends.cuda.ceilings.launch import CODES
from gputop.backends.cuda.ceilings.math import MATH_PROBES, PATH_PROBES, WGMMA_WIDTHS, MathProbe
from gputop.backends.cuda.compiler.cubin import entry_code
from gputop.backends.cuda.compiler.sass import SassLoop, disassemble, loops
from gputop.util.errors import Unavailable
from tests.compile import sources

ARCH = "90"
FLOPS = {"FFMA": 64, "HMMA.1684.F32.TF32": 1024, "HMMA.1688.F32.TF32": 2048, "HMMA.16816.F32.BF16": 4096}
"""Of one instruction, all lanes of a warp."""
WARPGROUP_FLOPS = {
    "HGMMA.64x256x16.F32.BF16": 2 * 64 * 256 * 16,
    **{f"HGMMA.64x{n}x8.F32.TF32": 2 * 64 * n * 8 for n in (*WGMMA_WIDTHS, 256)},
}
MOST_OVERHEAD = 0.1
"""Other instructions of the loop, as a share."""


def loop(name: str, entry: str) -> SassLoop:
    """The longest loop of a kernel."""
    cubin = sources.cubin(name, ARCH)
    assert cubin is not None
    try:
        return max(loops(disassemble(cubin, entry)), key=lambda found: found.instructions)
    except Unavailable as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("probe", [*MATH_PROBES, *PATH_PROBES], ids=lambda probe: probe.name)
def test_a_loop_does_the_flops_it_is_counted_for(probe: MathProbe) -> None:
    found = loop(f"measure/{probe.source}", probe.entry)
    table = FLOPS if probe.warps_per_unit == 1 else WARPGROUP_FLOPS
    math = {opcode: count for opcode, count in found.mix.items() if opcode in table}
    assert sum(table[opcode] * count for opcode, count in math.items()) == probe.flops_per_loop
    if probe.warps_per_unit == 1:
        assert sum(math.values()) >= (1 - MOST_OVERHEAD) * found.instructions


@pytest.mark.parametrize(
    "probe", [probe for probe in (*MATH_PROBES, *PATH_PROBES) if "wgmma" in probe.name], ids=lambda p: p.name
)
def test_wgmma_waits_once_a_batch(probe: MathProbe) -> None:
    """A compiler that serialises warpgroup products waits after each of them."""
    assert loop(f"measure/{probe.source}", probe.entry).count(".*DEPBAR") == 1


def test_reads_of_a_clusters_memory_are_in_flight_together() -> None:
    """Eight 16-byte loads before the first sum that needs one."""
    cubin = sources.cubin("measure/cluster.cu", ARCH)
    assert cubin is not None
    try:
        code = disassemble(cubin, "dsmem_read")
    except Unavailable as error:
        pytest.skip(str(error))
    loads = [i for i, instruction in enumerate(code) if instruction.opcode.startswith("LD.E.128")][:8]
    assert not any(instruction.opcode == "FADD" for instruction in code[loads[0] : loads[-1]])


def test_straight_code_is_as_long_as_it_says_and_larger_together_than_an_instruction_cache() -> None:
    cubin = sources.cubin("measure/code.cu", ARCH)
    assert cubin is not None
    sizes = [len(entry_code(cubin.code, entry)) for entry in cubin.functions]
    assert len(sizes) == CODES
    assert min(sizes) > 8 << 10
    assert sum(sizes) > 48 << 10


@pytest.mark.parametrize(
    "entry", ["dram_read", "dram_copy", "dram_copy_tiles", "dram_copy_cached", "l2_read"]
)
def test_bandwidth_probes_keep_eight_wide_loads_in_flight(entry: str) -> None:
    assert loop("measure/bandwidth.cu", entry).count(r"LDG\..*128") == 8


@pytest.mark.parametrize("probe", [("bandwidth.cu", "l2_read"), ("latency.cu", "chase")], ids="/".join)
def test_the_l2_probes_pass_l1_by(probe: tuple[str, str]) -> None:
    """A load that must see what other SMs wrote can't be answered by this SM's own cache."""
    source, entry = probe
    loads = [opcode for opcode in loop(f"measure/{source}", entry).mix if opcode.startswith("LDG")]
    assert loads
    assert all(opcode.endswith("STRONG.GPU") for opcode in loads), loads


def test_a_walk_is_loads_and_nothing_that_adds_to_their_latency() -> None:
    """Each load's address is what the one before gave, as it came: no arithmetic between them."""
    cubin = sources.cubin("measure/latency.cu", ARCH)
    assert cubin is not None
    walk = loop("measure/latency.cu", "chase")
    try:
        body = disassemble(cubin, "chase")[walk.first : walk.last + 1]
    except Unavailable as error:
        pytest.skip(str(error))
    loads = [instruction.operands for instruction in body if instruction.opcode.startswith("LDG.E.64")]
    assert len(loads) == walk.count("LDG") == 16
    targets = [operands.split(",")[0] for operands in loads]
    bases = [operands.rsplit("[", 1)[1].split(".")[0] for operands in loads]
    assert bases == [targets[-1], *targets[:-1]]
