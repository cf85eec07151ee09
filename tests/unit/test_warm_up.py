"""What is begun before it is asked for: once, only where it may be wanted, and never in the way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gputop import backends
from gputop.backends import warm_up
from gputop.backends.cpu import backend as cpu
from gputop.backends.cpu import warmup
from gputop.backends.cuda.runtime import device_warmup
from gputop.backends.cuda.runtime.device_warmup import Awake
from gputop.backends.cuda.runtime.devices import Visible
from gputop.backends.cuda.runtime.nvml import Nvml
from gputop.model import weights
from gputop.model.workloads import parse_workload
from gputop.util.errors import Unavailable

TINY = replace(parse_workload("tiny"), seed=4711)
DEVICE = Awake(Visible(0, "GPU-1", "A GPU", "90", 80 << 30), Nvml(None), frozenset())


def silent(text: str) -> None:
    """Narrates to nobody."""


@pytest.fixture
def wakings(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """Devices woken, in the place of a driver's; one called `none` is not here."""
    woken: list[str | None] = []

    def wake(wanted: str | None) -> Awake:
        woken.append(wanted)
        if wanted == "none":
            raise Unavailable("Device 'none' is not here.")
        return DEVICE

    monkeypatch.setattr(device_warmup, "_wake", wake)
    monkeypatch.setattr(device_warmup, "_begun", {})
    return woken


def test_weights_that_were_foreseen_are_drawn_once() -> None:
    drawn = weights.master.cache_info().misses
    warm_up("cpu", TINY, None)
    opened = cpu.open_backend(TINY, None, silent)
    assert warmup.master(TINY) is weights.master(TINY)
    opened.close()
    assert weights.master.cache_info().misses == drawn + 1


@pytest.mark.parametrize("change", [{"d_model": 1 << 30}, {"layers": 1 << 20}, {"seq": -1}, {"heads": 0}])
def test_what_is_too_large_or_no_model_is_not_begun(change: dict[str, Any]) -> None:
    assert not warmup.begin(replace(TINY, dims=replace(TINY.dims, **change)))


def test_a_device_is_woken_once_for_those_that_foresee_and_the_one_that_opens(
    wakings: list[str | None],
) -> None:
    warm_up("cuda", TINY, None)
    warm_up("cuda", TINY, None)
    assert device_warmup.awake(None) is DEVICE
    assert wakings == [None]
    assert device_warmup.awake(None) is DEVICE
    assert wakings == [None, None], "another opening has another NVML"


def test_another_device_than_was_foreseen_is_woken_too(wakings: list[str | None]) -> None:
    warm_up("cuda", TINY, "0")
    assert device_warmup.awake("GPU-1") is DEVICE
    assert sorted(map(str, wakings)) == ["0", "GPU-1"]


def test_what_could_not_be_woken_is_said_to_the_one_that_opens_and_tried_again(
    wakings: list[str | None],
) -> None:
    warm_up("cuda", TINY, "none")
    for _ in range(2):
        with pytest.raises(Unavailable, match="not here"):
            device_warmup.awake("none")
    assert set(wakings) == {"none"}


@pytest.mark.parametrize(
    ("name", "cupy", "begun"),
    [
        ("auto", True, "cuda"),
        ("auto", False, "cpu"),
        ("cpu", True, "cpu"),
        ("cuda", False, "cuda"),
        ("replay", True, ""),
        ("unknown", True, ""),
    ],
)
def test_only_what_may_be_opened_is_begun(
    name: str, cupy: bool, begun: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[str] = []

    def note(backend: str) -> Any:
        return lambda _: found.append(backend)

    monkeypatch.setattr(warmup, "begin", note("cpu"))
    monkeypatch.setattr(device_warmup, "begin", note("cuda"))
    monkeypatch.setattr(backends, "_installed", lambda package: cupy)
    warm_up(name, TINY, None)
    assert found == ([begun] if begun else [])
