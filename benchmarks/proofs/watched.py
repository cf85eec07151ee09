"""The same plan measured under a screen that stands still, and under one that is resized and scrolled."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import cycle
from time import perf_counter

from benchmarks.proofs.evidence import Evidence, Measured
from benchmarks.proofs.setting import Setting
from benchmarks.started import GATE, started
from tests.tui.terminal import Program

STILL, BUSY = LABELS = ("still", "busy")
TURNS = 4
"""Of each, one after the other, so that a clock that drifts is in both."""
TURN_S = 2.5
SIZES = ((140, 45), (200, 60), (160, 30), (180, 50))
"""Wide enough to show the number of the window."""
DOWN, UP = "\x1b[B", "\x1b[A"
KEYS = (DOWN, DOWN, DOWN, UP, UP, UP)
PAUSE_S = 0.02
UNITS_S = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
WINDOW = re.compile(r"window (\d+)")


def watched(setting: Setting, kept: Evidence) -> Iterator[Measured]:
    """Yield what the headline says of each window, to its three digits; nothing if there is enough of it."""
    if all(kept.labelled(label) for label in LABELS):
        return
    plan = setting.subjects.plan
    words = ("--backend", setting.backend, "--rung", plan, "--workload", setting.workload.name)
    with started(words, {}, *SIZES[0]) as program:
        program.until_shown(GATE)
        for label in LABELS * TURNS:
            for device_s in _turn(program, plan, busy=label == BUSY):
                yield Measured(label, device_s)


def _turn(program: Program, plan: str, *, busy: bool) -> Iterator[float]:
    """Yield the time of each window that is new on the screen, its first left out: it began before."""
    ends, last, seen = perf_counter() + TURN_S, "", 0
    for size, key in zip(cycle(SIZES), cycle(KEYS), strict=False):
        if busy:
            program.resize(*size)
        program.answer_s(key if busy else "", PAUSE_S)
        number, device_s = shown_window(program.screen.text, plan)
        if device_s is not None and number != last:
            last, seen = number, seen + 1
            if seen > 2:
                yield device_s
        if perf_counter() >= ends:
            return


def shown_window(text: str, plan: str) -> tuple[str, float | None]:
    """Return the number of the window on the screen and its time; None while another one is waited for."""
    number = WINDOW.search(text)
    time = re.search(rf"^ ?{re.escape(plan)}  ([\d.]+) ({'|'.join(UNITS_S)})\b", text, re.MULTILINE)
    if number is None or time is None:
        return "", None
    return number[1], float(time[1]) * UNITS_S[time[2]]
