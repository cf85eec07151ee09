"""The CUDA sources, compiled as the backend compiles them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from gputop.backends.cuda.compiler.nvrtc import Cubin, arch_of, compile_source
from gputop.util.paths import kernels_dir

NAMES = tuple(sorted(path.relative_to(kernels_dir()).as_posix() for path in kernels_dir().rglob("*.cu")))


def text(name: str) -> str:
    return (kernels_dir() / name).read_text(encoding="utf-8")


@cache
def cubin(name: str, device_arch: str) -> Cubin | None:
    """For a device of this compute capability (`90`); None where the source does not run on it."""
    arch = arch_of(text(name), device_arch)
    if arch is None:
        return None
    return compile_source(kernels_dir() / name, name, arch, (kernels_dir(),))


def own_folder(tmp_path: Path, source: str, header: str) -> Path:
    """A kernels folder with one source `k.cu` and one header `include/h.cuh`."""
    (tmp_path / "include").mkdir(exist_ok=True)
    (tmp_path / "include" / "h.cuh").write_text(header)
    (tmp_path / "k.cu").write_text(source)
    return tmp_path
