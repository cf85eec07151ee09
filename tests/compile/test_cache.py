"""The compiler's cache gives back what was built from exactly this source, and mends itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gputop.backends.cuda.compiler import nvrtc as compiler
from gputop.backends.cuda.compiler import sass
from gputop.backends.cuda.compiler.nvrtc import Cubin, arch_of, compile_source
from gputop.util.errors import Unavailable, UsageError
from gputop.util.paths import cache_dir
from tests.compile.sources import own_folder

SOURCE = '#include "h.cuh"\nextern "C" __global__ void k(float* out) { out[threadIdx.x] = FACTOR; }\n'
HEADER = "#pragma once\n#define FACTOR 2.0f\n"


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def compiled(folder: Path, arch: str = "sm_90") -> Cubin:
    return compile_source(folder / "k.cu", "k.cu", arch, (folder,))


def entries() -> list[Path]:
    return sorted(cache_dir("cubin").iterdir())


def test_the_same_source_is_built_once(tmp_path: Path) -> None:
    folder = own_folder(tmp_path, SOURCE, HEADER)
    first = compiled(folder)
    built = entries()
    assert compiled(folder) == first
    assert entries() == built


def test_a_changed_header_is_another_build(tmp_path: Path) -> None:
    first = compiled(own_folder(tmp_path, SOURCE, HEADER))
    second = compiled(own_folder(tmp_path, SOURCE, HEADER.replace("2.0f", "3.0f")))
    assert first.digest != second.digest
    assert len(entries()) == 2


def test_each_architecture_has_its_own_code(tmp_path: Path) -> None:
    folder = own_folder(tmp_path, SOURCE, HEADER)
    assert compiled(folder, "sm_80").code != compiled(folder, "sm_90").code


@pytest.mark.parametrize("broken", [b"", b"nonsense", None], ids=["empty", "nonsense", "cut short"])
def test_a_broken_entry_is_built_again(tmp_path: Path, broken: bytes | None) -> None:
    folder = own_folder(tmp_path, SOURCE, HEADER)
    first = compiled(folder)
    (entry,) = entries()
    whole = entry.read_bytes()
    entry.write_bytes(whole[: len(whole) // 2] if broken is None else broken)
    second = compiled(folder)
    assert second.code == first.code
    assert compiled(folder) == second, "the entry was not mended"


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert compiled(own_folder(tmp_path, SOURCE, HEADER)).functions["k"].parameter_bytes == 8


def test_a_sealed_entry_that_holds_no_code_is_built_again(tmp_path: Path) -> None:
    folder = own_folder(tmp_path, SOURCE, HEADER)
    first = compiled(folder)
    (entry,) = entries()
    compiler._write_cache(entry.name, b"\x7fELF, and no more", "")
    assert compiled(folder).code == first.code


BROKEN_LISTINGS = {
    "empty": b"",
    "cut short": b"{",
    "no text": b"\xff",
    "no list": b"[1]",
    "without instructions": b'[{}, [{"function-name": "k"}]]',
    "nested deep": b"[" * 100_000,
}


@pytest.mark.parametrize("broken", BROKEN_LISTINGS.values(), ids=BROKEN_LISTINGS)
def test_a_broken_listing_is_made_again(tmp_path: Path, broken: bytes) -> None:
    cubin = compiled(own_folder(tmp_path, SOURCE, HEADER))
    sass._functions.cache_clear()
    try:
        first = sass.disassemble(cubin, "k")
    except Unavailable as error:
        pytest.skip(str(error))
    (file,) = cache_dir("sass").iterdir()
    whole = file.read_bytes()
    file.write_bytes(broken)
    sass._functions.cache_clear()
    assert sass.disassemble(cubin, "k") == first
    assert file.read_bytes() == whole, "the listing was not mended"


def test_a_compile_error_names_file_line_and_message(tmp_path: Path) -> None:
    folder = own_folder(tmp_path, SOURCE.replace("FACTOR", "FACTOS"), HEADER)
    with pytest.raises(
        UsageError, match=r'k\.cu, line 2, does not compile for sm_90: .*"FACTOS" is undefined'
    ):
        compiled(folder)


def test_a_missing_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"Can't read kernel source '.*gone\.cu': no such file"):
        compile_source(tmp_path / "gone.cu", "gone.cu", "sm_90", ())


def test_the_arch_line_decides_where_a_source_runs() -> None:
    assert arch_of("// a kernel\n", "80") == "sm_80"
    assert arch_of("// a kernel\n// arch: 90\n", "86") is None
    assert arch_of("// arch: 90\n", "120") == "sm_120"
    assert arch_of("// arch: 90a\n", "90") == "sm_90a"
    assert arch_of("// arch: 90a\n", "100") is None


def test_an_empty_log_leaves_pythons_own_bytes_alone() -> None:
    """A log of one byte, its end: of each single byte Python has one object, shared by everybody."""
    code, log = compiler._nvrtc(
        'extern "C" __global__ void f() {}',
        "f.cu",
        "sm_90",
        replace(compiler.toolchain(), options=()),
        (),
        (),
    )
    assert code.startswith(b"\x7fELF")
    assert log == ""
    assert bytes([0x20])[0] == 0x20
