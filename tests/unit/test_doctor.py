"""What doctor finds on machines that are broken in known ways."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from gputop.backends.cuda.runtime.devices import Visible
from gputop.cli import doctor_process, main
from gputop.cli.commands import doctor
from gputop.cli.doctor_checks import PROBES, Probe, answer
from gputop.cli.doctor_findings import Finding
from gputop.cli.doctor_process import Asking
from gputop.cli.gpu_listing import NO_DRIVER
from gputop.cli.terminal import Terminal
from gputop.util import install_hints, thread_limits
from gputop.util.errors import Unavailable
from gputop.util.paths import PACKAGE
from tests.unit.pretend import pretend_devices

BY_NAME = {probe.name: probe for probe in PROBES}
SLOW, FAST, OLD = (f"GPU-00000000-0000-0000-0000-00000000000{n}" for n in (1, 2, 3))
NVML = f"""
class NVMLError(Exception): pass
class memory: total = 80 << 30
def nvmlInit(): pass
def nvmlDeviceGetCount(): return 2
def nvmlDeviceGetHandleByIndex(index): return index
def nvmlDeviceGetName(handle): return ("A slow one", "A fast one")[handle]
def nvmlDeviceGetUUID(handle): return ("{SLOW}", "{FAST}")[handle]
def nvmlDeviceGetMemoryInfo(handle):
    if handle: return memory
    raise NVMLError("Not Supported")
"""
"""NVML counts by bus address: the slow one first."""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose modules stand before the installed ones."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def test_an_old_package_that_hides_the_nvml_binding_is_named(site: Path) -> None:
    (site / "pynvml").mkdir()
    (site / "pynvml" / "__init__.py").write_text("def nvmlInit(): pass\n")
    finding = Asking().answer(BY_NAME["nvml"])
    assert finding.state == "broken"
    assert "hides nvidia-ml-py" in finding.detail
    assert (
        finding.fix == f"{install_hints.uninstall('pynvml')} && {install_hints.install_again('nvidia-ml-py')}"
    )


@pytest.mark.parametrize("what", ["ImportError('it is broken')", "ModuleNotFoundError('No module pynvml')"])
def test_without_the_nvml_binding_no_gpu_is_listed_and_nothing_fails(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pynvml.py").write_text(f"raise {what}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    assert main(["list", "devices"]) == 0
    assert "none: no binding to ask NVIDIA's driver by" in capsys.readouterr().out


def listed(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Device -> index, as `gputop list devices` prints them."""
    assert main(["list", "devices"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("cuda")]
    return {uuid: line[1] for line in lines for uuid in line if uuid.startswith("GPU-")}


@pytest.fixture
def two_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pynvml.py").write_text(NVML)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)


@pytest.mark.usefixtures("two_devices")
def test_devices_are_listed_by_the_index_that_the_option_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fast, slow = (
        Visible(0, FAST, "A fast one", "90", 80 << 30),
        Visible(1, SLOW, "A slow one", "89", 24 << 30),
    )
    pretend_devices(monkeypatch, [fast, slow])
    assert listed(capsys) == {FAST: "0", SLOW: "1"}
    assert answer(BY_NAME["devices"]).detail.startswith(f"0: A fast one, 85.9 GB, {FAST}; 1: A slow one")
    pretend_devices(monkeypatch, [Visible(0, SLOW, "A slow one", "89", 24 << 30)])
    assert listed(capsys) == {SLOW: "0", FAST: "hidden"}


@pytest.mark.usefixtures("two_devices")
def test_where_cuda_can_not_be_asked_no_index_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    assert listed(capsys) == {SLOW: "unknown", FAST: "unknown"}
    said = answer(BY_NAME["devices"]).detail
    assert f"index unknown, --device takes the UUID: A slow one, –, {SLOW}" in said


@pytest.mark.usefixtures("two_devices")
def test_where_nothing_is_visible_or_new_enough_doctor_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_devices(monkeypatch, [])
    finding = answer(BY_NAME["devices"])
    assert (finding.state, finding.fix) == ("broken", "check CUDA_VISIBLE_DEVICES")
    assert FAST in finding.detail
    pretend_devices(monkeypatch, [Visible(0, OLD, "Tesla T4", "75", 16 << 30)])
    finding = answer(BY_NAME["devices"])
    assert (finding.state, finding.fix) == ("broken", "gputop run --backend cpu")
    assert "sm_75" in finding.detail


def test_an_import_that_crashes_costs_only_its_own_answer(site: Path) -> None:
    (site / "cupy.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    finding = Asking().answer(BY_NAME["cupy"])
    assert finding.state == "broken"
    assert "SIGSEGV" in finding.detail
    assert finding.fix == install_hints.extra("cuda13")


def test_an_import_that_talks_and_fails_is_broken_and_not_missing(site: Path) -> None:
    (site / "torch.py").write_text("print('hello')\nraise ImportError('libcudart.so.13: no such file')\n")
    finding = Asking().answer(BY_NAME["torch"])
    assert (finding.state, finding.fix) == ("broken", install_hints.extra("torch"))
    assert "libcudart.so.13" in finding.detail


def test_a_module_that_is_not_there_is_missing(site: Path) -> None:
    (site / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n")
    finding = Asking().answer(BY_NAME["torch"])
    assert (finding.state, finding.fix) == ("missing", install_hints.extra("torch"))


def test_a_binding_without_its_library_is_broken(site: Path) -> None:
    (site / "nvmath" / "bindings").mkdir(parents=True)
    (site / "nvmath" / "bindings" / "cublasLt.py").write_text(
        "def get_version(): raise RuntimeError('Failure finding \"libcublasLt.so.13\"')\n"
    )
    finding = Asking().answer(BY_NAME["nvmath"])
    assert (finding.state, finding.fix) == ("broken", install_hints.extra("cuda13,blaslt"))
    assert 'cuBLASLt can\'t be loaded (Failure finding "libcublasLt.so.13")' in finding.detail


def test_the_wrong_plotting_interface_is_told_from_the_right_one(site: Path) -> None:
    (site / "plotext-5.3.2.dist-info").mkdir()
    (site / "plotext-5.3.2.dist-info" / "METADATA").write_text("Name: plotext\nVersion: 5.3.2\n")
    finding = Asking().answer(BY_NAME["plotext"])
    assert finding.state == "broken"
    assert "5.3.2" in finding.detail
    assert finding.fix == install_hints.upgrade(install_hints.requirement_of("plotext"))


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_no_fix_installs_another_projects_package(probe: object) -> None:
    fix = getattr(probe, "fix", "")
    assert not re.search(r"install '?gputop('|\[|$| )", fix)


def recorded(site: Path, name: str, version: str = "14.2.0") -> None:
    """A package that an installer lists, whatever is left of its files."""
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def test_two_packages_of_cupy_are_both_named_with_the_repair_that_works(site: Path) -> None:
    for name in ("cupy-cuda12x", "cupy-cuda13x"):
        recorded(site, name)
    (site / "cupy.py").write_text("__version__ = '14.2.0'\n")
    finding = Asking().answer(BY_NAME["cupy"])
    assert finding.state == "broken"
    assert finding.detail.startswith("cupy-cuda12x and cupy-cuda13x are installed")
    away, again = finding.fix.split(" && ")
    assert away == install_hints.uninstall("cupy-cuda12x", "cupy-cuda13x")
    assert again == install_hints.install(install_hints.requirement_of("cupy-cuda13x"))


def test_a_package_that_is_recorded_and_not_there_is_installed_again(site: Path) -> None:
    recorded(site, "cupy-cuda13x")
    (site / "cupy").mkdir()
    finding = Asking().answer(BY_NAME["cupy"])
    assert finding.state == "broken", "of the files of two packages a namespace is left"
    assert finding.fix == install_hints.install_again("cupy-cuda13x")
    recorded(site, "torch")
    (site / "torch.py").write_text("import triton_that_torch_needs\n")
    finding = Asking().answer(BY_NAME["torch"])
    assert finding.fix == install_hints.install("triton_that_torch_needs"), "what it needs is what is missing"


def test_a_module_that_only_this_process_finds_is_told_with_the_cause(
    site: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of an import hook, which no search path hands on."""
    place = tmp_path_factory.mktemp("hooked")
    (place / "torch.py").write_text("__version__ = '2'\n")
    (site / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n")
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.setattr(doctor_process, "child_environment", lambda: dict(os.environ))
    finding = Asking().answer(BY_NAME["torch"])
    assert finding.state == "broken"
    assert f"this process finds it in {place}, and one that it starts does not" in finding.detail
    assert finding.fix == f"export PYTHONPATH={place}:{site}"


def test_no_room_for_threads_is_named_and_nothing_is_to_be_reinstalled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(count: int) -> None:
        raise Unavailable("No further thread or process can be started here: this user may have 3 threads.")

    monkeypatch.setattr(thread_limits, "require", refuse)
    for name in ("threads", "numpy"):
        finding = answer(BY_NAME[name])
        assert finding.state == "broken"
        assert "this user may have 3 threads" in finding.detail
        assert "install" not in finding.fix


def test_what_runs_here_is_said_of_what_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    lines = {}
    for need in ("always", "cuda", "extra"):
        broken = Finding("broken", "it fails", "fix it")
        probe = Probe("x", need, "for a test", str, "")
        lines[need] = doctor._lines([(probe, broken)], Terminal())[-1]
    assert lines == {
        "always": "backends: neither cpu nor cuda works here",
        "cuda": "backends: cpu works here, cuda does not",
        "extra": "backends: cpu and cuda work here",
    }


def test_doctor_shows_what_is_and_what_fixes_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--backend", "cuda"])
    out, err = capsys.readouterr()
    assert re.search(r"^ok +numpy +\d", out, re.MULTILINE)
    assert "backends: cpu" in out
    assert code == (3 if "cuda does not" in out else 0)
    assert ("Fix it: " in err) == (code == 3)
    lines = out.splitlines()
    for line, after in pairwise(lines):
        if line.startswith(("missing", "broken")):
            assert after.strip().startswith("fix: ")


def test_without_a_driver_that_is_said_first_and_what_is_missing_besides() -> None:
    absent = [
        (BY_NAME["driver"], Finding("missing", "no NVIDIA driver", NO_DRIVER)),
        (BY_NAME["devices"], Finding("missing", "no NVIDIA driver to ask", NO_DRIVER)),
        (BY_NAME["cupy"], Finding("missing", "not installed", "add it")),
        (BY_NAME["nvrtc"], Finding("missing", "not installed", "add it")),
    ]
    said = doctor.wanting(absent)
    assert said.startswith(f"driver, which the cuda backend needs: no NVIDIA driver. Fix it: {NO_DRIVER}\n")
    assert said.endswith("\nMissing besides: cupy, nvrtc: add it")
    places = [probe.name for probe in PROBES if probe.need == "cuda"]
    assert places[0] == "driver"


def doctor_with(site: Path) -> subprocess.Popen[str]:
    """The program itself, with these modules before the installed ones."""
    return subprocess.Popen(
        (sys.executable, "-m", "gputop", "doctor"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(site), str(PACKAGE.parent)))},
    )


def test_doctor_answers_where_what_all_else_needs_is_broken(site: Path) -> None:
    (site / "numpy").mkdir()
    (site / "numpy" / "__init__.py").write_text("raise ImportError('numpy was built for another Python')\n")
    said, complaint = doctor_with(site).communicate(timeout=120.0)
    assert re.search(r"broken +numpy", said), complaint
    assert "built for another Python" in said


def test_doctor_told_to_end_waits_for_no_package(site: Path, tmp_path: Path) -> None:
    told = tmp_path / "told"
    os.mkfifo(told)
    (site / "torch.py").write_text(
        f"import os, signal\nopen({str(told)!r}, 'w').write(str(os.getpid()))\nsignal.pause()\n"
    )
    process = doctor_with(site)
    asked = int(told.read_text())
    process.terminate()
    _, complaint = process.communicate(timeout=60.0)
    assert process.returncode == 143
    assert "Traceback" not in complaint
    assert not Path(f"/proc/{asked}").exists()
