"""References that are kept: a seal proves that a file is whole, not that it holds the logits of a pass."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gputop.model.workloads import parse_workload
from gputop.validation import reference

TINY = parse_workload("tiny")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of two sequences' logits, [2, 256]."""
    monkeypatch.setattr(reference, "cache_dir", lambda name: tmp_path / name)
    logits()
    (file,) = (tmp_path / "references").rglob("*.npy")
    yield file
    reference.references.cache_clear()


def logits() -> NDArray[np.float64]:
    reference.references.cache_clear()
    (found,) = reference.references(TINY, ((0, 2),))
    return found


@pytest.mark.parametrize(
    "senseless",
    [
        np.zeros((2, 256)),
        np.full((2, 256), np.inf),
        np.arange(512.0).reshape(2, 256, 1),
        np.arange(510.0).reshape(2, 255),
        np.arange(256.0).reshape(1, 256),
        np.arange(512, dtype=np.float32).reshape(2, 256),
        np.arange(512).reshape(2, 256),
        np.array(1.0),
    ],
    ids=["equal", "infinite", "three axes", "other vocabulary", "too few", "float32", "whole", "one number"],
)
def test_what_can_not_be_the_logits_is_computed_again(kept: Path, senseless: NDArray[Any]) -> None:
    whole = kept.read_bytes()
    reference._save(kept, senseless)
    assert kept.read_bytes() != whole
    logits()
    assert kept.read_bytes() == whole


def test_a_header_that_asks_for_all_memory_is_not_believed(kept: Path) -> None:
    whole = kept.read_bytes()
    array = whole[: -reference.SEAL_BYTES]
    asking = array.replace(b"(2, 256), }         ", b"(2, 25600000000), } ", 1)
    assert asking != array
    kept.write_bytes(asking + hashlib.sha256(asking).digest())
    logits()
    assert kept.read_bytes() == whole
