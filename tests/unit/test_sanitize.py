"""What compute-sanitizer's runner leaves out, and what it counts as a failure; the script over all of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gputop.backends.cuda.availability import available
from gputop.plan.plan_string import parse_word
from gputop.plan.types import Plan
from gputop.planner.resolver import Resolver
from gputop.util.errors import GputopError, Unavailable, UsageError
from tests.gpu import sanitize
from tests.gpu.plans import STANDARD


class Device:
    """A device that does as it is told, in place of one that is not here."""

    workload = STANDARD["mini"]

    def __init__(self, prepare: Callable[[], Any], refusal: str | None = None) -> None:
        self._prepare, self._refusal = prepare, refusal

    def refuses(self, plan: Plan) -> str | None:
        return self._refusal

    def prepare(self, *_: object) -> Any:
        return self._prepare()

    def close(self) -> None: ...


class Prepared:
    def run(self, *_: object) -> Any:
        return np.zeros((1, 2))

    def close(self) -> None: ...


def fails(error: Exception) -> Callable[[], Any]:
    def prepare() -> Any:
        raise error

    return prepare


def run(monkeypatch: pytest.MonkeyPatch, backend: Device, *words: str) -> int:
    monkeypatch.setattr(sanitize, "open_backend", lambda *_: backend)
    monkeypatch.setattr("gputop.backends.cuda.runtime.context.DEADLINE_S", 1.0)
    return sanitize.main(words)


def test_a_plan_that_runs_is_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, Device(Prepared), "naive", "batch") == 0


@pytest.mark.parametrize(
    "error",
    [
        UsageError("kernel embed_gather: invalid value"),
        Unavailable("no such library"),
        ValueError("a fault of ours"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_goes_wrong_from_prepare_on_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: GputopError
) -> None:
    assert run(monkeypatch, Device(fails(error)), "naive") == 1
    seen = capsys.readouterr()
    assert seen.out == "naive: failed\n"
    assert str(error) in seen.err


def test_a_failure_is_one_whatever_comes_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = iter([fails(UsageError("a launch refused")), Prepared])
    assert run(monkeypatch, Device(lambda: next(turns)()), "naive", "coalesced") == 1


@pytest.mark.parametrize(("word", "refusal"), [("nave", None), ("naive", "needs another device")])
def test_what_is_refused_beforehand_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], word: str, refusal: str | None
) -> None:
    assert run(monkeypatch, Device(fails(AssertionError("not reached")), refusal), word) == 0
    assert f"{word}: left out: {refusal or 'Unknown rung'}" in capsys.readouterr().out


@pytest.mark.parametrize("word", sanitize.OF_MIXED_RUNGS)
def test_our_kernels_in_mixed_rungs_are_none_that_would_be_left_out(word: str) -> None:
    plan = Resolver.load().resolve(parse_word(word), STANDARD["mini"].dims, "cuda")
    ours = {Resolver.load().kernel(choice.kernel).source for _, choice in plan.dispatch}
    assert any(source.startswith(("gemm/", "attention/")) for source in ours)


def test_without_a_device_the_script_runs_nothing_and_says_why(tmp_path: Path) -> None:
    why = available()
    if why is None:
        pytest.skip("a device is here")
    script = Path(sanitize.__file__).with_name("run_all.sh")
    done = subprocess.run(
        ["bash", script, tmp_path / "out"],
        capture_output=True,
        text=True,
        timeout=60.0,
        env={**os.environ, "PYTHON": sys.executable},
    )
    assert done.returncode == 3
    assert why in done.stderr
    assert not (tmp_path / "out").exists()
