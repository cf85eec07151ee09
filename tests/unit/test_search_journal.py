"""The journal of a search: what is on the disk is what is known, wherever it was cut off."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.plan.types import KernelChoice
from gputop.results.records import Delta
from gputop.search import journal
from gputop.search.journal import Begun, CellResult, Ended, Journal, Line, Measured, Returned, Struck
from gputop.util.errors import UsageError

BEGUN = Begun(
    version="0", time_utc="2026-01-02T03:04:05+00:00", device="a device", driver=None, workload="tiny",
    plan="start", menu="0123", seed=0, budget=12, efficiency=0.95, least_gain=0.002, together=4,
)  # fmt: skip
choices = st.builds(KernelChoice, st.text(min_size=1, max_size=8), st.none() | st.integers(1, 16))
times = st.none() | st.floats(1e-9, 1e3)
deltas = st.builds(
    Delta, st.just("w1"), *([times] * 8), st.integers(0, 50), st.floats(0, 1),
    st.sampled_from(["FASTER", "SLOWER", "SAME", "UNRESOLVED"]), st.text(max_size=12), times,
)  # fmt: skip
results = st.builds(
    CellResult, site=st.text(min_size=1, max_size=6), kernel=choices, incumbent=choices, delta=deltas,
    forecast_s=times, forecast_sd=times, accepted=st.booleans(),
)  # fmt: skip
lines = st.one_of(
    st.just(BEGUN),
    st.builds(
        Measured, stage=st.sampled_from(["search", "finals", "closing"]), trial=st.integers(1, 99),
        time_utc=st.just(""), window=st.integers(1, 99), cells=st.lists(results, max_size=3).map(tuple),
        incumbent_s=st.dictionaries(st.text(max_size=4), st.floats(1e-9, 1.0), max_size=3),
        whole=st.none() | deltas,
    ),
    st.builds(Struck, trial=st.integers(1, 99), site=st.text(max_size=6), kernel=choices, reason=st.text()),
    st.builds(Returned, site=st.text(max_size=6), kernel=choices, own=choices, why=st.text(max_size=30)),
    st.builds(Ended, rule=st.text(max_size=9), why=st.text(max_size=30)),
)  # fmt: skip


@given(st.lists(lines, max_size=6), st.data())
def test_cut_off_anywhere_it_holds_every_line_that_was_whole(
    tmp_path_factory: pytest.TempPathFactory, after: list[Line], data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "cut.jsonl"
    written = [BEGUN, *after]
    encoded = [journal.encode(line) for line in written]
    cut = data.draw(st.integers(len(encoded[0]), sum(map(len, encoded))))
    path.write_bytes(b"".join(encoded)[:cut])
    read, size = journal.read(path)
    whole = [line for number, line in enumerate(written) if sum(map(len, encoded[: number + 1])) <= cut]
    assert list(read) == whole
    assert size == sum(map(len, encoded[: len(whole)]))


def test_what_is_added_after_a_cut_begins_on_a_line_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "a" / "search.jsonl"
    with Journal(path, 0) as first:
        first.add(BEGUN)
    with path.open("ab") as file:
        file.write(b'{"kind":"measured","stage":"sea')
    read, size = journal.read(path)
    with Journal(path, size) as second:
        second.add(Ended(rule="budget", why="12 were made"))
    assert journal.read(path)[0] == (*read, Ended(rule="budget", why="12 were made"))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (b"not json\n", "line 1"),
        (journal.encode(Ended(rule="menu", why="")), "line 1"),
        (journal.encode(BEGUN) + b'{"kind":"other"}\n', "line 2"),
        (journal.encode(BEGUN).replace(b"journal/1", b"journal/9"), "gputop.search-journal/9"),
    ],
)
def test_what_is_no_journal_is_refused_by_line(tmp_path: Path, text: bytes, named: str) -> None:
    path = tmp_path / "search.jsonl"
    path.write_bytes(text)
    with pytest.raises(UsageError, match=named):
        journal.read(path)


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="Can't write the journal"):
        Journal(tmp_path / "file" / "search.jsonl", 0)
