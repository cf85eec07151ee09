"""Occupancy against NVIDIA's own calculator, compiled from its header, and by hand."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.perf.gpu_specs import SM_LIMITS, limits
from gputop.perf.occupancy import theoretical, warps_in_flight, waves
from gputop.util.errors import UsageError

SOURCE = Path(__file__).parent / "data" / "occupancy_oracle.cpp"
ARCHES = ("sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120")
FACTORS = {0x01: "warps", 0x02: "registers", 0x04: "shared memory", 0x08: "blocks", 0x10: "barriers"}

Ask = Callable[[Sequence[str]], list[list[int]]]


@dataclass(frozen=True, slots=True)
class Case:
    arch: str
    threads: int
    registers: int
    static: int
    dynamic: int
    barriers: int

    def question(self) -> str:
        sm = limits(self.arch)
        major, minor = capability(self.arch)
        return (
            f"occupancy {major} {minor} {sm.warps_per_sm} {sm.smem_per_sm_bytes}"
            f" {sm.smem_per_block_optin_bytes} {self.threads} {self.registers} {self.static}"
            f" {self.dynamic} {self.barriers}"
        )


def capability(arch: str) -> tuple[int, int]:
    digits = arch.removeprefix("sm_")
    return int(digits[:-1]), int(digits[-1])


def header_folder() -> Path | None:
    """Where `cuda_occupancy.h` is: the nvidia-cuda-runtime wheel, or a toolkit."""
    try:
        from cuda.pathfinder import find_nvidia_header_directory
    except ImportError:
        return None
    found = find_nvidia_header_directory("cudart")
    folder = Path(found) if found else None
    return folder if folder and (folder / "cuda_occupancy.h").is_file() else None


@pytest.fixture(scope="session")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """Questions to NVIDIA's calculator, answered in one run of it."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++ to compile cuda_occupancy.h with")
    headers = header_folder()
    if headers is None:
        pytest.skip("no cuda_occupancy.h: pip install nvidia-cuda-runtime cuda-pathfinder")
    program = tmp_path_factory.mktemp("oracle") / "occupancy_oracle"
    subprocess.run([compiler, f"-isystem{headers}", SOURCE, "-o", program], check=True)

    def run(questions: Sequence[str]) -> list[list[int]]:
        done = subprocess.run(
            [program], input="\n".join(questions) + "\n", capture_output=True, text=True, check=True
        )
        answers = [[int(word) for word in line.split()] for line in done.stdout.splitlines()]
        assert len(answers) == len(questions)
        return answers

    return run


def sweep(arch: str, count: int) -> list[Case]:
    """Every edge once, then `count` launches drawn with a fixed seed."""
    sm = limits(arch)
    draw = random.Random(f"occupancy {arch}")
    threads = (1, 31, 32, 33, 64, 96, 127, 128, 160, 192, 224, 256, 288, 384, 512, 544, 992, 1024, 1025)
    registers = (0, 1, 8, 9, 16, 24, 25, 32, 40, 42, 48, 64, 65, 96, 127, 128, 168, 200, 254, 255, 256, 257)
    optin = sm.smem_per_block_optin_bytes
    smem = (0, 1, 127, 128, 129, 1024, 48 * 1024 - 1, 48 * 1024, 48 * 1024 + 1, optin - 1, optin, optin + 1)
    edges = [Case(arch, t, r, 0, 0, 1) for t in threads for r in registers]
    edges += [Case(arch, t, 32, s, 0, b) for t in threads for s in smem for b in (0, 1)]
    edges += [Case(arch, t, 32, 1000, s, 1) for t in threads for s in smem]
    shares = [sm.smem_per_sm_bytes // n - 1024 for n in range(2, 33)]
    edges += [Case(arch, t, 16, 0, s, 1) for t in (32, 128) for s in shares]
    drawn = [
        Case(
            arch,
            draw.choice((draw.randint(1, 1024), 32 * draw.randint(1, 32))),
            draw.randint(0, 255),
            draw.choice((0, draw.randint(0, 48 * 1024), 128 * draw.randint(0, 64))),
            draw.choice((0, draw.randint(0, optin), 1024 * draw.randint(0, 64))),
            draw.randint(0, 1),
        )
        for _ in range(count)
    ]
    return edges + drawn


def named(factors: int, threads: int) -> set[str]:
    """The calculator's bit field in our words; it files an oversized block under warps."""
    names = {name for bit, name in FACTORS.items() if factors & bit}
    if threads > 1024 and "warps" in names:
        return names - {"warps"} | {"block size"}
    return names


@pytest.mark.parametrize("arch", ARCHES)
def test_blocks_and_every_limiter_agree_with_nvidias_calculator(ask: Ask, arch: str) -> None:
    cases = sweep(arch, 3000)
    for case, (status, blocks, factors) in zip(cases, ask([case.question() for case in cases]), strict=True):
        assert status == 0, case
        ours = theoretical(
            arch, case.threads, case.registers, case.static, case.dynamic, barriers=case.barriers
        )
        assert ours.blocks_per_sm == blocks, case
        assert set(ours.limiters) == named(factors, case.threads), case


@pytest.mark.parametrize("arch", ARCHES)
def test_blocks_agree_with_nvidias_calculator_when_named_barriers_are_scarce(ask: Ask, arch: str) -> None:
    cases = [Case(arch, 32 * w, 32, 0, 0, b) for w in (1, 2, 4, 8) for b in range(17)]
    for case, (_, blocks, factors) in zip(cases, ask([case.question() for case in cases]), strict=True):
        ours = theoretical(arch, case.threads, case.registers, barriers=case.barriers)
        assert ours.blocks_per_sm == blocks, case
        # The calculator leaves the limits set that barriers undercut, hence <= and not ==.
        assert set(ours.limiters) <= named(factors, case.threads), case
        assert ("barriers" in ours.limiters) == bool(factors & 0x10), case


@pytest.mark.parametrize("arch", ARCHES)
def test_the_table_agrees_with_nvidias_header(ask: Ask, arch: str) -> None:
    sm = limits(arch)
    major, minor = capability(arch)
    [[status, blocks, register_unit, partitions, smem_unit, largest_kib]] = ask([f"limits {major} {minor}"])
    assert status == 0
    assert (sm.blocks_per_sm, sm.register_unit) == (blocks, register_unit)
    assert (sm.schedulers, sm.warp_unit) == (partitions, partitions)
    assert sm.smem_unit_bytes == smem_unit
    assert sm.smem_per_sm_bytes == largest_kib * 1024


def test_every_known_architecture_is_compared() -> None:
    assert set(ARCHES) == set(SM_LIMITS)


def test_all_limits_that_tie_are_named() -> None:
    tied = theoretical("sm_90", block_threads=256, registers=32)
    assert (tied.blocks_per_sm, tied.warps_per_sm) == (8, limits("sm_90").warps_per_sm)
    assert tied.limiters == ("warps", "registers")


def test_a_block_reserves_shared_memory_beyond_its_own() -> None:
    # 100 KiB: four blocks of 24 KiB each need 25 KiB with the driver's share, five would not fit.
    assert theoretical("sm_86", 64, 16, 24 * 1024).blocks_per_sm == 4
    assert theoretical("sm_86", 64, 16, 24 * 1024 + 1).blocks_per_sm == 3
    assert theoretical("sm_86", 64, 16, 24 * 1024 + 1).limiters == ("shared memory",)


def test_what_does_not_fit_has_no_blocks_and_says_why() -> None:
    assert theoretical("sm_80", 1025, 300).limiters == ("block size", "registers")
    assert theoretical("sm_80", 1024, 65).limiters == ("registers",)
    assert theoretical("sm_120", 128, 32, 0, 100 * 1024).limiters == ("shared memory",)
    assert theoretical("sm_120", 128, 32, 0, 100 * 1024).warps_per_sm == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("sm_75", 128, 32), "Known: sm_80"),
        (("sm_90", 0, 32), "at least 1 thread"),
        (("sm_90", 128, -1), "registers can't be negative"),
        (("sm_90", 128, 32, -4), "static shared memory can't be negative"),
    ],
)
def test_bad_input_is_a_sentence(arguments: tuple[str, int, int], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        theoretical(*arguments)


def test_clusters_only_where_the_architecture_has_them() -> None:
    assert theoretical("sm_90", 128, 32, cluster=8) == theoretical("sm_90", 128, 32)
    with pytest.raises(UsageError, match="sm_86 takes clusters of 1 to 1"):
        theoretical("sm_86", 128, 32, cluster=2)


def test_a_grid_smaller_than_a_wave_is_capped_by_its_blocks() -> None:
    # 48 blocks of 4 warps on 80 SMs; cutting the summation in 8 gives 384 blocks.
    assert warps_in_flight(48, 128, blocks_per_sm=8, sm_count=80) == 192
    assert warps_in_flight(384, 128, blocks_per_sm=8, sm_count=80) == 1536
    assert warps_in_flight(10_000, 128, blocks_per_sm=8, sm_count=80) == 80 * 8 * 4
    assert waves(48, blocks_per_sm=8, sm_count=80) == pytest.approx(0.075)
    assert waves(960, blocks_per_sm=8, sm_count=80) == 1.5


def test_clusters_leave_sms_without_a_block() -> None:
    """15 clusters of 8 on 132 SMs of which each holds one block: 128 blocks take a second wave."""
    assert waves(128, 1, 132) < 1
    assert waves(128, 1, 132, clustered=15 * 8) == pytest.approx(128 / 120)
    assert warps_in_flight(128, 256, 1, 132, clustered=15 * 8) == 120 * 8
    assert warps_in_flight(64, 256, 1, 132, clustered=15 * 8) == 64 * 8
    with pytest.raises(UsageError, match="No block"):
        waves(128, 1, 132, clustered=0)


def test_no_resident_block_has_no_waves() -> None:
    with pytest.raises(UsageError, match="Fewer registers"):
        waves(10, 0, 80)
    with pytest.raises(UsageError, match="Fewer registers"):
        warps_in_flight(10, 128, 0, 80)


@given(
    arch=st.sampled_from(ARCHES),
    threads=st.integers(1, 1024),
    registers=st.integers(0, 255),
    smem=st.integers(0, 99 * 1024),
    more=st.integers(0, 64),
)
def test_asking_for_more_never_gives_more_blocks(
    arch: str, threads: int, registers: int, smem: int, more: int
) -> None:
    blocks = theoretical(arch, threads, registers, smem).blocks_per_sm
    assert theoretical(arch, threads + more, registers, smem).blocks_per_sm <= blocks
    assert theoretical(arch, threads, registers + more, smem).blocks_per_sm <= blocks
    assert theoretical(arch, threads, registers, smem + 128 * more).blocks_per_sm <= blocks
