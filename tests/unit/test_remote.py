"""`--remote` through OpenSSH's client and a real SSH server on loopback: what works, what can be missing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gputop.ipc.protocol import PROTOCOL_VERSION
from gputop.ipc.worker_client import WorkerClient
from gputop.model.workloads import parse_workload
from gputop.plan.types import PlanRequest
from gputop.util.errors import Unavailable, WorkerLost

asyncssh = pytest.importorskip("asyncssh")
SSH = shutil.which("ssh")
pytestmark = pytest.mark.skipif(SSH is None, reason="needs OpenSSH's client")

ROOT = Path(__file__).resolve().parents[2]
LOOPBACK = "127.0.0.1"
STRANGER = '{"type":"hello","protocol":%d,"version":"9.9.9","pid":1,"host":"gpu-server"}'
GPUTOPS = {
    "trillian": f'echo "You are about to use a supercomputer."; exec {sys.executable} -m gputop "$@"',
    "arthur": None,
    "marvin": f"echo '{STRANGER % (PROTOCOL_VERSION + 1)}'; exec cat >/dev/null",
    "zaphod": "echo 'segmentation fault' >&2; exit 9",
}
"""User -> what `gputop` is in that account; None: there is none."""


class _Accounts(asyncssh.SSHServer):  # type: ignore[name-defined,misc]
    """Lets in whoever has the key, but for `ford`, whose account has no key at all."""

    def begin_auth(self, username: str) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: Any) -> bool:
        return username in GPUTOPS


class Server:
    """An SSH server in a thread, whose accounts run commands as sshd does: by the shell, in a home."""

    def __init__(self, home: Path, host_key: Any) -> None:
        self._home = home
        self._host_key = host_key
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.port = self._done(self._listen())

    def _done(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=30)

    async def _listen(self) -> int:
        self._acceptor = await asyncssh.create_server(
            _Accounts,
            LOOPBACK,
            0,
            server_host_keys=[self._host_key],
            process_factory=self._run,
            encoding=None,
        )
        return int(self._acceptor.get_port())

    async def _run(self, process: Any) -> None:
        env = dict(os.environ, PATH=f"{self._home / process.get_extra_info('username')}:/usr/bin:/bin")
        env |= {"PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(self._home)}
        child = subprocess.Popen(
            ["/bin/sh", "-c", process.command], env=env, cwd=self._home, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        await process.redirect(child.stdin, child.stdout, child.stderr)
        code = await asyncio.get_running_loop().run_in_executor(None, child.wait)
        if process.channel.get_connection() is None:
            # Whoever asked has left, and nothing can be handed over any more.
            return
        handed_over = asyncio.gather(process.stdout.drain(), process.stderr.drain())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(handed_over, 1)
        process.exit(code)

    def close(self) -> None:
        self._done(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)

    async def _end(self) -> None:
        self._acceptor.close()
        await self._acceptor.wait_closed()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder whose `bin/ssh` is OpenSSH with a configuration of its own; hosts are `USER@here` and more."""
    home = tmp_path_factory.mktemp("remote")
    for user, body in GPUTOPS.items():
        (home / user).mkdir()
        if body is not None:
            script = home / user / "gputop"
            script.write_text(f"#!/bin/sh\n{body}\n")
            script.chmod(0o755)
    key, host_key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    key.write_private_key(str(home / "key"))
    (home / "key").chmod(0o600)
    running = Server(home, host_key)
    public = host_key.export_public_key().decode().strip()
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode().strip()
    (home / "known").write_text(f"here {public}\nchanged {other}\n")
    with socket.socket() as nobody:
        nobody.bind((LOOPBACK, 0))
        closed = nobody.getsockname()[1]
    (home / "config").write_text(
        f"Host here\n HostName {LOOPBACK}\n Port {running.port}\n HostKeyAlias here\n"
        f"Host changed\n HostName {LOOPBACK}\n Port {running.port}\n HostKeyAlias changed\n"
        f"Host closed\n HostName {LOOPBACK}\n Port {closed}\n"
        "Host nowhere\n HostName nowhere.invalid\n"
        f"Host *\n IdentityFile {home / 'key'}\n IdentitiesOnly yes\n UserKnownHostsFile {home / 'known'}\n"
        " StrictHostKeyChecking yes\n"
    )
    (home / "bin").mkdir()
    wrapper = home / "bin" / "ssh"
    wrapper.write_text(f'#!/bin/sh\nexec {SSH} -F {home / "config"} "$@"\n')
    wrapper.chmod(0o755)
    yield home / "bin"
    running.close()


@pytest.fixture(autouse=True)
def own_ssh(server: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{server}{os.pathsep}{os.environ['PATH']}")


def client(host: str, folder: Path) -> WorkerClient:
    return WorkerClient(remote=host, log_path=folder / "worker.log")


def test_a_worker_elsewhere_measures_as_one_here_does_whatever_its_shell_says_first(tmp_path: Path) -> None:
    with client("trillian@here", tmp_path) as remote:
        opened = remote.open("cpu", parse_workload("tiny"))
        assert opened.device.backend == "cpu"
        assert any("supercomputer" in line for line in remote.log.lines())
        window = remote.measure(PlanRequest("cpu-blas"), seconds=0.2)
        assert window.lanes[0].gate.ok
        assert window.lanes[0].device_s


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("arthur@here", r"arthur@here has no gputop on the PATH.*pip install gputop-roofline"),
        ("marvin@here", r"The worker on gpu-server is gputop 9\.9\.9.*install one version on both sides"),
        ("ford@here", r"ford@here let nobody in.*ssh-copy-id ford@here"),
        ("trillian@closed", r"trillian@closed refuses ssh: start its ssh server"),
        ("trillian@nowhere", r"There is no host called trillian@nowhere"),
        ("trillian@changed", r"ssh does not trust the key of trillian@changed"),
    ],
)
def test_each_thing_that_can_be_missing_has_its_sentence(host: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=said):
        client(host, tmp_path).start()


def test_a_gputop_that_fails_there_is_told_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(WorkerLost, match=r"died during start.*segmentation fault"):
        client("zaphod@here", tmp_path).start()


def test_without_an_ssh_here_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="ssh is not installed here"):
        client("trillian@here", tmp_path).start()
