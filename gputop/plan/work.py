"""What a phase asks of any machine: counts, from which its floor follows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Work:
    """What one instance of a phase asks of any machine: FLOPs and compulsory bytes."""

    flops: float
    weight_bytes: float
    in_bytes: float
    out_bytes: float

    def __add__(self, other: Work) -> Work:
        return Work(
            self.flops + other.flops,
            self.weight_bytes + other.weight_bytes,
            self.in_bytes + other.in_bytes,
            self.out_bytes + other.out_bytes,
        )

    def times(self, count: int) -> Work:
        return Work(
            self.flops * count,
            self.weight_bytes * count,
            self.in_bytes * count,
            self.out_bytes * count,
        )


NOTHING = Work(0.0, 0.0, 0.0, 0.0)
