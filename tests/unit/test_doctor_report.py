"""The report of doctor: what it must hold, and what it must not."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from gputop import __version__
from gputop.cli import doctor_checks, main
from gputop.cli.doctor_checks import PROBES
from gputop.cli.doctor_findings import Finding
from gputop.cli.doctor_report import report
from gputop.ipc.log import default_log_path
from gputop.util.private_text import PrivateText

USER, HOST, DOMAIN = "zaphodb", "heartofgold", "heartofgold.betelgeuse.example"
TOKEN = "hf_42deadbeef42"
UUID = "GPU-1f2e3d4c-5b6a-7988-1a2b-3c4d5e6f7a8b"
SECRETS = (USER, HOST, TOKEN, UUID, "betelgeuse", "improbability", "other-user", "10.11.12.13", "trillian")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Home of a user, on a host and in an environment that are full of secrets."""
    home = tmp_path / USER
    home.mkdir()
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "LOGNAME", "SUDO_USER"):
        monkeypatch.delenv(name, raising=False)
    settings = {"HOME": str(home), "USER": USER, "HF_TOKEN": TOKEN, "CUDA_VISIBLE_DEVICES": UUID}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(socket, "gethostname", lambda: DOMAIN)
    real = os.uname()
    named = SimpleNamespace(**{n: getattr(real, n) for n in ("sysname", "release", "version", "machine")})
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(**vars(named), nodename=HOST))
    return home


def with_log(home: Path) -> Path:
    """A worker's log in which every secret stands."""
    log = default_log_path()
    assert log is not None
    assert log.is_relative_to(home)
    log.parent.mkdir(parents=True)
    lines = (
        f"starting: {home}/src/.venv/bin/python -P -m gputop.ipc.worker",
        "starting: ssh -o BatchMode=yes -- trillian@10.11.12.13 gputop worker",
        f"opened {UUID} for {USER} on {HOST}, then {DOMAIN}",
        f"token {TOKEN} refused, asked by user_{USER}",
        "File /home/other-user/x.py, line 3; File /mnt/improbability/drive/rng.py, line 77",
        "cudaErrorIllegalAddress in gemm_warpgroup",
    )
    log.write_text("\n".join(lines) + "\n")
    return log


def lines_without_secrets(text: str) -> list[str]:
    assert [secret for secret in SECRETS if secret.lower() in text.lower()] == []
    return text.splitlines()


def test_a_report_holds_what_a_bug_report_needs_and_no_secret(home: Path) -> None:
    by_name = {probe.name: probe for probe in PROBES}
    findings = [
        (by_name["python"], Finding("ok", f"3.11.7 at {home}/src/.venv/bin/python")),
        (by_name["devices"], Finding("ok", f"0: NVIDIA H200, 141 GB, {UUID}")),
        (by_name["driver"], Finding("ok", "580.159.04, up to CUDA 13.0")),
        (by_name["cupy"], Finding("missing", "not installed", "make run EXTRAS=cuda13")),
    ]
    lines = lines_without_secrets(report(findings, "cpu works here", with_log(home)))
    text = "\n".join(lines)
    for needed in (
        f"gputop {__version__}",
        "NVIDIA H200, 141 GB",
        "580.159.04, up to CUDA 13.0",
        "fix: make run EXTRAS=cuda13",
        "CUDA_VISIBLE_DEVICES",
        "cudaErrorIllegalAddress in gemm_warpgroup",
        "line 77",
        "~/src/.venv/bin/python",
        "numpy ",
    ):
        assert needed in text


def test_doctor_writes_the_report_beside_its_table(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_log(home)
    monkeypatch.setattr(doctor_checks, "PROBES", PROBES[:1])
    monkeypatch.chdir(tmp_path)
    assert main(["doctor", "--report"]) == 0
    out, err = capsys.readouterr()
    assert "backends: " in out
    assert "gputop-report.txt" in err
    lines = lines_without_secrets((tmp_path / "gputop-report.txt").read_text())
    assert any(line.startswith("ok       python: ") for line in lines)


def test_a_report_that_can_not_be_written_is_said_before_anything_is_asked(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--report", str(home / "nowhere" / "report.txt")]) == 2
    assert "no folder" in capsys.readouterr().err


def test_without_a_log_the_report_says_so(home: Path) -> None:
    assert "no log is kept" in report([], "cpu works here", None)


def test_what_is_nobodys_stays(home: Path) -> None:
    text = "nvidia-cublas 13.10.0.20, sm_90, /usr/lib/libcuda.so.1, driver 580.159.04, 1.2.3.4"
    assert PrivateText.of_this_process().removed_from(text) == text
