"""The screen in a browser: the server answers on loopback, and a page of it runs the real program."""

from __future__ import annotations

import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from time import monotonic

import pytest

PATIENCE_S = 60.0
POLL_S = 0.1


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "gputop", "serve", "--port", str(port), "--", "replay", "h200"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        yield f"http://127.0.0.1:{port}"
        process.terminate()
        process.wait(PATIENCE_S)


def test_the_page_is_served_on_loopback(address: str) -> None:
    deadline = monotonic() + PATIENCE_S
    while True:
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                page = answer.read().decode("utf-8")
                break
        except (urllib.error.URLError, ConnectionError):
            assert monotonic() < deadline, "the server never answered"
            Event().wait(POLL_S)
    assert answer.status == 200
    assert "textual" in page.lower()


@pytest.mark.parametrize("port", ["0", "70000"])
def test_a_port_that_is_none_is_bad_input(port: str) -> None:
    command = [sys.executable, "-m", "gputop", "serve", "--port", port]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ended.returncode == 2
    assert "allowed: 1 to 65535" in ended.stderr
