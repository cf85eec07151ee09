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
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from gputop.backends.cuda.runtime import driver
from gputop.backends.cuda.runtime.devices import Visible, choose, visible_devices
from gputop.ipc.process import worker_environment
from gputop.util import install_hints, units
from gputop.util.errors import Unavailable

State = Literal["ok", "missing", "broken"]
Need = Literal["always", "cuda", "extra"]
PATIENCE_S = 60.0
NO_DRIVER = "install NVIDIA's driver, 580 or newer: https://www.nvidia.com/drivers"


@dataclass(frozen=True, slots=True)
class Finding:
    """One answer."""

    state: State
    detail: str
    mend: str = ""
    """The command that mends it; empty where it is ok."""


class Absent(Exception):
    """What was looked for is not here: what is wrong, and the command that mends it."""

    def __init__(self, detail: str, mend: str, state: State = "missing") -> None:
        super().__init__(detail)
        self.finding = Finding(state, detail, mend)


@dataclass(frozen=True, slots=True)
class Probe:
    """One question."""

    name: str
    need: Need
    purpose: str
    ask: Callable[[], str]
    """What is here, in words; raises Absent."""
    mend: str
    """For an import that fails."""


def _python() -> str:
    return f"{platform.python_version()} at {sys.executable}"


def _numpy() -> str:
    import numpy
    from threadpoolctl import threadpool_info

    blas = [
        f"{pool.get('internal_api')} {pool.get('version')} {pool.get('architecture') or ''}".strip()
        + f", {pool.get('num_threads')} threads"
        for pool in threadpool_info()
        if pool.get("user_api") == "blas"
    ]
    return f"{numpy.__version__}, {'; '.join(blas) or 'BLAS unknown'}"


def _version_of(distribution: str) -> Callable[[], str]:
    def ask() -> str:
        importlib.import_module(distribution)
        return importlib.metadata.version(distribution)

    return ask


def _plotext() -> str:
    version = importlib.metadata.version("plotext")
    if int(version.split(".")[0]) < 6:
        mend = install_hints.pip("install --upgrade 'plotext>=6.1,<7'")
        raise Absent(f"{version} is another interface than the one used here", mend, "broken")
    return version


def _nvml() -> str:
    nvml = _open_nvml()
    return f"NVML {nvml.nvmlSystemGetNVMLVersion()}"


def _driver() -> str:
    serves = driver.version()
    if serves is None:
        raise Absent(f"no NVIDIA driver: {driver.LIBRARY} is not found", NO_DRIVER)
    try:
        release = str(_open_nvml().nvmlSystemGetDriverVersion())
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
    if visible := _visible_to_cuda():
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
    nvrtc = importlib.import_module("cuda.bindings.nvrtc")
    _, major, minor = nvrtc.nvrtcVersion()
    return f"NVRTC {major}.{minor}"


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
        detail = f"nvmath is installed, but cuBLASLt can't be loaded ({_first_line(error)})"
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


def _utility(name: str, mend: str) -> str:
    path = shutil.which(name)
    if path is None:
        try:
            path = importlib.import_module("cuda.pathfinder").find_nvidia_binary_utility(name)
        except ImportError:
            path = None
    if path is None:
        raise Absent("not found", mend)
    return str(path)


HIDDEN = "hidden"
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CudaDevice:
    """A GPU of this machine."""

    index: str
    """What `--device` takes: CUDA's ordinal. `hidden` where CUDA_VISIBLE_DEVICES or MIG keeps it from CUDA;
    `unknown` where CUDA can't be asked, since NVML counts in another order."""
    name: str
    uuid: str
    memory_bytes: int | None


def cuda_devices() -> tuple[CudaDevice, ...]:
    """Every GPU: those that CUDA shows in its order, then those that NVML alone knows.

    Absent where there is no driver, or no binding to ask it by.
    """
    visible = _visible_to_cuda()
    shown = tuple(CudaDevice(str(d.index), d.name, d.uuid, d.memory_bytes) for d in visible or ())
    try:
        known = _known_to_nvml(UNKNOWN if visible is None else HIDDEN)
    except Absent:
        if not shown:
            raise
        known = ()
    uuids = {device.uuid for device in shown}
    return (*shown, *(device for device in known if device.uuid not in uuids))


def _visible_to_cuda() -> tuple[Visible, ...] | None:
    """None where CUDA can't be asked: cuda-bindings or the driver is missing, or either is broken."""
    try:
        return visible_devices()
    except Exception:
        return None


def _known_to_nvml(index: str) -> tuple[CudaDevice, ...]:
    nvml = _open_nvml()
    handles = (nvml.nvmlDeviceGetHandleByIndex(place) for place in range(nvml.nvmlDeviceGetCount()))
    return tuple(
        CudaDevice(index, nvml.nvmlDeviceGetName(handle), nvml.nvmlDeviceGetUUID(handle), _size(nvml, handle))
        for handle in handles
    )


def _size(nvml: Any, handle: Any) -> int | None:
    """None of a device that shares the host's memory."""
    try:
        return int(nvml.nvmlDeviceGetMemoryInfo(handle).total)
    except nvml.NVMLError:
        return None


def _open_nvml() -> Any:
    try:
        pynvml = importlib.import_module("pynvml")
    except ImportError as error:
        state: State = "missing" if isinstance(error, ModuleNotFoundError) else "broken"
        detail = f"no binding to ask NVIDIA's driver by ({error})"
        raise Absent(detail, install_hints.pip("install nvidia-ml-py"), state) from error
    if str(pynvml.__file__).endswith("__init__.py"):
        # The old fork is a package, nvidia-ml-py a single module of the same name: the package wins.
        away, again = "uninstall --yes pynvml", "install --force-reinstall nvidia-ml-py"
        mend = f"{install_hints.pip(away)} && {install_hints.pip(again)}"
        raise Absent("an outdated package `pynvml` hides nvidia-ml-py", mend, "broken")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise Absent(f"no NVIDIA driver to ask ({error})", NO_DRIVER) from error
    return pynvml


PROBES: tuple[Probe, ...] = (
    Probe("python", "always", "runs gputop", _python, ""),
    Probe("numpy", "always", "the cpu backend and the reference", _numpy, install_hints.pip("install numpy")),
    Probe(
        "textual",
        "always",
        "the screen",
        _version_of("textual"),
        install_hints.pip("install 'textual>=8.2,<9'"),
    ),
    Probe(
        "plotext", "always", "plots on the screen", _plotext, install_hints.pip("install 'plotext>=6.1,<7'")
    ),
    Probe("driver", "cuda", "any work on a GPU", _driver, NO_DRIVER),
    Probe("nvml", "cuda", "clocks, power, temperature", _nvml, install_hints.pip("install nvidia-ml-py")),
    Probe("devices", "cuda", "something to measure on", _devices, install_hints.pip("install nvidia-ml-py")),
    Probe("cupy", "cuda", "memory, streams, graphs", _cupy, install_hints.extra("cuda13")),
    Probe(
        "cuda-bindings", "cuda", "launch attributes, clusters", _cuda_bindings, install_hints.extra("cuda13")
    ),
    Probe("nvrtc", "cuda", "compiles the kernels", _nvrtc, install_hints.extra("cuda13")),
    Probe("nvdisasm", "extra", "instruction mix of kernels", _nvdisasm, install_hints.extra("compile")),
    Probe("nvmath", "extra", "cuBLASLt with fused epilogues", _nvmath, install_hints.extra("blaslt")),
    Probe("cupti", "extra", "times of kernels inside graphs", _cupti, install_hints.extra("cupti")),
    Probe(
        "torch", "extra", "the peers: PyTorch eager, compiled and tuned", _torch, install_hints.extra("torch")
    ),
    Probe("ncu", "extra", "hardware counters of kernels", _ncu, ""),
)


def answer(probe: Probe) -> Finding:
    """The answer, in this process."""
    try:
        return Finding("ok", probe.ask())
    except Absent as absent:
        return absent.finding
    except ModuleNotFoundError as error:
        return Finding("missing", f"not installed ({_first_line(error)})", probe.mend)
    except Exception as error:
        return Finding("broken", f"{type(error).__name__}: {_first_line(error)}", probe.mend)


class Asking:
    """Answers from processes of their own, from any thread."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()

    def answer(self, probe: Probe) -> Finding:
        command = [sys.executable, "-P", "-m", "gputop.cli.doctor_checks", probe.name]
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        with subprocess.Popen(command, stdout=pipe, stderr=nowhere, env=worker_environment()) as process:
            self._running.add(process)
            try:
                said, _ = process.communicate(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                return Finding("broken", f"no answer within {PATIENCE_S:.0f} s", probe.mend)
            finally:
                self._running.discard(process)
        if process.returncode < 0:
            name = signal.Signals(-process.returncode).name
            return Finding("broken", f"asking for it ended Python by {name}", probe.mend)
        try:
            return Finding(**json.loads(said.splitlines()[-1]))
        except (IndexError, ValueError, TypeError):
            return Finding("broken", f"asking for it ended Python with code {process.returncode}", probe.mend)

    def give_up(self) -> None:
        """End the processes that still run."""
        for process in tuple(self._running):
            process.kill()


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def main() -> int:
    """Answer the probe named on the command line."""
    probe = next(probe for probe in PROBES if probe.name == sys.argv[1])
    print(json.dumps(asdict(answer(probe))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
