"""Each question of doctor in a process of its own: an import that crashes Python costs that answer only."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from gputop.cli.doctor_checks import Probe
from gputop.cli.doctor_findings import Finding
from gputop.util.child_environment import VARIABLE, child_environment

PATIENCE_S = 60.0
_NO_MODULE = re.compile(r"No module named '([\w.]+)'")


class Asking:
    """Answers from processes of their own, from any thread."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()

    def answer(self, probe: Probe) -> Finding:
        """Return the answer. OSError or RuntimeError if no process can be started at all."""
        command = [sys.executable, "-P", "-m", "gputop.cli.doctor_checks", probe.name]
        pipe, env = subprocess.PIPE, child_environment()
        with subprocess.Popen(command, stdout=pipe, stderr=pipe, env=env) as process:
            self._running.add(process)
            try:
                said, complaint = process.communicate(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                return Finding("broken", f"no answer within {PATIENCE_S:.0f} s", probe.fix)
            finally:
                self._running.discard(process)
        if process.returncode < 0:
            name = signal.Signals(-process.returncode).name
            return Finding("broken", f"asking for it ended Python by {name}", probe.fix)
        try:
            return _explained(Finding(**json.loads(said.splitlines()[-1])))
        except (IndexError, ValueError, TypeError):
            last = (complaint.decode("utf-8", "replace").strip().splitlines() or ["no word"])[-1]
            detail = f"asking for it ended Python with code {process.returncode} ({last})"
            return _explained(Finding("broken", detail, probe.fix))

    def give_up(self) -> None:
        """End the processes that still run."""
        for process in tuple(self._running):
            process.kill()


def _explained(finding: Finding) -> Finding:
    """Name the cause if the other process lacks a module that this one has: no installer adds it there."""
    found = _NO_MODULE.search(finding.detail) if finding.state != "ok" else None
    place = _place_of(found[1].partition(".")[0]) if found else None
    if place is None:
        return finding
    detail = (
        f"{finding.detail}: this process finds it in {place}, and one that it starts does not, "
        "since its search path was set inside of Python"
    )
    path = os.pathsep.join(filter(None, (str(place), os.environ.get(VARIABLE))))
    return Finding("broken", detail, f"export {VARIABLE}={shlex.quote(path)}")


def _place_of(module: str) -> Path | None:
    """The folder where this process finds a module; None if it does not."""
    spec = importlib.util.find_spec(module)
    if spec is None:
        return None
    place = next(filter(None, (spec.origin, *(spec.submodule_search_locations or ()))), None)
    if place is None:
        return None
    found = Path(place)
    return found.parents[1] if found.name.startswith("__init__.") else found.parent
