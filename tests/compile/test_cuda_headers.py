"""A CUDA toolkit of another version beside NVIDIA's wheels: the headers of NVRTC's own version are read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gputop.backends.cuda.compiler import cuda_headers
from gputop.backends.cuda.compiler import nvrtc as compiler
from gputop.backends.cuda.compiler.cuda_headers import Headers, fitting_headers, installed_headers
from gputop.backends.cuda.compiler.nvrtc import compile_source
from gputop.util.errors import Unavailable, UsageError
from tests.compile.sources import own_folder

GROUPS = (
    "#include <cooperative_groups.h>\n"
    'extern "C" __global__ void k() { cooperative_groups::this_thread_block().sync(); }\n'
)
"""One of the headers that fail first where NVRTC is of another version."""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A toolchain is looked for once in a process: here once in a test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    compiler.toolchain.cache_clear()
    yield
    compiler.toolchain.cache_clear()


def toolkit(folder: Path, version: int) -> Path:
    """A toolkit whose headers fail in the middle of what was included."""
    include = folder / "include"
    (include / "crt").mkdir(parents=True)
    for name in cuda_headers.WHOLE:
        (include / name).write_text("")
    (include / cuda_headers.VERSION_FILE).write_text(f"#define CUDART_VERSION  {version}\n")
    (include / "cooperative_groups.h").write_text('\n#error "this is of another CUDA"\n')
    return folder


@pytest.mark.parametrize(
    ("variable", "version"), [("CUDA_PATH", 11080), ("CUDA_HOME", 12010), ("CUDA_PATH", 13999)]
)
def test_an_older_toolkit_in_the_way_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, version: int
) -> None:
    monkeypatch.setenv(variable, str(toolkit(tmp_path / "cuda", version)))
    assert len(installed_headers()) > 1
    folder = own_folder(tmp_path, GROUPS, "")
    assert compile_source(folder / "k.cu", "k.cu", "sm_90", ()).functions
    assert compiler.toolchain().mismatch == ""


def test_with_headers_of_another_major_version_alone_both_versions_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Headers((toolkit(tmp_path / "cuda", 12010) / "include",), (12, 1))
    monkeypatch.setattr(cuda_headers, "installed_headers", lambda: (other,))
    with pytest.raises(Unavailable) as raised:
        compiler.toolchain()
    said = str(raised.value)
    assert said.startswith("NVRTC is 13.")
    assert f"12.1 in {other.folders[0]}" in said
    assert "set CUDA_PATH to a toolkit of CUDA 13" in said


def test_a_header_that_fails_is_told_with_both_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Headers((toolkit(tmp_path / "cuda", 13990) / "include",), (13, 99))
    monkeypatch.setattr(cuda_headers, "installed_headers", lambda: (other,))
    folder = own_folder(tmp_path, GROUPS, "")
    with pytest.raises(
        UsageError, match=r'of another CUDA".*NVRTC is 13\.\d+, CUDA\'s headers are 13\.99 in'
    ):
        compile_source(folder / "k.cu", "k.cu", "sm_90", ())


def test_the_exact_version_comes_before_the_major_one_and_the_unknown() -> None:
    found = {version: Headers((Path("/x"),), version) for version in ((12, 9), (13, 0), (13, 1), None)}
    assert fitting_headers(tuple(found.values()), (13, 1)) is found[13, 1]
    assert fitting_headers(tuple(found.values()), (13, 5)) is found[13, 0]
    assert fitting_headers((found[12, 9], found[None]), (13, 5)) is found[None]
    assert fitting_headers((found[12, 9],), (13, 5)) is None
    assert fitting_headers((), (13, 5)) is None


def test_half_of_the_headers_are_no_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    half = toolkit(tmp_path / "cuda", 13050)
    (half / "include" / "crt" / "host_config.h").unlink()
    monkeypatch.setenv("CUDA_PATH", str(half))
    assert all(half / "include" not in headers.folders for headers in installed_headers())
