"""Tables for a person: what is shown, what a narrow or plain terminal is spared, what is never hidden."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.cli.tables.text_table import Heading, table
from gputop.cli.tables.window_lines import (
    ceiling_lines,
    comparison_lines,
    copies_line,
    gate_words,
    window_lines,
)
from gputop.cli.terminal import Terminal, wrapped
from gputop.results.records import (
    SCHEMA_PHASES,
    Ceiling,
    Ceilings,
    Comparison,
    Delta,
    DeviceFacts,
    ElementCheck,
    Gate,
    Health,
    PhaseCheck,
    PlanResult,
    Row,
    Window,
)

WIDE = Terminal()
DEVICE = DeviceFacts("cpu", "A Processor", versions="numpy 2", notes=("2 of 4 cores",))
PASS = Gate("PASS", 2e-7, 1e-5, (0.095916, 0.033), (PhaseCheck("w2", 1, 3e-7, 1e-5),))
FAIL = Gate("FAIL", 0.5, 1e-5, where="w2 of layer 1 is off by 0.5, 1e-05 allowed")


def row(phase: str, **fields: object) -> Row:
    base = Row(
        SCHEMA_PHASES, "2026-01-01T00:00:00Z", 3, 12, "cpu", "A Processor", None, "tiny", 1, 16,
        "cpu-blas", "cpu-blas", phase, gate="PASS",
    )  # fmt: skip
    return replace(base, **fields)  # type: ignore[arg-type]


ROWS = (
    row("ln1", count=2, kernel="norm", time_s=1e-4, floor_s=5e-5, efficiency=0.5, timer="perf_counter"),
    row("w2", count=2, kernel="gemm", time_s=2e-4, status="unresolved: below 3 timer steps"),
    row("head", count=1, kernel="gemm", status="unresolved: below 3 timer steps"),
    row("sum", time_s=3e-4),
    row("device", time_s=3.1e-4),
)


def window(gate: Gate = PASS, rows: tuple[Row, ...] = ROWS) -> Window:
    lane = PlanResult("cpu-blas", "cpu-blas", "current", gate, 3.1e-4, 3.2e-4, None, None, rows)
    return Window(
        3, "2026-01-01T00:00:00Z", 1.5, DEVICE, Health(sm_clock_hz=2.5e9), "tiny", (lane,),
        stopped_because="time budget", advice="w2 first",
    )  # fmt: skip


def test_a_window_says_where_it_ran_and_how_it_was_timed() -> None:
    text = "\n".join(window_lines(window(), WIDE))
    for part in (
        "A Processor", "numpy 2", "2 of 4 cores", "tiny", "batch 1", "seq 16", "plan cpu-blas", "window 3",
        "12 samples", "timer perf_counter", "clock 2.50 GHz", "time budget", "w2 first",
    ):  # fmt: skip
        assert part in text


def test_one_sample_is_one() -> None:
    once = tuple(replace(part, samples=1) for part in ROWS)
    text = "\n".join(window_lines(window(rows=once), WIDE))
    assert " 1 sample " in text


def test_a_long_line_breaks_between_words_and_colours_take_no_room() -> None:
    painted = Terminal(colour=True).paint("ccc dd", "bad")
    assert wrapped(f"aa bb  {painted} eee", 7) == ["aa bb", "\x1b[31mccc dd\x1b[0m", "eee"]
    assert wrapped("  w2: far too long", 9) == ["  w2: far", "too long"]


@given(st.text(alphabet="ab  ", max_size=60), st.integers(1, 20))
def test_wrapping_loses_no_word_and_keeps_to_the_width(line: str, width: int) -> None:
    parts = wrapped(line.rstrip(), width)
    assert " ".join(parts).split() == line.split()
    assert all(len(part) <= width or len(part.split()) == 1 for part in parts if part.strip())


def test_a_host_that_sets_the_pace_is_said() -> None:
    (lane,) = window().lanes
    bound = replace(lane, host_bound=True, submit_s=3e-4)
    said = "host-bound: 320 µs as used, 310 µs on the device, 300 µs to submit"
    assert said in window_lines(replace(window(), lanes=(bound,)), WIDE)
    assert not any("host-bound" in line for line in window_lines(window(), WIDE))


def test_the_gate_is_said_with_its_logits_and_errors() -> None:
    words = gate_words(PASS)
    assert "logits 0.095916 0.033000" in words
    assert "pass error 2.0e-07 of 1.0e-05 allowed" in words
    assert "worst phase w2 3.0e-07 of 1.0e-05" in words
    assert "element" not in words, "an old recording looked at none"
    assert "phases not checked" in gate_words(replace(PASS, checks=()))


def test_the_gate_says_which_element_is_nearest_to_its_bound() -> None:
    near, nearer = ElementCheck(3, 40, 1e-6, 9e-6, layer=1), ElementCheck(5, 7, 2e-4, 4e-4, layer=2)
    checks = (
        PhaseCheck("qkv", 0, 4e-7, 1e-5, 1, near),
        PhaseCheck("w2", 1, 3e-7, 1e-5, 2, nearer),
        PhaseCheck("lnf", 0, 1e-7, 1e-5, 0, ElementCheck(0, 0, 1.0, None)),
    )
    words = gate_words(replace(PASS, checks=checks))
    assert "worst phase qkv 4.0e-07 of 1.0e-05" in words
    assert "worst element w2 row 5 column 7 2.0e-04 of 4.0e-04 that rounding explains" in words


def test_no_gate_no_time() -> None:
    text = "\n".join(window_lines(window(FAIL, ()), WIDE))
    assert "gate FAIL" in text
    assert "off by 0.5" in text
    assert not re.search(r"\d (s|ms|µs)\b", text.replace("1.5 s", ""))


def test_a_phase_shows_what_is_unknown_and_a_total_what_is_not_its_own_stays_empty() -> None:
    lines = window_lines(window(), WIDE)
    head = next(line for line in lines if line.startswith("head"))
    total = next(line for line in lines if line.startswith("sum"))
    assert "–" in head
    assert "–" not in total


def test_one_reason_is_given_once_for_all_the_rows_it_holds_for() -> None:
    lines = window_lines(window(), WIDE)
    assert [line for line in lines if "unresolved" in line] == ["  w2, head: unresolved: below 3 timer steps"]


@pytest.mark.parametrize("width", [20, 40, 60, 80])
def test_a_narrow_terminal_drops_columns_and_no_row(width: int) -> None:
    lines = window_lines(window(), Terminal(width=width))
    start = next(i for i, line in enumerate(lines) if line.startswith("phase"))
    body = lines[start : start + 7]
    assert [line.split()[0] for line in body if "─" not in line] == ["phase", *(r.phase for r in ROWS)]
    assert all("time" in line or "µs" in line or "–" in line or "─" in line for line in body)
    assert max(len(line) for line in body) <= width


def test_colour_only_where_it_is_wanted_and_never_the_only_sign() -> None:
    coloured = window_lines(window(FAIL, ()), Terminal(colour=True))
    plain = window_lines(window(FAIL, ()), WIDE)
    assert any("\x1b[31m" in line for line in coloured)
    assert [re.sub(r"\x1b\[\d+m", "", line) for line in coloured] == plain


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_every_line_fits_the_encoding_of_the_terminal(encoding: str) -> None:
    terminal = Terminal(encoding=encoding)
    for line in window_lines(window(), terminal):
        terminal.encodable(line).encode(encoding)
    assert terminal.encodable("1.5 µs") in ("1.5 us", "1.5 µs")


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb"), ("TERM", "")])
def test_the_environment_can_forbid_colour(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Tty:
        encoding = "utf-8"

        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert Terminal.of(Tty()).colour  # type: ignore[arg-type]
    monkeypatch.setenv(variable, value)
    assert not Terminal.of(Tty()).colour  # type: ignore[arg-type]


def test_a_comparison_shows_both_gates_and_every_delta() -> None:
    delta = Delta("device", 2e-3, 1e-3, -1e-3, -1.1e-3, -0.9e-3, 2.0, 1.9, 2.1, 20, 0.003, "FASTER")
    phase = replace(delta, phase="w2", verdict="UNRESOLVED", status="spread too wide")
    measured = window()
    pinned = replace(measured.lanes[0], role="pinned", plan="cpu-loops")
    measured = replace(measured, lanes=(measured.lanes[0], pinned), verdict="cpu-blas is FASTER")
    comparison = Comparison("cpu-loops", "cpu-blas", 1, (phase, delta))
    lines = comparison_lines(measured, comparison, WIDE)
    text = "\n".join(lines)
    assert re.search(r"^device +2\.00 ms +1\.00 ms +-1\.00 ms .*2\.00×.*FASTER$", text, re.MULTILINE)
    assert "  w2: spread too wide" in lines
    assert "a  cpu-loops" in lines
    assert text.count("gate PASS") == 2
    assert "cpu-blas is FASTER" in lines


def test_how_far_copies_differ_is_said_in_one_sentence() -> None:
    quiet = Delta("device", 2e-3, 2e-3, 0.0, -1e-6, 1e-6, 1.0, 0.999, 1.001, 20, 0.003, "SAME")
    said = "copies of a differ by up to {} %: nothing below that is an effect here"
    assert copies_line(Comparison("a", "a", 1, (quiet,))) == said.format("0.300")
    wide = replace(quiet, ratio_lo=0.8, ratio_hi=1.1)
    assert copies_line(Comparison("a", "a", 1, (wide,))) == said.format("25.0")
    nothing = replace(quiet, ratio_lo=1e-9, ratio_hi=1e9)
    few = replace(quiet, ratio=None, ratio_lo=None, ratio_hi=None, status="too few rounds")
    for delta, why in ((nothing, "more --seconds"), (few, "too few rounds")):
        line = copies_line(Comparison("a", "a", 1, (delta,)))
        assert line.startswith(f"how far copies of a differ is not known: {why}")


def test_an_interval_that_says_nothing_is_shown_as_unknown() -> None:
    wide = Delta("device", 2e-3, 1e-3, -1e-3, -9e4, 9e4, 2.0, 1e-8, 4e8, 2, 0.003, "UNRESOLVED")
    comparison = Comparison("a", "b", 2, (wide,))
    row = next(line for line in comparison_lines(window(), comparison, Terminal()) if "UNRESOLVED" in line)
    assert row.split() == [
        "device", "2.00", "ms", "1.00", "ms", "-1.00", "ms", "–", "–", "2.00×", "–", "–", "UNRESOLVED"
    ]  # fmt: skip


def test_a_ceiling_is_shown_in_its_own_unit_with_its_doubt() -> None:
    low = Ceiling("fp32", 2e11, "FLOP/s", "BLAS", limit=1e12, status="low: 20 %")
    ceilings = Ceilings("A Processor", None, "t", (Ceiling("dram_read", 1.2e10, "B/s", "sum"), low))
    text = "\n".join(ceiling_lines(ceilings, WIDE))
    assert "12.0 GB/s" in text
    assert "200 GFLOP/s" in text
    assert "  fp32: low: 20 %" in text


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=6),
    st.integers(1, 80),
    st.lists(st.text(st.characters(codec="ascii", categories=["L"]), max_size=9), min_size=6, max_size=6),
)
def test_a_table_drops_the_least_needed_columns_first(
    priorities: list[int], width: int, cells: list[str]
) -> None:
    headings = [Heading(f"<{i}>", priority=priority) for i, priority in enumerate(priorities)]
    lines = table(headings, [cells[: len(headings)]], width)
    kept = [priority for i, priority in enumerate(priorities) if f"<{i}>" in lines[0]]
    gone = [priority for i, priority in enumerate(priorities) if f"<{i}>" not in lines[0]]
    assert all(priority > 0 for priority in gone)
    assert not gone or max(kept, default=0) <= min(gone)
    assert len(lines) == 2
    if any(kept):
        assert max(len(line) for line in lines) <= width
