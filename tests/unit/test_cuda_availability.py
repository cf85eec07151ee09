"""Where the cuda backend can't be used, it says what is missing and what mends it."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

from gputop.backends import choose as choose_backend
from gputop.backends.cuda import availability as opening
from gputop.backends.cuda.availability import available, open_backend
from gputop.backends.cuda.runtime.device_warmup import awake
from gputop.backends.cuda.runtime.devices import Visible, choose, visible_devices
from gputop.model.workloads import WORKLOADS, parse_workload
from gputop.session.session import Session
from gputop.util import install_hints
from gputop.util.errors import Unavailable
from tests.unit.pretend import pretend_devices, pretend_driver

OLD = Visible(0, "GPU-00000000-0000-0000-0000-000000000001", "Tesla T4", "75", 16 << 30)
NEW = Visible(1, "GPU-00000000-0000-0000-0000-000000000002", "NVIDIA L4", "89", 24 << 30)


def pretend_cupy(monkeypatch: pytest.MonkeyPatch, *, driver: int, devices: int) -> None:
    """A driver, and CuPy as it stands before any device is touched: calls that never fail for want of one."""
    pretend_driver(monkeypatch, driver)
    runtime = ModuleType("cupy.cuda.runtime")
    runtime.CUDARuntimeError = type("CUDARuntimeError", (RuntimeError,), {})  # type: ignore[attr-defined]
    runtime.runtimeGetVersion = lambda: 13000  # type: ignore[attr-defined]
    runtime.getDeviceCount = lambda: devices  # type: ignore[attr-defined]
    cuda = ModuleType("cupy.cuda")
    cuda.runtime = runtime  # type: ignore[attr-defined]
    for name, module in (("cupy", ModuleType("cupy")), ("cupy.cuda", cuda)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(opening, "_installed", lambda package: True)


def without(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    monkeypatch.setattr(opening, "_installed", lambda package: package not in packages)


@pytest.mark.parametrize(("serves", "extra"), [(13010, "cuda13"), (12080, "cuda12")])
def test_without_cupy_the_packages_that_fit_the_driver_are_named(
    monkeypatch: pytest.MonkeyPatch, serves: int, extra: str
) -> None:
    pretend_driver(monkeypatch, serves)
    without(monkeypatch, "cupy")
    assert available() == f"CuPy is not installed; {install_hints.extra(extra)}."
    with pytest.raises(Unavailable) as raised:
        open_backend(WORKLOADS[0], None, print)
    assert raised.value.exit_code == 3
    without(monkeypatch, "cupy", "cuda.bindings")
    assert available() == f"CuPy and cuda-bindings are not installed; {install_hints.extra(extra)}."


def test_the_driver_comes_before_the_packages_that_are_nothing_without_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pretend_driver(monkeypatch, 0)
    without(monkeypatch, "cupy")
    driver, besides = (available() or "").split(" Missing besides: ")
    assert "No NVIDIA driver" in driver
    assert "CuPy" not in driver
    assert besides == f"CuPy; {install_hints.extra('cuda13')}."
    without(monkeypatch)
    assert "besides" not in (available() or "")


def test_a_gpu_that_is_passed_over_is_named_with_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_driver(monkeypatch, 13010, device="NVIDIA H200")
    without(monkeypatch, "cupy")
    said = f"NVIDIA H200 is here and is not used: CuPy is not installed; {install_hints.extra('cuda13')}."
    session = Session.open("auto", parse_workload("tiny"))
    assert (session.facts.backend, session.note) == ("cpu", said)
    session.close()
    with pytest.raises(Unavailable, match="NVIDIA H200"):
        Session.open("auto", parse_workload("tiny"), device="0")
    assert choose_backend("cpu") == ("cpu", ""), "whoever names the cpu knows"
    pretend_driver(monkeypatch, 13010)
    assert choose_backend("auto") == ("cpu", ""), "a driver without a device"
    pretend_driver(monkeypatch, 0)
    assert choose_backend("auto") == ("cpu", "")


def test_a_driver_that_lacks_calls_made_of_it_is_refused_before_any_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pretend_driver(monkeypatch, 12020)
    without(monkeypatch, "cupy")
    assert "serves CUDA up to 12.2, and 12.4 is the least" in (available() or "")
    pretend_driver(monkeypatch, 12040)
    assert "CuPy is not installed" in (available() or "")


@pytest.mark.parametrize(
    ("driver", "devices", "said"),
    [
        (0, 0, "No NVIDIA driver"),
        (12080, 1, r"serves CUDA up to 12\.8.*driver 580"),
        (13000, 0, "No CUDA device is visible"),
    ],
)
def test_without_a_driver_or_a_device(
    monkeypatch: pytest.MonkeyPatch, driver: int, devices: int, said: str
) -> None:
    pretend_cupy(monkeypatch, driver=driver, devices=devices)
    with pytest.raises(Unavailable, match=said):
        open_backend(WORKLOADS[0], None, print)


def test_a_device_older_than_the_kernels_is_not_one(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_cupy(monkeypatch, driver=13000, devices=1)
    pretend_devices(monkeypatch, [OLD])
    said = r"Tesla T4 is sm_75; gputop's kernels need sm_80 or newer: run with --backend cpu\."
    with pytest.raises(Unavailable, match=said):
        open_backend(WORKLOADS[0], None, print)
    session = Session.open("auto", parse_workload("tiny"))
    assert session.facts.backend == "cpu"
    session.close()


def test_beside_an_older_device_the_one_that_kernels_run_on_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_cupy(monkeypatch, driver=13000, devices=2)
    pretend_devices(monkeypatch, [OLD, NEW])
    assert visible_devices() == (OLD, NEW)
    assert choose(visible_devices(), None) == NEW
    assert available() is None
    with pytest.raises(Unavailable, match=r"sm_80 or newer: take --device 1 \(NVIDIA L4\), or run"):
        awake("0")


def test_asking_imports_neither_cupy_nor_torch() -> None:
    code = (
        "import sys; from gputop.backends.cuda.availability import available; "
        "assert not {'cupy', 'torch', 'pynvml'} & set(sys.modules), sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
