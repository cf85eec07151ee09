"""A program on a pseudo-terminal, and enough of a terminal to read what it shows."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence

CONTROL = re.compile(
    r"\x1b\[([?<>=]?)([0-9;:]*)[ $]?([@-~])|\x1b[P\]_^].*?(?:\x1b\\|\x07)|\x1b[()][0-9A-B]|\x1b[=>78cMDEHNO]"
)
UNFINISHED = re.compile(r"\x1b(\[[?<>=]?[0-9;:]*[ $]?|[P\]_^][^\x07]*|[()]?)?$")
PATIENCE_S = 60.0
ANSWER_S = 1.0
"""How long after a key its answer may begin."""


class Screen:
    """Cells and private modes, fed with output. Colours are not kept."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.modes: set[str] = set()
        """Private modes that are on: `1049` is the alternate screen, `1000` to `1006` the mouse."""
        self._clear()
        self._x = self._y = 0
        self._rest = ""

    @property
    def text(self) -> str:
        return "\n".join("".join(row).rstrip() for row in self._cells)

    def feed(self, text: str) -> None:
        text, at = self._rest + text, 0
        self._rest = ""
        while at < len(text):
            if text[at] != "\x1b":
                self._put(text[at])
                at += 1
            elif found := CONTROL.match(text, at):
                self._control(*found.groups())
                at = found.end()
            elif UNFINISHED.match(text, at):
                self._rest = text[at:]
                return
            else:
                at += 1

    def _clear(self) -> None:
        self._cells = [[" "] * self.columns for _ in range(self.rows)]

    def _put(self, char: str) -> None:
        if char == "\r":
            self._x = 0
        elif char == "\n":
            self._y = min(self._y + 1, self.rows - 1)
        elif char >= " " and self._x < self.columns:
            self._cells[self._y][self._x] = char
            self._x += 1

    def _control(self, mark: str | None, numbers: str | None, final: str | None) -> None:
        if mark == "?" and final in ("h", "l"):
            modes = (numbers or "").split(";")
            (self.modes.update if final == "h" else self.modes.difference_update)(modes)
        elif not mark and final == "H":
            row, _, column = (numbers or "").partition(";")
            self._y = min(int(row or 1), self.rows) - 1
            self._x = min(int(column or 1), self.columns) - 1
        elif not mark and final == "J":
            self._clear()


class Program:
    """Runs on a terminal of its own, whose settings can be looked at afterwards."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        *,
        columns: int = 80,
        rows: int = 24,
        controlling: bool = False,
        ignored: Sequence[int] = (),
    ) -> None:
        """`controlling`: it leads a session on this terminal, as the first program of a window does;
        `ignored`: signals that it is told to ignore from its start."""
        self._ours, self._theirs = pty.openpty()
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._gone = False
        self.before = termios.tcgetattr(self._theirs)
        self.screen = Screen(columns, rows)
        self.output = ""
        """All that it wrote so far, control sequences included."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.process = subprocess.Popen(
            command,
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            env={**os.environ, "TERM": "xterm-256color", **env},
            start_new_session=True,
            preexec_fn=lambda: _begin(controlling, ignored),
        )

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size, as a window that is dragged does; all of it is to be drawn anew."""
        self.screen = Screen(columns, rows)
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process.send_signal(signal.SIGWINCH)

    def answer_s(self, keys: str, quiet_s: float) -> float | None:
        """Press keys; return how long until it had written all that it answers, None if it wrote nothing.

        The answer is whole after `quiet_s` without a byte; what does not begin within a second is none.
        """
        begun = time.perf_counter()
        self.press(keys)
        answered = None
        while self._read(ANSWER_S if answered is None else quiet_s):
            answered = time.perf_counter() - begun
        return answered

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Read until the condition holds."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, f"never came: {what}\n{self.screen.text}"
            self._read()

    def until_shown(self, words: str) -> None:
        self.until(lambda: words in self.screen.text, f"{words!r} on the screen")

    def exit_code(self) -> int:
        """Waits for its end, reading what it still says."""
        self.until(lambda: self.process.poll() is not None, "its end")
        while self._read():
            continue
        return self.process.returncode

    @property
    def settings(self) -> list[object]:
        """The terminal's settings as they stand."""
        return termios.tcgetattr(self._theirs)

    @property
    def threads(self) -> int:
        """How many threads it has."""
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    @property
    def state(self) -> str:
        """`T` is stopped, `Z` ended; see proc(5)."""
        with open(f"/proc/{self.process.pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0]

    def take_no_output(self) -> None:
        """As after ^S: whatever is written waits."""
        termios.tcflow(self._theirs, termios.TCOOFF)

    def hang_up(self) -> None:
        """The terminal goes, the program stays."""
        for end in (self._ours, self._theirs):
            os.close(end)
        self._gone = True

    def close(self) -> None:
        """Harmless after its end."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if not self._gone:
            self.hang_up()

    def _read(self, patience_s: float = 0.05) -> bool:
        ready, _, _ = select.select([self._ours], [], [], patience_s)
        if ready:
            text = self._decoder.decode(os.read(self._ours, 65536))
            self.output += text
            self.screen.feed(text)
        return bool(ready)


def _begin(controlling: bool, ignored: Sequence[int]) -> None:
    if controlling:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


def children(pid: int) -> dict[int, str]:
    """Process id -> command line of a process's living children."""
    found = {}
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat") as stat, open(f"/proc/{name}/cmdline") as line:
                state, parent = stat.read().rpartition(")")[2].split()[:2]
                if name.isdigit() and int(parent) == pid and state != "Z":
                    found[int(name)] = line.read().replace("\0", " ")
        except (OSError, ValueError):
            # Ended meanwhile, or no process.
            continue
    return found
