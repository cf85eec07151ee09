"""The sources with an activation function in their epilogue, compiled for each form of GELU.

Usually those that are soon compiled, which are one of each kind of epilogue; with --thorough all of them.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest

from gputop.backends.cuda.compiler.nvrtc import Cubin, arch_of, compile_source
from gputop.model.activation_functions import FUNCTIONS
from gputop.util.paths import kernels_dir
from tests.compile import sources

HEADER = "activation.cuh"
MACROS = tuple(function.macro for function in FUNCTIONS.values() if function.macro)
USUAL = (
    "gemm/02_coalesced.cu",
    "gemm/11_one_row_k_major.cu",
    "gemm/11_warpgroup.cu",
    "gemm/23_one_row_layernorm.cu",
    "pointwise/01_store.cu",
)


@cache
def includes(name: str) -> frozenset[str]:
    """Every header of ours behind a source."""
    found: set[str] = set()
    pending = [sources.text(name)]
    while pending:
        text = pending.pop()
        for header in kernels_dir().glob("include/*.cuh"):
            if f'#include "{header.name}"' in text and header.name not in found:
                found.add(header.name)
                pending.append(header.read_text(encoding="utf-8"))
    return frozenset(found)


ACTIVATED = tuple(name for name in sources.NAMES if HEADER in includes(name))


def built(name: str, device_arch: str, *macros: str) -> Cubin | None:
    arch = arch_of(sources.text(name), device_arch)
    folders = (kernels_dir(),)
    return compile_source(kernels_dir() / name, name, arch, folders, macros) if arch else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "activated" in metafunc.fixturenames:
        every = list(product(ACTIVATED, ("80", "90")))
        usual = [(name, "90") for name in USUAL]
        wide = metafunc.config.getoption("--thorough")
        metafunc.parametrize(("activated", "target"), every if wide else usual)


@pytest.mark.parametrize("macro", MACROS)
def test_gelu_compiles_without_spills(activated: str, target: str, macro: str) -> None:
    cubin = built(activated, target, macro)
    if cubin is None:
        pytest.skip(f"{activated} has instructions that sm_{target} lacks")
    for entry, facts in cubin.functions.items():
        assert facts.spill_bytes == 0, f"{entry} spills {facts.spill_bytes} B on {cubin.arch}"
    assert "Potential Performance Loss" not in cubin.log


def digests(name: str) -> list[str]:
    """Of the machine code for each activation function, ReLU first."""
    cubins = (built(name, "90"), *(built(name, "90", macro) for macro in MACROS))
    return [cubin.digest for cubin in cubins if cubin is not None]


def test_each_function_is_machine_code_of_its_own() -> None:
    assert len(set(digests("pointwise/01_store.cu"))) == 1 + len(MACROS)


def test_a_source_without_an_epilogue_is_the_same_for_all() -> None:
    assert HEADER not in includes("embed/01_gather.cu")
    assert len(set(digests("embed/01_gather.cu"))) == 1


def test_every_product_has_the_activation() -> None:
    """A source that had one of its own would be right for ReLU alone."""
    products = {name for name in sources.NAMES if name.startswith(("gemm/", "pointwise/", "megakernel/"))}
    assert set(ACTIVATED) == products
