"""The probes of peaks keep their machine code's promise: what a loop is counted to do is what it does."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from gputop.backends.cuda.probes_math import MATH_PROBES, MathProbe
from tests.compile import sources

ARCH = "90"
FLOPS = {"FFMA": 64, "HMMA.1688.F32.TF32": 2048, "HMMA.16816.F32.BF16": 4096}
"""Of one instruction, all lanes of a warp."""
WARPGROUP_FLOPS = {"HGMMA.64x256x8.F32.TF32": 2 * 64 * 256 * 8, "HGMMA.64x256x16.F32.BF16": 2 * 64 * 256 * 16}
MOST_OVERHEAD = 0.1
"""Other instructions of the loop, as a share."""


def nvdisasm() -> str:
    from cuda.pathfinder import find_nvidia_binary_utility

    found = find_nvidia_binary_utility("nvdisasm")
    if found is None:
        pytest.skip("nvdisasm is not installed")
    return str(found)


def instructions(name: str, entry: str, folder: Path) -> list[tuple[str, str]]:
    """(opcode, operands) of a kernel, in order."""
    cubin = sources.cubin(name, ARCH)
    assert cubin is not None
    file = folder / "probe.cubin"
    file.write_bytes(cubin.code)
    command = [nvdisasm(), "-json", str(file)]
    listing = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    (function,) = [f for f in listing[1] if f["function-name"] == entry]
    return [(i["opcode"], i.get("operands", "")) for i in function["sass-instructions"]]


def loop(code: list[tuple[str, str]]) -> Counter[str]:
    """Opcodes of the longest loop: the branch that goes back furthest."""
    bodies = []
    for index, (opcode, operands) in enumerate(code):
        target = re.findall(r"0x[0-9a-f]+", operands)
        if opcode.split(".")[0] == "BRA" and target and int(target[-1], 16) // 16 < index:
            bodies.append(code[int(target[-1], 16) // 16 : index + 1])
    return Counter(opcode for opcode, _ in max(bodies, key=len))


@pytest.mark.parametrize("probe", MATH_PROBES, ids=lambda probe: probe.name)
def test_a_loop_does_the_flops_it_is_counted_for(probe: MathProbe, tmp_path: Path) -> None:
    found = loop(instructions(f"measure/{probe.source}", probe.entry, tmp_path))
    table = FLOPS if probe.warps_per_unit == 1 else WARPGROUP_FLOPS
    math = {opcode: count for opcode, count in found.items() if opcode in table}
    assert sum(table[opcode] * count for opcode, count in math.items()) == probe.flops_per_loop
    if probe.warps_per_unit == 1:
        assert sum(math.values()) >= (1 - MOST_OVERHEAD) * sum(found.values())


def test_wgmma_waits_once_a_batch(tmp_path: Path) -> None:
    """A compiler that serialises warpgroup products waits after each of them."""
    found = loop(instructions("measure/wgmma.cu", "wgmma_tf32_loop", tmp_path))
    assert sum(count for opcode, count in found.items() if "DEPBAR" in opcode) == 1


@pytest.mark.parametrize(
    "entry", ["dram_read", "dram_copy", "dram_copy_tiles", "dram_copy_cached", "l2_read"]
)
def test_bandwidth_probes_keep_eight_wide_loads_in_flight(entry: str, tmp_path: Path) -> None:
    found = loop(instructions("measure/bandwidth.cu", entry, tmp_path))
    assert sum(count for opcode, count in found.items() if re.match(r"LDG\..*128", opcode)) == 8


def test_the_l2_probe_passes_l1_by(tmp_path: Path) -> None:
    """A load that must see what other SMs wrote can't be answered by this SM's own cache."""
    found = loop(instructions("measure/bandwidth.cu", "l2_read", tmp_path))
    loads = [opcode for opcode in found if opcode.startswith("LDG")]
    assert loads
    assert all(opcode.endswith("STRONG.GPU") for opcode in loads), loads
