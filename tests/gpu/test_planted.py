"""Faults planted in the kernels, one at a time, and caught by the real gates in the plan's own math."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gputop.backends.cuda.availability import open_backend
from gputop.model import rng
from gputop.plan.plan_string import parse_word
from gputop.planner.resolver import Resolver, plan_dims
from gputop.results.records import Gate
from gputop.session.session import Session
from tests.gpu.plans import STANDARD, catalog, gate_of
from tests.gpu.planted import FAULTS, LAPSES, MISSING_BARRIERS, SLIGHT, STALE, Fault, altered, planted

LATE = tuple(fault for fault in MISSING_BARRIERS if fault.late is not None)
RACY = MISSING_BARRIERS[0]
LAUNDERED = next(fault for fault in STALE if "ReLU" in fault.name)
HAZARD = 9


def gate_on(word: str, kernels: Path) -> Gate:
    """The whole gate of a plan on mini, by a session of its own on these kernels."""
    session = Session.open("cuda", STANDARD["mini"], kernels_dir=str(kernels))
    try:
        return gate_of(session, parse_word(word))
    finally:
        session.close()


@pytest.fixture(scope="module")
def sound() -> Iterator[Session]:
    opened = Session.open("cuda", STANDARD["mini"])
    yield opened
    opened.close()


@pytest.mark.parametrize("word", sorted({fault.word for fault in FAULTS}))
def test_the_same_plans_pass_without_a_fault(sound: Session, word: str) -> None:
    gate = gate_of(sound, parse_word(word))
    assert gate.status == "PASS", gate.where


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.id)
def test_the_gate_catches_a_fault_and_says_where(tmp_path: Path, fault: Fault) -> None:
    gate = gate_on(fault.word, planted(tmp_path, fault))
    assert gate.status == "FAIL"
    assert gate.where.startswith(fault.where)


@pytest.mark.parametrize("fault", SLIGHT, ids=lambda fault: fault.id)
def test_a_slight_fault_hides_from_the_norms_of_rows_in_tf32(tmp_path: Path, fault: Fault) -> None:
    """Else it would not show what bounds of elements, and fp32's tolerance beside tensor cores, are for."""
    gate = gate_on(fault.word, planted(tmp_path, fault))
    site = fault.where.partition(" ")[0]
    (check,) = (check for check in gate.checks if check.site == site)
    assert check.error is not None
    assert check.error <= catalog().phase(site).tolerances["tf32"]


@pytest.mark.parametrize("fault", LAPSES, ids=lambda fault: fault.id)
def test_a_kernel_that_lapses_when_it_is_timed_shows_no_time(tmp_path: Path, fault: Fault) -> None:
    session = Session.open("cuda", STANDARD["mini"], kernels_dir=str(planted(tmp_path, fault)))
    try:
        lane = session.measure(parse_word(fault.word), seconds=0.3).lane("current")
    finally:
        session.close()
    assert lane is not None
    assert lane.gate.status == "FAIL"
    assert lane.gate.where.startswith("logits of a timed pass, token set ")
    assert (lane.rows, lane.device_s, lane.wall_s) == ((), None, None)


@pytest.mark.parametrize("fault", LATE, ids=lambda fault: fault.id)
def test_being_late_does_no_harm_where_the_barrier_stands(tmp_path: Path, fault: Fault) -> None:
    """So it is the missing barrier that the gate catches, and not what makes it sure to be."""
    assert fault.late is not None
    gate = gate_on(fault.word, altered(tmp_path, fault.file or fault.source, (fault.late,)))
    assert gate.status == "PASS", gate.where


def test_a_row_that_relu_launders_leaves_finite_logits(tmp_path: Path) -> None:
    """Why buffers are poisoned with a large number too: a NaN that was never overwritten becomes a 0."""
    workload = STANDARD["mini"]
    backend = open_backend(workload, None, lambda text: None, Resolver.load(planted(tmp_path, LAUNDERED)))
    plan = catalog().resolve(parse_word(LAUNDERED.word), workload.dims, "cuda")
    prepared = backend.prepare(plan, catalog().steps(plan, plan_dims(workload, plan)), lambda text: None)
    tokens = rng.tokens(workload, 0, 1)
    laundered, shown = (prepared.run(tokens, poison) for poison in (math.nan, 1e30))
    prepared.close()
    backend.close()
    assert np.isfinite(laundered).all()
    assert not np.allclose(laundered, shown)


def test_racecheck_names_the_kernel_that_lacks_a_barrier(tmp_path: Path) -> None:
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        pytest.skip("compute-sanitizer is not installed")
    kernels = altered(tmp_path, RACY.source, (RACY.change,))
    command = [sanitizer, "--tool", "racecheck", "--error-exitcode", str(HAZARD)]
    script = [sys.executable, "-m", "tests.gpu.sanitize", "--kernels", str(kernels), "tiled"]
    done = subprocess.run([*command, *script], capture_output=True, text=True)
    assert done.returncode == HAZARD, done.stdout[-2000:]
    assert "gemm_tiled" in done.stdout
