"""The screen in a browser: the server answers on loopback, and a page of it runs the real program."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from threading import Event
from time import monotonic

import pytest

from tests.tui import chromium

PATIENCE_S = 60.0
POLL_S = 0.1


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("home")
    env = {**os.environ, **{f"XDG_{kind}_HOME": str(home / kind) for kind in ("CACHE", "STATE", "CONFIG")}}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "gputop", "serve", "--port", str(port), "--", "replay", "h200"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env
    ) as process:
        yield f"http://127.0.0.1:{port}"
        process.terminate()
        process.wait(PATIENCE_S)


def answered(address: str) -> str:
    """The server's page, as soon as it answers."""
    deadline = monotonic() + PATIENCE_S
    while True:
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                assert answer.status == 200
                page: str = answer.read().decode("utf-8")
                return page
        except (urllib.error.URLError, ConnectionError):
            assert monotonic() < deadline, "the server never answered"
            Event().wait(POLL_S)


def test_the_page_is_served_on_loopback(address: str) -> None:
    assert "textual" in answered(address).lower()


@pytest.mark.skipif(chromium.path() is None, reason="needs Chromium: apt-get install chromium")
async def test_a_browser_shows_the_screen_and_its_keys_reach_the_program(address: str) -> None:
    await asyncio.to_thread(answered, address)
    async with chromium.opened(address) as page:
        await page.until_shown("H200")
        await page.until_shown("1 phases")
        assert await page.evaluate("document.querySelector('.xterm-screen') !== null")
        await page.evaluate("document.querySelector('.xterm-helper-textarea').focus()")
        await page.press("2")
        await page.until_shown("FLOP/s")
        await page.press("4")
        await page.until_shown("warps an SM")
        assert page.errors == []


@pytest.mark.parametrize("port", ["0", "70000"])
def test_a_port_that_is_none_is_bad_input(port: str) -> None:
    command = [sys.executable, "-m", "gputop", "serve", "--port", port]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ended.returncode == 2
    assert "allowed: 1 to 65535" in ended.stderr
