"""CUDA's own headers, of the version of the NVRTC that reads them.

Headers of another version fail in the middle of a file that nobody here wrote (`cooperative_groups.h`), and
only in the kernels that include it. So the folders of NVRTC's own version come first, wherever they lie.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TOOLKIT = Path("/usr/local/cuda")
VERSION_FILE = "cuda_runtime_api.h"
WHOLE = ("cuda_runtime.h", "crt/host_config.h")
"""What a set of folders must have: wheels bring these headers in two packages."""
WHEELS = ("cudart", "nvcc", "cccl")
"""What NVIDIA's finder calls the packages of headers."""
_VERSION = re.compile(r"^#define\s+CUDART_VERSION\s+(\d+)", re.MULTILINE)

Version = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Headers:
    """The folders of one set of headers, in the order in which they are searched."""

    folders: tuple[Path, ...]
    version: Version | None
    """None if the headers do not say."""

    def __str__(self) -> str:
        return f"{named(self.version)} in {self.folders[0]}"


def named(version: Version | None) -> str:
    """Return `13.1`, or `unknown`."""
    return "unknown" if version is None else ".".join(map(str, version))


def installed_headers() -> tuple[Headers, ...]:
    """Return every whole set of headers here: CUDA_PATH, CUDA_HOME, /usr/local/cuda, NVIDIA's wheels."""
    sets = dict.fromkeys(tuple(_existing(folders)) for folders in _places())
    return tuple(Headers(folders, _version_of(folders)) for folders in sets if _is_whole(folders))


def fitting_headers(found: tuple[Headers, ...], nvrtc: Version) -> Headers | None:
    """Return the set of NVRTC's own version, else the first of its major version; None if there is neither.

    A set that does not say its version may be of NVRTC's: it comes last.
    """

    def distance(headers: Headers) -> int:
        if headers.version is None:
            return 2
        return (headers.version != nvrtc) + 2 * (headers.version[0] != nvrtc[0])

    best = min(found, key=distance, default=None)
    return best if best is not None and distance(best) <= 2 else None


def _places() -> Iterator[tuple[Path, ...]]:
    for root in (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), str(TOOLKIT)):
        if root:
            include = Path(root) / "include"
            # From CUDA 13 on `cuda/std` and its kin lie one folder down.
            yield include, include / "cccl"
    try:
        from cuda.pathfinder import find_nvidia_header_directory
    except ImportError:
        return
    found = (find_nvidia_header_directory(name) for name in WHEELS)
    yield tuple(dict.fromkeys(Path(folder) for folder in found if folder))


def _existing(folders: tuple[Path, ...]) -> Iterator[Path]:
    return (folder for folder in folders if folder.is_dir())


def _is_whole(folders: tuple[Path, ...]) -> bool:
    return all(any((folder / name).is_file() for folder in folders) for name in WHOLE)


def _version_of(folders: tuple[Path, ...]) -> Version | None:
    """CUDA numbers 13.1 as 13010."""
    for folder in folders:
        try:
            found = _VERSION.search((folder / VERSION_FILE).read_text(errors="replace"))
        except OSError:
            continue
        if found:
            return int(found[1]) // 1000, int(found[1]) % 1000 // 10
    return None
