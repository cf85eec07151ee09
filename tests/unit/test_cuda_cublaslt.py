"""cuBLASLt where its binding can be imported and its library can't be loaded."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from gputop.backends.cuda.libraries.cublaslt import CublasLt
from gputop.util import install_hints
from gputop.util.errors import GputopError, Unavailable, UsageError

NO_LIBRARY = 'Failure finding "libcublasLt.so.13 or libcublasLt.so.12": No such file'


class CuBlasLtError(Exception):
    """As the binding raises it for what the library itself answers."""

    def __init__(self, status: int) -> None:
        super().__init__(f"({status})")
        self.status = status


def opened(monkeypatch: pytest.MonkeyPatch, error: Exception) -> GputopError:
    """What opening the library says where making a handle ends in `error`."""

    def create() -> int:
        raise error

    bindings = ModuleType("nvmath.bindings")
    types = SimpleNamespace(COMPUTE_32F=68, COMPUTE_32F_FAST_TF32=77)
    bindings.cublas = SimpleNamespace(ComputeType=types)  # type: ignore[attr-defined]
    bindings.cublasLt = SimpleNamespace(create=create)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "nvmath", ModuleType("nvmath"))
    monkeypatch.setitem(sys.modules, "nvmath.bindings", bindings)
    context = cast(Any, SimpleNamespace(array=lambda shape, dtype, what: None))
    with pytest.raises(GputopError) as raised:
        CublasLt(context, cast(Any, None), cast(Any, None))
    return raised.value


@pytest.mark.parametrize("error", [RuntimeError(NO_LIBRARY), OSError(NO_LIBRARY), CuBlasLtError(1)])
def test_without_its_library_it_is_not_here_and_the_extras_are_named(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    said = opened(monkeypatch, error)
    assert isinstance(said, Unavailable)
    assert str(error) in str(said)
    assert install_hints.extra("cuda13,blaslt") in str(said)


def test_without_memory_for_its_handle_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    said = opened(monkeypatch, CuBlasLtError(3))
    assert isinstance(said, UsageError)
    assert "Not enough device memory" in str(said)
