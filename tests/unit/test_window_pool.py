"""Windows kept in SQLite: pooled across processes, whatever happens to the file or to who writes it."""

from __future__ import annotations

import math
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gputop.ipc.worker import _Worker
from gputop.model.workloads import parse_workload
from gputop.results.pooled_words import extent_words, pooled_words
from gputop.results.records import (
    SCHEMA_PHASES,
    Comparison,
    Delta,
    DeviceFacts,
    Gate,
    Health,
    PlanResult,
    Pooled,
    Row,
    Window,
)
from gputop.session import window_pool
from gputop.session.window_pool import KeptWindow, PoolUnusable, pooled

TINY = parse_workload("tiny")
LAUNCH_S = 1e-6


def window(
    effect: float = 0.01,
    half_width: float = 0.004,
    *,
    words: tuple[str, str] = ("a", "b"),
    launch_s: float | None = LAUNCH_S,
    known: bool = True,
) -> Window:
    """One in which the first plan took exp(effect) times as long as the second."""
    a_s, b_s = 1e-3 * math.exp(effect / 2), 1e-3 * math.exp(-effect / 2)
    delta = Delta(
        "device", a_s, b_s, b_s - a_s, None, None,
        math.exp(effect), math.exp(effect - half_width), math.exp(effect + half_width),
        20, 0.003, "UNRESOLVED", same_within=0.003 if known else None,
    )  # fmt: skip
    comparison = Comparison(*words, 1, (delta,))
    facts = DeviceFacts("cuda", "a card", uuid="GPU-1", driver="580")
    return Window(1, "2026-12-01T00:00:00", 1.0, facts, Health(launch_s=launch_s), "tiny", (), comparison)


def kept(path: Path, shown: Window, unit: str = "one") -> Pooled:
    found = pooled(path, shown, TINY, unit)
    assert found is not None
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "windows.sqlite"


def test_waiting_tightens_the_interval_and_says_what_it_rests_on(path: Path) -> None:
    first = kept(path, window())
    assert pooled_words(first) == "", "the window alone says it"
    for _ in range(3):
        last = kept(path, window())
    assert (last.comparison.windows, last.units) == (4, 1)
    device = last.comparison.get("device")
    assert device is not None
    assert device.ratio_lo is not None
    assert device.ratio_lo == pytest.approx(math.exp(0.01 - 0.002))
    assert device.samples == 80
    assert pooled_words(last).startswith(
        "1.01× [1.01, 1.01], FASTER in 4 windows of one process since 2026-12-01"
    )
    assert extent_words(last.comparison) == "4 windows, 80 rounds"
    assert "of 2 processes" in pooled_words(kept(path, window(), "two"))


def test_a_pair_is_one_pair_in_either_direction(path: Path) -> None:
    kept(path, window(0.01))
    turned = kept(path, window(-0.01, words=("b", "a"))).comparison
    assert (turned.plan_a, turned.plan_b, turned.windows) == ("b", "a", 2)
    device = turned.get("device")
    assert device is not None
    assert device.ratio == pytest.approx(math.exp(-0.01))
    assert device.verdict == "SLOWER"
    assert device.a_s is not None
    assert device.b_s is not None
    assert device.delta_s is not None
    assert device.delta_s > 0
    assert device.b_s > device.a_s


def test_what_differs_is_pooled_with_none(path: Path) -> None:
    kept(path, window())
    others = (
        window(launch_s=1.2 * LAUNCH_S),
        window(launch_s=None),
        window(words=("a", "c")),
        replace(window(), device=replace(window().device, uuid="GPU-2")),
        replace(window(), device=replace(window().device, driver="581")),
    )
    for other in others:
        assert kept(path, other).comparison.windows == 1
    larger = replace(TINY, dims=replace(TINY.dims, seq=32))
    found = pooled(path, window(), larger, "one")
    assert found is not None
    assert found.comparison.windows == 1
    assert kept(path, window(launch_s=1.05 * LAUNCH_S)).comparison.windows == 2


def test_the_machine_code_and_the_versions_are_part_of_a_pair() -> None:
    row = Row(
        SCHEMA_PHASES, "", 1, 1, "cuda", "a card", None, "tiny", 1, 16, "a", "a", "qkv",
        cubin="1234", versions="gputop 1",
    )  # fmt: skip
    gate = Gate("PASS", 0.0, 1e-5)
    lane = PlanResult("a", "a", "current", gate, 1e-3, 1e-3, None, None, (row,))
    key = window_pool.pair_key(replace(window(), lanes=(lane,)), TINY)
    for other in (replace(row, cubin="ffff"), replace(row, versions="gputop 2")):
        changed = replace(lane, rows=(other,))
        assert window_pool.pair_key(replace(window(), lanes=(changed,)), TINY) != key
    later = replace(lane, rows=(replace(row, time_utc="later", time_s=1.0),))
    assert window_pool.pair_key(replace(window(), lanes=(later,)), TINY) == key


def test_a_window_that_tells_nothing_is_not_kept(path: Path) -> None:
    alone = replace(window(), comparison=None)
    assert pooled(path, alone, TINY, "one") is None
    assert not path.exists()


def test_only_so_many_windows_are_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_pool, "MOST_KEPT", 5)
    for _ in range(8):
        last = kept(path, window())
    assert last.comparison.windows == 5


WRITER = """
import sys
from pathlib import Path
from tests.unit.test_window_pool import kept, window
for number in range(int(sys.argv[2])):
    kept(Path(sys.argv[1]), window(), sys.argv[3])
    print(number, flush=True)
"""
ROOT = Path(__file__).resolve().parents[2]


def writer(path: Path, windows: int, unit: str) -> subprocess.Popen[bytes]:
    words = (sys.executable, "-c", WRITER, str(path), str(windows), unit)
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE)


def test_two_processes_write_at_once_and_one_that_is_killed_costs_at_most_its_own_window(path: Path) -> None:
    first, second, killed = writer(path, 8, "one"), writer(path, 8, "two"), writer(path, 10000, "three")
    assert killed.stdout is not None
    done = 0
    while done < 4:
        done = int(killed.stdout.readline())
    killed.send_signal(signal.SIGKILL)
    rest = killed.stdout.read().split()
    assert killed.wait(60) == -signal.SIGKILL
    first.communicate(timeout=60)
    second.communicate(timeout=60)
    assert (first.returncode, second.returncode) == (0, 0)
    told = int(rest[-1]) + 1 if rest else done + 1
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        counts = dict(connection.execute("SELECT unit, count(*) FROM windows GROUP BY unit"))
    assert (counts["one"], counts["two"]) == (8, 8)
    assert counts["three"] in (told, told + 1), "every window that was reported, and perhaps the last one"


def broken(path: Path, how: str) -> None:
    if how == "no database":
        path.write_bytes(b"not a database" * 1000)
    elif how == "cut off":
        path.write_bytes(path.read_bytes()[:3000])
    elif how == "another table":
        path.unlink()
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE windows (id INTEGER)")
    elif how == "a folder":
        path.unlink()
        path.mkdir()
    elif how == "other content":
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE windows SET comparison = ?", (b'{"windows": 3',))
    elif how == "nested":
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE windows SET comparison = ?", (b"[" * 100_000,))
    elif how == "figures that can't be":
        with sqlite3.connect(path) as connection:
            (text,) = connection.execute("SELECT comparison FROM windows").fetchone()
            connection.execute(
                "UPDATE windows SET comparison = ?", (text.replace(b'"ratio_lo":1.0', b'"ratio_lo":-1.0'),)
            )


@pytest.mark.parametrize(
    "how",
    [
        "no database",
        "cut off",
        "another table",
        "a folder",
        "other content",
        "nested",
        "figures that can't be",
    ],
)
def test_a_broken_file_costs_the_pool_and_says_so(path: Path, how: str) -> None:
    kept(path, window())
    for beside in path.parent.glob("windows.sqlite-*"):
        beside.unlink()
    broken(path, how)
    with pytest.raises(PoolUnusable, match=r"windows\.sqlite can't be used .* delete it to begin anew"):
        pooled(path, window(), TINY, "one")


def test_a_folder_that_can_not_be_written_costs_the_pool_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PoolUnusable, match="not pooled with earlier ones"):
        pooled(tmp_path / "file" / "windows.sqlite", window(), TINY, "one")


def test_the_worker_hands_on_a_window_whose_pool_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Opened:
        workload = TINY

    monkeypatch.setattr(window_pool, "pool_file", lambda: tmp_path)
    with open("/dev/null", "rb") as nothing:
        worker = _Worker(nothing, -1)
    worker._session = Opened()  # type: ignore[assignment]
    shown = window()
    handed_on = worker._pooled(shown)
    assert handed_on.comparison == shown.comparison
    assert handed_on.pooled is None
    assert "this window is not pooled" in handed_on.notes[-1]


# simulated machines


def simulated(effect: float, seed: int, *, units: int, each: int, placement: float = 0.001) -> Delta:
    """Windows of several processes whose plans lie elsewhere in each, with 0.1 % of noise a window."""
    rng = np.random.default_rng(seed)
    deviation = 0.001
    windows = []
    for unit in range(units):
        lies = rng.normal(0.0, placement)
        for _ in range(each):
            shown = window(float(rng.normal(effect + lies, deviation)), 2.576 * deviation).comparison
            assert shown is not None
            windows.append(KeptWindow(str(unit), "2026-12-01", None, shown))
    device = window_pool.by_unit(windows).comparison.get("device")
    assert device is not None
    return device


def within(told: Delta) -> tuple[float, float]:
    """The interval of the effect."""
    assert told.ratio_lo is not None
    assert told.ratio_hi is not None
    return math.log(told.ratio_lo), math.log(told.ratio_hi)


def test_an_effect_below_the_floor_of_a_window_is_found_by_many() -> None:
    """0.2 %, half of what one window's interval spans: that of forty covers it and excludes 0."""
    told = [simulated(0.002, seed, units=20, each=2) for seed in range(100)]
    intervals = [within(each) for each in told]
    assert sum(lo <= 0.002 <= hi for lo, hi in intervals) >= 96
    assert sum(lo > 0 for lo, _ in intervals) >= 95
    assert not any(each.verdict == "SLOWER" for each in told)


@pytest.mark.parametrize("units", [1, 2, 5, 12, 40])
def test_copies_of_one_plan_stay_the_same_or_unresolved_however_long_one_waits(units: int) -> None:
    told = [simulated(0.0, seed, units=units, each=2) for seed in range(50)]
    assert {each.verdict for each in told} <= {"SAME", "UNRESOLVED"}


def test_windows_of_one_process_are_not_as_many_placements() -> None:
    """Forty windows of two processes say less of the plans than forty processes of one window do."""
    few, many = (
        within(simulated(0.002, 3, units=units, each=each, placement=0.01))
        for units, each in ((2, 20), (40, 1))
    )
    assert few[1] - few[0] > 3 * (many[1] - many[0])
