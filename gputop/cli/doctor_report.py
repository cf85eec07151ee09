"""`gputop doctor --report`: one text with what a bug report needs, and nothing private in it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gputop import __version__
from gputop.util import cgroups, host_cpu, install_hints, paths, units
from gputop.util.printable import printable
from gputop.util.private_text import PrivateText

if TYPE_CHECKING:
    from gputop.cli.doctor_checks import Probe
    from gputop.cli.doctor_findings import Finding

LOG_LINES = 80
LOG_TAIL_BYTES = 64 << 10
SETTINGS = re.compile(
    r"(CUDA|CUPY|CUPTI|NVIDIA|NV|NCCL|TORCH|TORCHINDUCTOR|TRITON|OMP|OPENBLAS|MKL|BLIS|GOTO|VECLIB|NUMEXPR|GPUTOP|"
    r"PYTHON|XDG|DASK|SLURM)_?\w*|LD_LIBRARY_PATH|LD_PRELOAD|NO_COLOR|TERM|COLORTERM|COLUMNS|LANG|LC_\w+|WSL_\w+"
)
"""Environment variables that change what gputop does; the report names those that are set, without values."""


def report(findings: Sequence[tuple[Probe, Finding]], usable: str, log: Path | None) -> str:
    """Return the report, lines ended by newlines. `usable`: which backends work here, in words."""
    sections = (
        ("gputop", _versions()),
        ("system", _system()),
        ("probes", _probes(findings, usable)),
        ("packages", _packages()),
        ("settings", _settings()),
        ("last lines of the worker's log", _log_lines(log)),
    )
    private = PrivateText.of_this_process()
    lines = (line for title, body in sections for line in (f"## {title}", *body, ""))
    return "\n".join(printable(private.removed_from(line)) for line in lines)


def _versions() -> Iterator[str]:
    yield f"gputop {__version__}, from {'a checkout' if paths.checkout() else 'an installed package'}"
    yield f"written {datetime.now(UTC).isoformat(timespec='seconds')}"


def _system() -> Iterator[str]:
    yield f"{platform.python_implementation()} {platform.python_version()}"
    # Not platform.platform() or uname().version: who built the kernel, and where, is in those.
    yield f"{platform.system()} {platform.release()}, {platform.machine()}, {' '.join(platform.libc_ver())}"
    yield f"cores that may be used: {host_cpu.affinity_cores()} of {os.cpu_count()}"
    quota = cgroups.cpu_quota()
    yield "CPU quota: " + ("none" if quota is None else f"{quota:g} cores")
    limit = cgroups.memory_limit()
    yield "memory limit of the control group: " + (units.size_bytes(limit.limit_bytes) if limit else "none")
    yield f"stdout: {'terminal' if sys.stdout.isatty() else 'no terminal'}, {sys.stdout.encoding}"


def _probes(findings: Sequence[tuple[Probe, Finding]], usable: str) -> Iterator[str]:
    for probe, finding in findings:
        yield f"{finding.state:<7}  {probe.name}: {finding.detail}"
        if finding.fix:
            yield f"         fix: {finding.fix}"
    yield f"backends: {usable}"


def _packages() -> Iterator[str]:
    """Installed packages that gputop or one of its extras asks for."""
    try:
        asked = importlib.metadata.requires(install_hints.DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        yield f"{install_hints.DISTRIBUTION} is not recorded as installed"
        return
    names = {found[0] for line in asked if (found := re.match(r"[\w.-]+", line))}
    for name in sorted(names - {install_hints.DISTRIBUTION}):
        if install_hints.is_recorded(name):
            yield f"{name} {importlib.metadata.version(name)}"


def _settings() -> Iterator[str]:
    names = sorted(name for name in os.environ if SETTINGS.fullmatch(name))
    yield f"environment variables that are set, values left out: {', '.join(names) or 'none'}"
    yield f"caches: {paths.why_no_cache() or 'can be written'}"


def _log_lines(log: Path | None) -> Iterator[str]:
    if log is None or not log.is_file():
        yield "no log is kept"
        return
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - LOG_TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError as error:
        yield f"the log can't be read: {error.strerror}"
        return
    yield from lines[-LOG_LINES:]
