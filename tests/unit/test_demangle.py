"""Names of library kernels, read by the C++ runtime of this machine."""

from __future__ import annotations

import pytest

from gputop.util import demangle
from gputop.util.demangle import demangled

CUTLASS = "_ZN7cutlass7Kernel2I50cutlass_80_tensorop_s1688gemm_64x64_32x6_nn_align4EEvNT_6ParamsE"
READ = "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_64x64_32x6_nn_align4>"
PLAIN = "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x64x8_stage3_execute_kernel__5x_cublas"
needs_runtime = pytest.mark.skipif(demangle._runtime() is None, reason="no C++ runtime here")


@needs_runtime
def test_a_mangled_name_is_read_and_a_plain_one_stays() -> None:
    names = demangled(f"{CUTLASS}; {PLAIN}; and 2 more")
    assert names is not None
    first, *others = names.split("; ")
    assert first.startswith(READ)
    assert others == [PLAIN, "and 2 more"]


@needs_runtime
@pytest.mark.parametrize("name", ["_Z", "_Zfoo", "_ZN", "_ZN7cutlass", "_Z\x1b[2J", "", "_Z" + "a" * 5000])
def test_what_is_no_mangled_name_stays_as_it_is(name: str) -> None:
    assert demangled(name) == name


def test_nothing_is_known_of_no_kernel_or_without_a_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    assert demangled(None) is None
    monkeypatch.setattr(demangle, "_runtime", lambda: None)
    demangle.demangle.cache_clear()
    assert demangled(f"{CUTLASS}; {PLAIN}") is None
    assert demangled(PLAIN) == PLAIN
    demangle.demangle.cache_clear()
