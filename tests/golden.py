"""Texts that are compared with a file, and the switch that writes the file: `pytest --update-goldens`."""

from __future__ import annotations

from pathlib import Path

import pytest


def assert_golden(text: str, file: Path, config: pytest.Config) -> None:
    """Compare a text with a file byte for byte; with --update-goldens write the file instead."""
    if config.getoption("--update-goldens"):
        file.write_bytes(text.encode())
    assert text.encode() == file.read_bytes(), f"{file.name} differs: renew it with --update-goldens"
