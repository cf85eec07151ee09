"""Tables in files: the bytes, what reads back, what is refused."""

from __future__ import annotations

import csv
import io
import json
import locale
import math
import re
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gputop.results import export
from gputop.results.columns import COLUMNS
from gputop.results.kernel_selection import Route, Routing
from gputop.results.ladder import Ladder, LadderEntry
from gputop.results.records import (
    SCHEMA_PHASES,
    Ceiling,
    Ceilings,
    Comparison,
    Delta,
    DeviceFacts,
    Gate,
    Health,
    PlanResult,
    Row,
    Window,
)
from gputop.util.errors import UsageError
from tests.golden import assert_golden

GOLDEN = Path(__file__).parent / "golden"

ROW = Row(
    schema=SCHEMA_PHASES,
    time_utc="2026-01-02T03:04:05Z",
    window=3,
    samples=40,
    backend="cpu",
    device="A CPU, 2 cores",
    driver=None,
    workload="tiny",
    batch=1,
    seq=16,
    rung="cpu-blas",
    plan="cpu-blas,qkv=fused",
    phase="ln2+w1",
    count=2,
    kernel="gemm-blas",
    time_s=1.25e-3,
    efficiency=1 / 3,
    binds="compute",
    gate="PASS",
    gate_error=3e-7,
    delta_s=-1e-4,
    status='said "so",\nthen no more',
    host_bound=False,
)
GATE = Gate("PASS", 3e-7, 1e-5, logits=(0.5, -0.25))
DEVICE = DeviceFacts("cpu", "A CPU, 2 cores", versions="numpy 2.4.6")
DELTA = Delta("device", 2e-3, 1e-3, -1e-3, -1.1e-3, -0.9e-3, 2.0, 1.9, 2.1, 40, 0.003, "FASTER")
WALL = replace(DELTA, phase="wall", verdict="UNRESOLVED", status="the interval reaches the A/A floor")
COMPARISON = Comparison("cpu-blas", "cpu-fused", 1, (DELTA, WALL))
LANE = PlanResult("cpu-fused", "cpu-fused", "current", GATE, 1e-3, 1.1e-3, None, None, ())
WINDOW = Window(
    number=3,
    time_utc="2026-01-02T03:04:05Z",
    seconds=2.5,
    device=DEVICE,
    health=Health(throttle=(), host_cores=2, others_cores=1.5, throttled_s=0.25),
    workload="tiny",
    lanes=(LANE, replace(LANE, plan="cpu-blas", rung="cpu-blas", role="pinned", device_s=2e-3)),
    comparison=COMPARISON,
    stopped_because="interval narrow enough",
    notes=("one note", "another"),
)
LADDER = Ladder(
    time_utc="2026-01-02T03:04:05Z",
    device=DEVICE,
    workload="tiny",
    entries=(
        LadderEntry(
            "cpu-blas", 2, "ladder", "Use the library.", ("gemm-blas",), GATE, 1e-3, hit=True, aa_floor=0.02
        ),
    ),
)
CEILINGS = Ceilings(
    device="A CPU, 2 cores",
    driver=None,
    time_utc="2026-01-02T03:04:05Z",
    items=(Ceiling("dram_read", 12.5e9, "B/s", "sum of 400 MB"), Ceiling("fp32", 1.5e11, "FLOP/s", "sgemm")),
)

ROUTING = Routing(
    time_utc="2026-01-02T03:04:05Z",
    device=LADDER.device,
    workload="tiny",
    plan="cpu-blas",
    routes=(
        Route("w2", "ours", library=False, incumbent=True, time_s=2e-4, ratio=1.0),
        Route("w2", "theirs", library=True, incumbent=False, time_s=1e-4, ratio=2.0, standing="winner"),
    ),
)

TABLES: tuple[tuple[str, Callable[[], str], Callable[[], str]], ...] = (
    ("phases", lambda: export.phase_csv([ROW, replace(ROW, phase="wall")]), lambda: export.phase_json([ROW])),
    ("compare", lambda: export.compare_csv(COMPARISON), lambda: export.compare_json(COMPARISON)),
    ("windows", lambda: export.windows_csv([WINDOW]), lambda: export.windows_json([WINDOW])),
    ("ladder", lambda: export.ladder_csv(LADDER), lambda: export.ladder_json(LADDER)),
    ("routing", lambda: export.routing_csv(ROUTING), lambda: export.routing_json(ROUTING)),
    ("ceilings", lambda: export.ceilings_csv(CEILINGS), lambda: export.ceilings_json(CEILINGS)),
)


@pytest.mark.parametrize(("name", "as_csv", "as_json"), TABLES, ids=[name for name, _, _ in TABLES])
def test_bytes_are_golden(
    name: str, as_csv: Callable[[], str], as_json: Callable[[], str], pytestconfig: pytest.Config
) -> None:
    assert_golden(as_csv(), GOLDEN / f"{name}.csv", pytestconfig)
    assert_golden(as_json(), GOLDEN / f"{name}.json", pytestconfig)


@pytest.mark.parametrize(("name", "as_csv", "as_json"), TABLES, ids=[name for name, _, _ in TABLES])
def test_csv_and_json_tell_the_same(name: str, as_csv: Callable[[], str], as_json: Callable[[], str]) -> None:
    table = json.loads(as_json())
    first_csv = next(csv.DictReader(io.StringIO(as_csv(), newline="")))
    first_json = table["rows"][0]
    assert table["schema"] == first_json["schema"] == first_csv["schema"] == f"gputop.{name}/1"
    assert list(first_json) == list(first_csv)
    words = {True: "true", False: "false", None: ""}
    for key, value in first_json.items():
        written = words[value] if isinstance(value, bool) or value is None else str(value)
        assert first_csv[key] == written


def test_the_guides_lines_name_the_worst_phase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "reading-a-profile.md").read_text(encoding="utf-8")
    times = {"w1": (5e-4, 4e-4), "w2": (9e-4, 3e-4), "ln1": (2e-5, None), "sum": (2e-3, 7e-4)}
    rows = [replace(ROW, phase=phase, time_s=t, floor_s=floor) for phase, (t, floor) in times.items()]
    (tmp_path / "profile.csv").write_text(export.phase_csv(rows), newline="")
    monkeypatch.chdir(tmp_path)
    exec(guide.partition("```python\n")[2].partition("```")[0], {})
    assert capsys.readouterr().out == f"w2 {ROW.kernel}\n"


def test_unknown_is_empty_and_null() -> None:
    row = next(csv.DictReader(io.StringIO(export.phase_csv([ROW]), newline="")))
    assert row["l2_s"] == row["driver"] == row["verdict"] == ""
    assert json.loads(export.phase_json([ROW]))["rows"][0]["l2_s"] is None


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_unknown_and_the_status_says_so(broken: float) -> None:
    row = replace(ROW, time_s=broken, ratio=broken, status=None)
    for text in (export.phase_csv([row]), export.phase_json([row])):
        assert "not finite: time_s, ratio" in text
        assert not {"nan", "NaN", "inf", "-inf", "Infinity", "-Infinity"} & set(re.split(r"[,:\s]+", text))
    assert export.read_phase_csv(export.phase_csv([row]))[0].time_s is None


def test_the_decimal_point_is_no_matter_of_locale() -> None:
    before = locale.setlocale(locale.LC_ALL)
    for name in ("de_DE.UTF-8", "de_DE", "fr_FR.UTF-8"):
        try:
            locale.setlocale(locale.LC_ALL, name)
        except locale.Error:
            continue
        try:
            assert ",0.00125," in export.phase_csv([ROW])
        finally:
            locale.setlocale(locale.LC_ALL, before)
        return
    pytest.skip("no locale with a decimal comma is installed")


def _values(kind: str) -> st.SearchStrategy[object]:
    known: st.SearchStrategy[object]
    if "float" in kind:
        known = st.floats(allow_nan=False, allow_infinity=False)
    elif "bool" in kind:
        known = st.booleans()
    elif "int" in kind:
        known = st.integers()
    else:
        # An empty text is unknown where a text may be unknown.
        awkward = st.sampled_from([",", '"', "\n", "\r", "\r\n", " x "])
        known = st.text(min_size=1 if "None" in kind else 0) | awkward
    return known | st.none() if "None" in kind else known


VALUES = {field.name: _values(str(field.type)) for field in fields(Row)}
ROWS = st.builds(Row, **{**VALUES, "schema": st.just(SCHEMA_PHASES)})


@settings(max_examples=40)
@given(st.lists(ROWS, max_size=2).map(tuple))
def test_a_phase_table_reads_back_bit_for_bit(rows: tuple[Row, ...]) -> None:
    assert export.read_phase_csv(export.phase_csv(rows)) == rows


@settings(max_examples=40)
@given(ROWS)
def test_any_reader_of_csv_sees_the_same_cells(row: Row) -> None:
    text = export.phase_csv([row])
    header, cells = csv.reader(io.StringIO(text, newline=""), strict=True)
    assert header == [column.key for column in COLUMNS]
    assert cells[header.index("plan")] == row.plan
    assert len(cells) == len(header)


def test_an_older_file_lacks_later_columns_and_a_newer_one_has_more() -> None:
    header, cells = csv.reader(io.StringIO(export.phase_csv([ROW]), newline=""))
    last = header.index("status") + 1
    (older,) = export.read_phase_csv(_written([header[:last], cells[:last]]))
    later: dict[str, Any] = {column.key: None for column in COLUMNS[last:]}
    assert older == replace(ROW, **later)
    newer = _written([[*header, "moon_phase"], [*cells, "full"]])
    assert export.read_phase_csv(newer) == (ROW,)


def _written(rows: list[list[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def _cell(text: str, key: str, value: str) -> str:
    rows = list(csv.reader(io.StringIO(text, newline="")))
    rows[1][rows[0].index(key)] = value
    return _written(rows)


PLAIN = export.phase_csv([replace(ROW, status=None)])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "line 1: not a phase table; columns missing: schema, "),
        ("a,b\n1,2\n", "line 1: not a phase table"),
        (
            _cell(PLAIN, "schema", "gputop.phases/2"),
            "line 2: schema 'gputop.phases/2'; this gputop reads gputop.phases/1",
        ),
        (_cell(PLAIN, "window", ""), "line 2: window is '', not a whole number"),
        (_cell(PLAIN, "time_s", "1,5"), "line 2: time_s is '1,5', not a finite number"),
        (_cell(PLAIN, "time_s", "nan"), "line 2: time_s is 'nan', not a finite number"),
        (_cell(PLAIN, "host_bound", "maybe"), "line 2: host_bound is 'maybe', not true or false"),
        (PLAIN + "short,row\n", "line 3: 2 fields under"),
        (PLAIN + 'schema,"open\n', "line 3: "),
        (PLAIN.replace("window,samples", "window,window"), "line 1: not a phase table; columns missing: sam"),
        (PLAIN.replace("status,question_floor_s", "status,status"), "line 1: columns named twice: status"),
    ],
)
def test_a_broken_table_is_refused_by_name_line_and_reason(text: str, reason: str) -> None:
    with pytest.raises(UsageError) as refusal:
        export.read_phase_csv(text, "table.csv")
    assert f"table.csv, {reason}" in str(refusal.value)


def test_a_file_and_stdout_get_the_same_bytes(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    text = export.phase_csv([ROW])
    path = tmp_path / "out.csv"
    export.open_target(str(path)).write(text)
    target = export.open_target("-")
    assert target.is_stdout
    target.write(text)
    assert capfdbinary.readouterr().out == path.read_bytes() == text.encode()
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_written_before_the_measurement(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("old")
    export.open_target(str(tmp_path / "old.csv"))
    export.open_target(str(tmp_path / "new.csv"))
    assert [path.name for path in tmp_path.iterdir()] == ["old.csv"]
    assert (tmp_path / "old.csv").read_text() == "old"


def test_a_file_is_replaced_whole_and_keeps_its_mode_and_its_link(tmp_path: Path) -> None:
    real = tmp_path / "real.csv"
    real.write_text("a longer text that was here before")
    real.chmod(0o640)
    (tmp_path / "link.csv").symlink_to(real)
    export.open_target(str(tmp_path / "link.csv")).write("new")
    assert real.read_text() == "new"
    assert real.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "link.csv").is_symlink()


def test_a_device_is_written_to_and_stays_one() -> None:
    export.open_target("/dev/null").write("gone")
    assert Path("/dev/null").is_char_device()


@pytest.fixture
def refused(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("", "An empty file name"),
        ("{}/nowhere/out.csv", "there is no folder"),
        ("{}/folder", "it is a folder"),
        ("{}/file/out.csv", "there is no folder"),
        ("{}/" + "x" * 300, "too long"),
        ("{}/nul\0l", "null"),
    ],
)
def test_what_can_t_be_written_is_refused_at_once(refused: Path, word: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        export.open_target(word.format(refused))
