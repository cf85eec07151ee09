"""What doctor answers a question with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "missing", "broken"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One answer."""

    state: State
    detail: str
    fix: str = ""
    """The command that fixes it; empty if it is ok."""


class Absent(Exception):
    """What was looked for is not here: what is wrong, and the command that fixes it."""

    def __init__(self, detail: str, fix: str, state: State = "missing") -> None:
        super().__init__(detail)
        self.finding = Finding(state, detail, fix)
