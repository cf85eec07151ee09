"""Ending on a signal: real processes that unwind, or hang while they do."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

BEGIN = """
import signal, sys, threading
from gputop.util import signals
signals.PATIENCE_S = 0.2
never = threading.Lock()
never.acquire()
def wait():
    print("waiting", flush=True)
    never.acquire()
"""


def run(body: str, *numbers: int) -> tuple[int, str]:
    """Exit code and output of a process that gets these signals once it waits."""
    command = [sys.executable, "-c", BEGIN + body]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        for number in numbers:
            process.send_signal(number)
        rest = process.stdout.read()
    return process.returncode, rest


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_unwinds(number: int) -> None:
    body = """
try:
    with signals.raise_on_signal():
        try:
            wait()
        finally:
            print("unwound", flush=True)
except signals.Terminated as ended:
    sys.exit(ended.exit_code)
"""
    assert run(body, number) == (128 + number, "unwound\n")


def test_unwinding_that_hangs_is_cut_short_after_the_last_acts() -> None:
    body = """
signals.last_acts.append(lambda: 1 / 0)
signals.last_acts.append(lambda: print("last act", flush=True))
with signals.raise_on_signal():
    try:
        wait()
    finally:
        never.acquire()
"""
    assert run(body, signal.SIGTERM) == (143, "last act\n")


def test_a_last_act_that_hangs_is_ended_by_the_kernel() -> None:
    body = """
signals.LAST_ACTS_S = 0.2
signals.last_acts.append(never.acquire)
with signals.raise_on_signal():
    try:
        wait()
    finally:
        never.acquire()
"""
    assert run(body, signal.SIGTERM) == (-signal.SIGALRM, "")


def test_nobody_else_s_process_is_ended() -> None:
    body = """
signals.end_within(0.05, 3)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
try:
    wait()
finally:
    print(signal.getitimer(signal.ITIMER_REAL))
"""
    assert run(body, signal.SIGTERM) == (0, "(0.0, 0.0)\n")
