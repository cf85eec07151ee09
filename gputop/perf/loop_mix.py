"""What a loop of machine code issues, by opcode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LoopMix:
    """The body of one loop: what a warp issues in one turn, both sides of a branch counted."""

    first: int
    last: int
    """Numbers of its first and last instruction in the kernel."""
    opcodes: tuple[tuple[str, int], ...]
    """(opcode without its modifiers, instructions), the most frequent first."""

    @property
    def instructions(self) -> int:
        return sum(count for _, count in self.opcodes)


def opcode_mix(opcodes: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Return how often each opcode stands, its modifiers left out: `LDG.E.128` counts as `LDG`."""
    found: Counter[str] = Counter()
    for opcode, count in opcodes.items():
        found[opcode.split(".")[0]] += count
    return tuple(sorted(found.items(), key=lambda item: (-item[1], item[0])))
