"""Foreign text: what a terminal would obey is written out, and data keep their content."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.cli import main
from gputop.cli.tables.text_table import Heading, table
from gputop.cli.terminal import Narrator, Terminal, print_data
from gputop.ipc.log import WorkerLog
from gputop.results import export
from gputop.util.printable import printable, printable_json, printable_lines, printable_table
from tests.unit.test_cli_render import ROWS

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=30)
TITLE = "\x1b]0;owned\x07"
WIPE = "\x1b[2J"


@given(ANY_TEXT)
def test_what_is_made_printable_prints_and_stays_as_it_is(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert printable(shown) == shown
    assert all(line.isprintable() for line in printable_table(text).split("\n"))
    assert all(line.isprintable() for line in printable_lines(text).split("\n"))
    if text.isprintable():
        assert shown == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (TITLE, r"\x1b]0;owned\x07"),
        ("a\r\nb\tc", r"a\r\nb c"),
        ("\x9b2J", r"\x9b2J"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("\udcff", r"\udcff"),
        ("1\u00a0024\u2009B", "1 024 B"),
        ("µ × Δ 日本", "µ × Δ 日本"),
    ],
)
def test_characters_are_written_out_by_their_number(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.dictionaries(ANY_TEXT, ANY_TEXT))
def test_json_that_prints_has_the_same_content(content: dict[str, str]) -> None:
    text = printable_json(json.dumps(content, ensure_ascii=False, indent=1))
    assert all(line.isprintable() for line in text.split("\n"))
    assert json.loads(text) == json.loads(json.dumps(content))


def test_a_line_of_a_foreign_message_does_not_pass_for_one_of_ours() -> None:
    assert printable_lines("no such rung\ngputop: all gates passed") == (
        "no such rung\n  gputop: all gates passed"
    )


# Where it is written


def test_a_table_obeys_no_cell(capsys: pytest.CaptureFixture[str]) -> None:
    lines = table([Heading("device"), Heading("n", right=True)], [[f"H200{TITLE}", "1"], ["A", "2"]], 80)
    assert len({len(line) for line in lines[1:]}) == 1, "the columns are shifted"
    print_data(*lines, f"note: {WIPE}")
    assert capsys.readouterr().out.splitlines()[1:] == [
        r"H200\x1b]0;owned\x07  1",
        "A                     2",
        r"note: \x1b[2J",
    ]


def test_paint_is_ours_alone(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal(colour=True)
    print_data(terminal.paint(f"FAIL{WIPE}", "bad"), "\x1b[32mPASS\x1b[0m")
    print_data("a  " + terminal.paint("PASS", "good") + f"  {TITLE}")
    assert capsys.readouterr().out.splitlines() == [
        "\x1b[31mFAIL\\x1b[2J\x1b[0m",
        r"\x1b[32mPASS\x1b[0m",
        "a  \x1b[32mPASS\x1b[0m  \\x1b]0;owned\\x07",
    ]


def test_narration_obeys_nothing_that_a_worker_says(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    stream = Tty()
    narrator = Narrator(stream)
    narrator.progress(f"preparing {TITLE}")
    narrator.progress("\n")
    narrator.note(f"lost {WIPE}")
    assert TITLE not in stream.getvalue()
    assert WIPE not in stream.getvalue()
    assert r"preparing \x1b]0;owned\x07" in stream.getvalue()


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--backend", "cpu", "--rung", f"no{TITLE}"),
        ("replay", f"/none/{TITLE}"),
        ("replay", "\udcff\u202e"),
        ("run", "--workload", f"{TITLE}.toml"),
        ("run", "--remote", f"-{TITLE}"),
        ("run", f"--{TITLE}"),
        (TITLE,),
    ],
)
def test_an_error_obeys_nothing_that_it_repeats(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.startswith("gputop: ")
    assert all(line.isprintable() for line in said.splitlines())


def test_the_log_of_a_worker_obeys_nothing(tmp_path: Path) -> None:
    log = WorkerLog(tmp_path / "worker.log")
    log.add(f"error {TITLE}\tin {WIPE}")
    log.close()
    assert log.path is not None
    assert log.path.read_text() == "error \\x1b]0;owned\\x07 in \\x1b[2J\n"
    assert log.lines() == (r"error \x1b]0;owned\x07 in \x1b[2J",)


def test_files_keep_what_a_screen_does_not_show() -> None:
    rows = [replace(row, kernel=f"gemm{TITLE}") for row in ROWS]
    assert export.read_phase_csv(export.phase_csv(rows)) == tuple(rows)
    text = export.phase_json(rows)
    assert "\\u001b" in text
    assert "\\u0007" in text
    assert json.loads(text)["rows"][0]["kernel"] == f"gemm{TITLE}"
