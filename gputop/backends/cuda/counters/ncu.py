"""Running Nsight Compute on a plan's pass, and a sentence for each reason why it can't count."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gputop.backends.cuda.counters.ncu_report import counted_launches
from gputop.results.counters import COUNTERS, Counted, CountedLaunch, CountRequest
from gputop.util.child_environment import child_environment
from gputop.util.errors import Unavailable, WorkerLost

NCU_PAGE = "https://developer.nvidia.com/nsight-compute"
CHILD = "gputop.backends.cuda.counters.counted_pass"
DRIVER_SETTINGS = Path("/proc/driver/nvidia/params")
MODPROBE = "options nvidia NVreg_RestrictProfilingToAdminUsers=0"
_manifests = msgspec.json.Decoder(tuple[CountedLaunch, ...])


@dataclass(frozen=True, slots=True)
class Refusal:
    """One way in which ncu refuses, by what it writes, and what to say of it."""

    pattern: str
    sentence: str


REFUSALS = (
    Refusal(
        "ERR_NVGPUCTRPERM",
        "The driver lets only administrators read counters{setting}. That is a setting of the host, not of "
        f"gputop and not of a container: whoever runs the host puts `{MODPROBE}` into /etc/modprobe.d and "
        "reboots, or gives this container CAP_SYS_ADMIN. `gputop inspect` gives the rest without --counters.",
    ),
    Refusal(
        r"[Dd]river resource was unavailable|another profiler|CUPTI_ERROR_HARDWARE_BUSY",
        "Another tool holds this GPU's counters, as monitoring by DCGM does: `dcgmi profile --pause` frees "
        "them until `dcgmi profile --resume`.",
    ),
    Refusal(
        r"Failed to find metric\s+(?P<what>\S+)|metric[s]? (?P<other>\S+) (?:is|are) not available",
        "This ncu does not know the counter {what} on this GPU; install a newer Nsight Compute: " + NCU_PAGE,
    ),
    Refusal(
        r"No kernels were profiled",
        "ncu saw no kernel of the pass: this version does not profile between the driver's start and stop.",
    ),
)


def find_ncu() -> str:
    """Return the path of ncu. Raise Unavailable with where to get it."""
    found = shutil.which("ncu")
    if found is None:
        try:
            from cuda.pathfinder import find_nvidia_binary_utility

            found = find_nvidia_binary_utility("ncu")
        except ImportError:
            found = None
    if found is None:
        raise Unavailable(
            f"Counters are read by ncu, which is not found: install Nsight Compute ({NCU_PAGE}) and put "
            "its folder on PATH."
        )
    return str(found)


def ncu_command(ncu: str, report: Path, child: Sequence[str]) -> tuple[str, ...]:
    """Return the command that profiles `child` and writes its raw page as CSV to `report`.

    The application is run again for each group of counters, so that each kernel finds the caches as its own
    pass leaves them: no flush, no kernel run on the same data twice. Clocks are left as they are.
    """
    return (
        ncu,
        "--profile-from-start", "off",
        "--replay-mode", "application",
        "--cache-control", "none",
        "--clock-control", "none",
        "--graph-profiling", "node",
        "--target-processes", "application-only",
        "--metrics", ",".join(counter.metric for counter in COUNTERS),
        "--csv",
        "--page", "raw",
        "--print-units", "base",
        "--print-kernel-base", "mangled",
        "--log-file", str(report),
        *child,
    )  # fmt: skip


def count(ncu: str, request: CountRequest) -> tuple[Counted, ...]:
    """Run the request's plans under ncu and return what was counted, in the order of the launches.

    Raise Unavailable if counters are forbidden, taken or unknown here, WorkerLost if the pass itself fails.
    """
    with tempfile.TemporaryDirectory(prefix="gputop-counters-") as folder:
        asked, manifest, report = (
            Path(folder) / name for name in ("request.json", "launches.json", "ncu.csv")
        )
        asked.write_bytes(msgspec.json.encode(request))
        child = (sys.executable, "-P", "-m", CHILD, str(asked), str(manifest))
        code, said = _run(ncu_command(ncu, report, child))
        written = report.read_text(errors="replace") if report.exists() else ""
        refuse_if_told(f"{written}\n{said}")
        if code or not manifest.exists():
            raise WorkerLost(f"The pass under ncu failed (exit code {code}): {_last_line(said, written)}")
        return counted_launches(written, _manifests.decode(manifest.read_bytes()))


def refuse_if_told(text: str) -> None:
    """Raise Unavailable if ncu's words are those of a refusal."""
    for refusal in REFUSALS:
        told = re.search(refusal.pattern, text)
        if told is not None:
            what = next((part for part in told.groupdict().values() if part), "")
            setting = _driver_setting()
            raise Unavailable(refusal.sentence.format(setting=setting, what=what.rstrip(".,")))


def _driver_setting() -> str:
    """Return ` (RmProfilingAdminOnly: 1)`, if the driver shows its settings here."""
    try:
        settings = DRIVER_SETTINGS.read_text()
    except OSError:
        return ""
    line = next((line for line in settings.splitlines() if "RmProfilingAdminOnly" in line), "")
    return f" ({line.strip()})" if line else ""


def _run(command: Sequence[str]) -> tuple[int, str]:
    """Return (exit code, all that it wrote). Its whole group ends with us: ncu runs children of its own."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=child_environment(), start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    return process.returncode, output.decode(errors="replace")


def _last_line(*texts: str) -> str:
    """Return the last line that says something, of the first text that has one."""
    lines: Iterable[str] = (
        line.strip() for text in texts for line in reversed(text.splitlines()) if line.strip()
    )
    return next(iter(lines), "it said nothing.")
