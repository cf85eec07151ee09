"""From the gates of what was measured to the exit code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gputop.util.errors import GateFailed

if TYPE_CHECKING:
    from gputop.results.records import Gate


def exit_code_of(gates: Iterable[Gate]) -> int:
    """Return 0 if every gate passed. Raise GateFailed with the reason otherwise."""
    failed = next((gate for gate in gates if not gate.ok), None)
    if failed is not None:
        raise GateFailed(f"Gate {failed.status}: {failed.where or 'not checked'}")
    return 0
