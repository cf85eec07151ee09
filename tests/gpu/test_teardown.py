"""A process that measured ends as it should, whether or not it gave everything back before."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from gputop.util.paths import checkout

PATIENCE_S = 120.0
MEASURING = """
import sys
from gputop.util.errors import Unavailable
from gputop.session.session import Session
from gputop.plan.types import PlanRequest
from gputop.model.workloads import parse_workload

for _ in range(int(sys.argv[1])):
    session = Session.open("cuda", parse_workload("mini"))
    for rung in ("coalesced", "oracle-tf32", "graph"):
        try:
            session.measure(PlanRequest(rung), seconds=0.1)
        except Unavailable as error:
            print(error)
    if sys.argv[2] == "close":
        session.close()
print("measured")
"""
"""Phases by CUPTI where it is there, products by both libraries, a graph."""


def ended(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=checkout(), capture_output=True, text=True, timeout=PATIENCE_S)


@pytest.mark.parametrize(
    ("sessions", "ending"), [("1", "close"), ("2", "close"), ("1", "leave")], ids=["one", "two", "left open"]
)
def test_a_process_ends_without_a_fault(sessions: str, ending: str) -> None:
    done = ended(sys.executable, "-X", "faulthandler", "-c", MEASURING, sessions, ending)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.endswith("measured\n")


def test_a_sanitized_process_ends_without_a_fault() -> None:
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        pytest.skip("compute-sanitizer is not installed")
    tool = (sanitizer, "--tool", "memcheck", "--report-api-errors", "no", "--error-exitcode", "9")
    done = ended(*tool, sys.executable, "-X", "faulthandler", "-m", "tests.gpu.sanitize", "coalesced")
    assert done.returncode == 0, done.stdout[-2000:]
