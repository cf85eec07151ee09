"""What doctor asks of this machine: one record a question, each answered in a process of its own.

`python -m gputop.cli.doctor_checks NAME` answers one, as a JSON line: an import that crashes the interpreter
(a broken driver, a mismatched library) costs that answer only.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import platform
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal

from gputop.backends.cuda import packages
from gputop.backends.cuda.runtime import driver
from gputop.backends.cuda.runtime.devices import choose
from gputop.cli.doctor_findings import Absent, Finding
from gputop.cli.gpu_listing import (
    HIDDEN,
    NO_DRIVER,
    UNKNOWN,
    CudaDevice,
    cuda_devices,
    open_nvml,
    visible_to_cuda,
)
from gputop.util import host_cpu, install_hints, thread_limits, units
from gputop.util.errors import Unavailable, first_line
from gputop.util.install_hints import requirement_of

Need = Literal["always", "cuda", "extra"]
SPARE_THREADS = 2
"""Threads of a worker besides those of its BLAS, which has one a core."""
RAISE_LIMIT = "raise the limit named here, or end other programs"


@dataclass(frozen=True, slots=True)
class Probe:
    """One question."""

    name: str
    need: Need
    purpose: str
    ask: Callable[[], str]
    """What is here, in words; raises Absent."""
    fix: str
    """For an import that fails."""
    distributions: tuple[str, ...] = ()
    """Packages that bring it, as an installer names them."""


def _required(name: str, need: Need, purpose: str, ask: Callable[[], str]) -> Probe:
    """A question after a package that gputop requires."""
    return Probe(name, need, purpose, ask, install_hints.install(requirement_of(name)), (name,))


NVML_FIX = install_hints.install(requirement_of("nvidia-ml-py"))


def _python() -> str:
    return f"{platform.python_version()} at {sys.executable}"


def _threads() -> str:
    count = host_cpu.affinity_cores() + SPARE_THREADS
    try:
        thread_limits.require(count)
    except Unavailable as error:
        raise Absent(str(error), RAISE_LIMIT, "broken") from error
    return f"{count} can be started at once"


def _numpy() -> str:
    # A BLAS that can't start its threads crashes or hangs, and nothing is wrong with NumPy.
    _threads()
    import numpy
    from threadpoolctl import threadpool_info

    blas = [
        f"{pool.get('internal_api')} {pool.get('version')} {pool.get('architecture') or ''}".strip()
        + f", {pool.get('num_threads')} threads"
        for pool in threadpool_info()
        if pool.get("user_api") == "blas"
    ]
    return f"{numpy.__version__}, {'; '.join(blas) or 'BLAS unknown'}"


def _processor() -> str:
    _threads()
    from gputop.backends.cpu import machine

    memory, cache = machine.memory_bytes(), machine.last_cache_bytes()
    sizes = [
        f"{units.size_bytes(size)} of {what}" for size, what in ((memory, "memory"), (cache, "cache")) if size
    ]
    return ", ".join((machine.processor(), f"{host_cpu.affinity_cores()} cores", *sizes))


def _version_of(distribution: str) -> Callable[[], str]:
    def ask() -> str:
        importlib.import_module(distribution)
        return importlib.metadata.version(distribution)

    return ask


def _plotext() -> str:
    version = importlib.metadata.version("plotext")
    if int(version.split(".")[0]) < 6:
        fix = install_hints.upgrade(requirement_of("plotext"))
        raise Absent(f"{version} is another interface than the one used here", fix, "broken")
    return version


def _nvml() -> str:
    nvml = open_nvml()
    return f"NVML {nvml.nvmlSystemGetNVMLVersion()}"


def _driver() -> str:
    serves = driver.version()
    if serves is None:
        raise Absent(f"no NVIDIA driver: {driver.LIBRARY} is not found", NO_DRIVER)
    try:
        release = str(open_nvml().nvmlSystemGetDriverVersion())
    except Absent:
        release = "release unknown"
    return f"{release}, up to CUDA {driver.named(serves)}"


def _devices() -> str:
    found = cuda_devices()
    if not found:
        raise Absent("the driver sees no GPU", "check `nvidia-smi`, and that this container was given a GPU")
    listed = "; ".join(_described(device) for device in found)
    if all(device.index == HIDDEN for device in found):
        raise Absent(f"CUDA shows none of these: {listed}", "check CUDA_VISIBLE_DEVICES", "broken")
    if visible := visible_to_cuda():
        try:
            choose(visible, None)
        except Unavailable as error:
            raise Absent(str(error), "gputop run --backend cpu", "broken") from error
    return listed


def _described(device: CudaDevice) -> str:
    """`0: NVIDIA H200, 141 GB, GPU-...`"""
    said = {HIDDEN: "hidden from CUDA", UNKNOWN: "index unknown, --device takes the UUID"}
    index = said.get(device.index, device.index)
    return f"{index}: {device.name}, {units.size_bytes(device.memory_bytes)}, {device.uuid}"


def _cupy() -> str:
    if (several := packages.several_cupys()) is not None:
        raise Absent(*several, "broken")
    cupy = importlib.import_module("cupy")
    if not cupy.cuda.is_available():
        raise Absent(
            f"CuPy {cupy.__version__} is installed but finds no usable device or driver", NO_DRIVER, "broken"
        )
    return f"{cupy.__version__}, CUDA runtime {cupy.cuda.runtime.runtimeGetVersion()}"


def _cuda_bindings() -> str:
    importlib.import_module("cuda.bindings.driver")
    return importlib.metadata.version("cuda-bindings")


def _nvrtc() -> str:
    """Version of the compiler and of CUDA's headers that it is given, which must go together."""
    from gputop.backends.cuda.compiler.nvrtc import toolchain

    importlib.import_module("cuda.bindings.nvrtc").nvrtcVersion()
    try:
        tools = toolchain()
    except Unavailable as error:
        raise Absent(str(error), install_hints.extra("cuda13"), "broken") from error
    return f"NVRTC {tools.version}, headers of CUDA {tools.headers}"


def _nvdisasm() -> str:
    return _utility("nvdisasm", install_hints.extra("compile"))


def _ncu() -> str:
    return _utility("ncu", "install Nsight Compute: https://developer.nvidia.com/nsight-compute")


def _nvmath() -> str:
    """The binding's version where the library answers: the binding alone can be imported without it."""
    cublaslt = importlib.import_module("nvmath.bindings.cublasLt")
    try:
        cublaslt.get_version()
    except Exception as error:
        detail = f"nvmath is installed, but cuBLASLt can't be loaded ({first_line(error)})"
        raise Absent(detail, install_hints.extra("cuda13,blaslt"), "broken") from error
    return importlib.metadata.version("nvmath-python")


def _cupti() -> str:
    from gputop.backends.cuda.timing import cupti_ffi

    cupti = cupti_ffi.load()
    if cupti is None:
        raise Absent("not found", install_hints.extra("cupti"))
    return cupti.path


def _torch() -> str:
    torch = importlib.import_module("torch")
    return f"{torch.__version__}, CUDA {'usable' if torch.cuda.is_available() else 'not usable'}"


def _utility(name: str, fix: str) -> str:
    path = shutil.which(name)
    if path is None:
        try:
            path = importlib.import_module("cuda.pathfinder").find_nvidia_binary_utility(name)
        except ImportError:
            path = None
    if path is None:
        raise Absent("not found", fix)
    return str(path)


def _kernels() -> str:
    from gputop.planner.kernel_checks import broken_kernels
    from gputop.planner.registry import Registry

    registry = Registry.load()
    broken = broken_kernels(registry)
    if broken:
        told = "; ".join(f"{name}: {why}" for name, why in broken.items())
        raise Absent(told, "correct the record in phases/; all other kernels can be used", "broken")
    return f"the records of {len(registry.kernels)} kernels are sound"


PROBES: tuple[Probe, ...] = (
    Probe("python", "always", "runs gputop", _python, ""),
    Probe("threads", "always", "a worker, its BLAS, the screen", _threads, RAISE_LIMIT),
    _required("numpy", "always", "the cpu backend and the reference", _numpy),
    Probe(
        "processor",
        "extra",
        "what the cpu backend measures",
        _processor,
        install_hints.install(requirement_of("numpy")),
    ),
    _required("textual", "always", "the screen", _version_of("textual")),
    _required("plotext", "always", "plots on the screen", _plotext),
    Probe(
        "kernels",
        "extra",
        "what plans are made of",
        _kernels,
        install_hints.install(requirement_of("numpy")),
    ),
    Probe("driver", "cuda", "any work on a GPU", _driver, NO_DRIVER),
    Probe("nvml", "cuda", "clocks, power, temperature", _nvml, NVML_FIX),
    Probe("devices", "cuda", "something to measure on", _devices, NVML_FIX),
    Probe(
        "cupy",
        "cuda",
        "memory, streams, graphs",
        _cupy,
        install_hints.extra("cuda13"),
        packages.cupy_distributions(),
    ),
    Probe(
        "cuda-bindings",
        "cuda",
        "launch attributes, clusters",
        _cuda_bindings,
        install_hints.extra("cuda13"),
        ("cuda-bindings",),
    ),
    Probe(
        "nvrtc",
        "cuda",
        "compiles the kernels",
        _nvrtc,
        install_hints.extra("cuda13"),
        ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12"),
    ),
    Probe("nvdisasm", "extra", "instruction mix of kernels", _nvdisasm, install_hints.extra("compile")),
    Probe(
        "nvmath",
        "extra",
        "cuBLASLt with fused epilogues",
        _nvmath,
        install_hints.extra("blaslt"),
        ("nvmath-python",),
    ),
    Probe("cupti", "extra", "times of kernels inside graphs", _cupti, install_hints.extra("cupti")),
    Probe(
        "torch",
        "extra",
        "the peers: PyTorch eager, compiled and tuned",
        _torch,
        install_hints.extra("torch"),
        ("torch",),
    ),
    Probe("ncu", "extra", "hardware counters of kernels", _ncu, ""),
)


def answer(probe: Probe) -> Finding:
    """Return the answer, found in this process."""
    try:
        return Finding("ok", probe.ask())
    except Absent as absent:
        return absent.finding
    except ModuleNotFoundError as error:
        return Finding("missing", f"not installed ({first_line(error)})", _repair(probe, error.name or ""))
    except Exception as error:
        return Finding("broken", f"{type(error).__name__}: {first_line(error)}", _repair(probe))


def _repair(probe: Probe, missing: str = "") -> str:
    """Return the command that helps: an installer finds nothing to do if the package is recorded already.

    `missing`: the module that is not found, which may be one that the package needs.
    """
    recorded = [name for name in probe.distributions if install_hints.is_recorded(name)]
    if not recorded:
        return probe.fix
    module = missing.partition(".")[0]
    if module and not probe.name.startswith(module):
        return install_hints.install(module)
    return install_hints.install_again(recorded[0])


def main() -> int:
    """Answer the probe named on the command line."""
    probe = next(probe for probe in PROBES if probe.name == sys.argv[1])
    print(json.dumps(asdict(answer(probe))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
