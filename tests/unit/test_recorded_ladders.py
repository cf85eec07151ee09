"""Recordings of several cards read as one ladder: the card is the unit."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from gputop.cli import main
from gputop.cli.recorded_ladders import recorded_ladders
from gputop.results import recording
from gputop.results.recording import EndLine, LadderLine, Recording, encode
from gputop.util.errors import UsageError


@pytest.fixture(scope="module")
def latest() -> Recording:
    return recording.read(recording.shipped()["h200-copy-engine"])


def written(path: Path, kept: Recording, uuid: str, factor: float) -> str:
    """The same ladder from another card, on which each step gains `factor` times as much."""
    assert kept.ladder is not None
    header = replace_header(kept, uuid)
    entries = tuple(
        replace(
            entry,
            ratio_before=entry.ratio_before * factor,
            ratio_before_lo=entry.ratio_before_lo * factor,
            ratio_before_hi=entry.ratio_before_hi * factor,
            verdict="UNRESOLVED",
        )
        if entry.ratio_before and entry.ratio_before_lo and entry.ratio_before_hi
        else entry
        for entry in kept.ladder.entries
    )
    ladder = replace(kept.ladder, device=header.device, entries=entries)
    path.write_bytes(encode(header) + encode(LadderLine(ladder=ladder)) + encode(EndLine()))
    return str(path)


def replace_header(kept: Recording, uuid: str) -> recording.Header:
    import msgspec

    return msgspec.structs.replace(kept.header, device=replace(kept.header.device, uuid=uuid))


def test_the_ladders_of_two_cards_are_pooled_and_say_of_how_many(
    latest: Recording, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = written(tmp_path / "other.jsonl", latest, "GPU-other", 1.02)
    assert main(["ladder", "--replay", "h200-copy-engine", other, "--csv", "-"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert latest.ladder is not None
    entry = next(entry for entry in latest.ladder.entries if entry.rung == "tma")
    pooled = next(row for row in rows if row["name"] == "tma" and not row["number"])
    assert pooled["devices"] == "2"
    assert entry.ratio_before is not None
    assert entry.ratio_before_lo is not None
    assert entry.ratio_before_hi is not None
    assert float(pooled["ratio"]) == pytest.approx(entry.ratio_before * 1.01, rel=0.01)
    assert float(pooled["ratio_lo"]) < entry.ratio_before_lo, "cards differ by more than a window says"
    assert float(pooled["ratio_hi"]) > entry.ratio_before_hi


def test_one_card_is_one_unit_and_other_sizes_are_another_thing(latest: Recording, tmp_path: Path) -> None:
    uuid = latest.header.device.uuid or ""
    again = written(tmp_path / "again.jsonl", latest, uuid, 1.0)
    with pytest.raises(UsageError, match="were made on one card: give one recording of each card"):
        recorded_ladders(["h200-copy-engine", again])
    with pytest.raises(UsageError, match=r"no recording 'h201'.*h200"):
        recorded_ladders(["h201"])


def test_a_recording_without_a_ladder_says_why(latest: Recording, tmp_path: Path) -> None:
    path = tmp_path / "none.jsonl"
    path.write_bytes(encode(latest.header))
    with pytest.raises(UsageError, match="holds no ladder: it was stopped before"):
        recorded_ladders([str(path)])
