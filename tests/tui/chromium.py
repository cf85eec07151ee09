"""A headless Chromium under control: what a page receives over its web socket, and keys pressed in it."""

from __future__ import annotations

import asyncio
import base64
import itertools
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from tests.tui.terminal import Screen

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_S = 60.0
HIDDEN = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-extensions", "--remote-debugging-port=0",
    "--window-size=1400,900",
    # The page asks a host for a font: none but loopback is there.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)  # fmt: skip


def path() -> str | None:
    """Return where Chromium is, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """One page, driven over the debugging protocol."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._changed = asyncio.Event()
        self.screen = Screen(300, 100)
        """What a terminal would show of all that the page received."""
        self.errors: list[str] = []
        """Exceptions of the page's own scripts."""
        self._reader = asyncio.create_task(self._read())

    async def call(self, method: str, **params: Any) -> Any:
        """Return the result of a command of the debugging protocol."""
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": params})
        return await asyncio.wait_for(answer, PATIENCE_S)

    async def evaluate(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        found = await self.call("Runtime.evaluate", expression=script, returnByValue=True)
        return found["result"].get("value")

    async def press(self, key: str) -> None:
        """Press a key that types itself, where the page has its focus."""
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if kind == "keyDown" else {}
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, **text)

    async def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something holds of what was received."""
        async with asyncio.timeout(PATIENCE_S):
            while not holds():
                self._changed.clear()
                await self._changed.wait()
        assert holds(), what

    async def until_shown(self, text: str) -> None:
        await self.until(lambda: text in self.screen.text, text)

    async def close(self) -> None:
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)

    async def _read(self) -> None:
        async for message in self._socket:
            event = message.json()
            if "id" in event:
                self._answers.pop(event["id"]).set_result(event.get("result"))
            elif event["method"] == "Network.webSocketFrameReceived":
                self._take(event["params"]["response"])
            elif event["method"] == "Runtime.exceptionThrown":
                self.errors.append(str(event["params"]["exceptionDetails"]))
            self._changed.set()

    def _take(self, frame: dict[str, Any]) -> None:
        """Feed a binary frame to the screen; a text frame is for the page itself."""
        if frame["opcode"] == 2:
            self.screen.feed(base64.b64decode(frame["payloadData"]).decode("utf-8", "replace"))


@asynccontextmanager
async def opened(address: str) -> AsyncIterator[Page]:
    """A page at an address in a Chromium of its own, which ends with it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = await asyncio.create_subprocess_exec(
            path() or "chromium", *HIDDEN, f"--user-data-dir={profile}", "about:blank",
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            port = await asyncio.wait_for(_port(browser), PATIENCE_S)
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                    pages = [each for each in await answer.json() if each["type"] == "page"]
                async with session.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                    page = Page(socket)
                    for domain in ("Network", "Runtime", "Page"):
                        await page.call(f"{domain}.enable")
                    await page.call("Page.navigate", url=address)
                    yield page
                    await page.close()
        finally:
            browser.kill()
            await browser.wait()


async def _port(browser: asyncio.subprocess.Process) -> int:
    """Return the port that Chromium chose for its debugging protocol, which it names on stderr."""
    assert browser.stderr is not None
    async for line in browser.stderr:
        if b"DevTools listening on" in line:
            return int(line.split(b":")[2].split(b"/")[0])
    raise AssertionError("Chromium ended before it listened")
