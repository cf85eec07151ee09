"""The fill against a scalar implementation in plain Python, and against checksums it once gave."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gputop.model import rng
from gputop.model.workloads import WORKLOADS
from gputop.plan.types import Dims, Workload

MASK = 2**64 - 1
TINY = WORKLOADS[2]


def scalar_key(text: str) -> int:
    value = 14695981039346656037
    for byte in text.encode():
        value = (value ^ byte) * 1099511628211 % 2**64
    return value


def scalar_splitmix(key: int) -> Iterator[int]:
    state = key
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
        yield z ^ (z >> 31)


def to_float32(value: float) -> float:
    """Rounded once: a product of two 24-bit numbers is exact in a Python float."""
    rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return rounded


def scalar_weights(seed: int, name: str, count: int, std: float, about_one: bool) -> bytes:
    factor = to_float32(std * math.sqrt(12) / 2**24)
    draws = scalar_splitmix(scalar_key(f"{seed}/{name}"))
    values = [to_float32(((next(draws) >> 40) - 2**23) * factor) for _ in range(count)]
    if about_one:
        values = [to_float32(1.0 + value) for value in values]
    return struct.pack(f"<{count}f", *values)


def filled(seed: int, name: str, count: int, std: float, about_one: bool = False) -> NDArray[np.float32]:
    out = np.empty(count, np.float32)
    rng.fill(seed, [rng.Draw(name, std, about_one, out)])
    return out


def test_the_scalar_generator_is_the_published_one() -> None:
    draws = scalar_splitmix(0)
    assert [next(draws) for _ in range(3)] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert scalar_key("") == 0xCBF29CE484222325
    assert scalar_key("foobar") == 0x85944171F73967E8


@given(seed=st.integers(0, 2**63), name=st.text(max_size=20))
def test_key_is_fnv_of_seed_and_name(seed: int, name: str) -> None:
    assert rng.key(seed, name) == scalar_key(f"{seed}/{name}")


@pytest.mark.parametrize(("std", "about_one"), [(0.02, False), (0.05, False), (0.1, True)])
@pytest.mark.parametrize("count", [1, 3, 40_000])
def test_weights_are_those_of_the_scalar_implementation(count: int, std: float, about_one: bool) -> None:
    assert filled(7, "1/w1", count, std, about_one).tobytes() == scalar_weights(
        7, "1/w1", count, std, about_one
    )


@pytest.mark.parametrize(
    ("name", "count", "std", "about_one", "checksum"),
    [
        ("0/wq", 768 * 768, 0.05, False, 0x939D5F1E),
        ("11/w2", 768 * 3072, 0.02, False, 0x4185436C),
        ("3/gain1", 768, 0.1, True, 0xE2DBE06B),
    ],
)
def test_golden_checksums(name: str, count: int, std: float, about_one: bool, checksum: int) -> None:
    """Taken once from `scalar_weights`."""
    assert zlib.crc32(filled(0, name, count, std, about_one).tobytes()) == checksum


def test_nothing_is_exactly_neutral() -> None:
    assert np.count_nonzero(filled(0, "0/b1", 3072, 0.02) == 0) == 0
    assert np.count_nonzero(filled(0, "0/gain1", 768, 0.1, True) == 1) == 0


def test_spread_is_as_asked() -> None:
    drawn = filled(0, "0/w1", 1 << 18, 0.02)
    assert drawn.std() == pytest.approx(0.02, rel=0.01)
    assert abs(drawn.mean()) < 2e-4


def test_tokens_are_those_of_the_scalar_implementation() -> None:
    draws = scalar_splitmix(scalar_key("0/tokens/1/3"))
    expected = [(next(draws) >> 40) * 256 >> 24 for _ in range(TINY.dims.seq)]
    assert rng.tokens(TINY, 1, 4)[3].tolist() == expected


@given(vocab=st.integers(1, 1 << 20), sequences=st.integers(1, 4), token_set=st.integers(0, 1))
def test_tokens_lie_in_the_vocabulary_and_do_not_depend_on_how_many_are_asked(
    vocab: int, sequences: int, token_set: int
) -> None:
    workload = Workload("any", Dims(1, 8, 1, 8, 16, vocab), seed=3)
    ids = rng.tokens(workload, token_set, sequences)
    assert ids.dtype == np.int32
    assert ids.min() >= 0
    assert ids.max() < vocab
    assert np.array_equal(ids, rng.tokens(workload, token_set, 5)[:sequences])


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_chunks_go_on_where_the_one_before_ended(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = filled(7, "1/w1", 2500, 0.05)
    monkeypatch.setattr(rng, "_CHUNK", chunk)
    monkeypatch.setattr(rng, "_BLOCK", 1200)
    assert np.array_equal(filled(7, "1/w1", 2500, 0.05), whole)


def test_a_long_sequence_goes_on_where_its_first_chunk_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rng, "_CHUNK", 1 << 14)
    long = Workload("long", Dims(1, 8, 1, 8, 40_000, 1 << 20), seed=3)
    draws = scalar_splitmix(scalar_key("3/tokens/0/0"))
    assert rng.tokens(long, 0, 1)[0].tolist() == [(next(draws) >> 40) << 20 >> 24 for _ in range(40_000)]


def test_token_sets_and_sequences_differ() -> None:
    first, second = rng.tokens(TINY, 0, 3), rng.tokens(TINY, 1, 3)
    rows = np.concatenate([first, second])
    assert len(np.unique(rows, axis=0)) == 6
