"""What `--require` makes of a measurement."""

from __future__ import annotations

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.cli import main
from gputop.cli.requirements import require_share, require_verdict, share_requirement
from gputop.plan.types import Verdict
from gputop.results.records import SCHEMA_PHASES, Comparison, Delta, Row
from gputop.util.errors import GputopError, RequirementFailed, RequirementUnresolved


def compared(verdict: Verdict, ratio: float = 1.0, half: float = 0.01, floor: float = 0.003) -> Comparison:
    lo, hi = ratio * (1 - half), ratio * (1 + half)
    delta = Delta("device", 1.0, 1.0 / ratio, None, None, None, ratio, lo, hi, 20, floor, verdict)
    return Comparison("a", "b", 1, (delta,))


@pytest.mark.parametrize(
    ("requirement", "verdict", "ratio", "raised"),
    [
        ("faster", "FASTER", 1.2, None),
        ("faster", "SAME", 1.0, RequirementFailed),
        ("faster", "SLOWER", 0.8, RequirementFailed),
        ("faster", "UNRESOLVED", 1.01, RequirementUnresolved),
        ("not-slower", "FASTER", 1.2, None),
        ("not-slower", "SAME", 1.0, None),
        ("not-slower", "SLOWER", 0.8, RequirementFailed),
        ("not-slower", "UNRESOLVED", 1.0, RequirementUnresolved),
        ("not-slower", "UNRESOLVED", 1.02, None),
    ],
)
def test_a_verdict_holds_fails_or_stays_open(
    requirement: str, verdict: Verdict, ratio: float, raised: type[GputopError] | None
) -> None:
    if raised is None:
        require_verdict(requirement, compared(verdict, ratio))  # type: ignore[arg-type]
        return
    with pytest.raises(raised, match=f"--require {requirement}"):
        require_verdict(requirement, compared(verdict, ratio))  # type: ignore[arg-type]


@given(st.floats(0.5, 2.0), st.floats(0.0, 0.2), st.floats(0.001, 0.05))
def test_an_undecided_loss_beyond_the_copies_never_counts_as_not_slower(
    ratio: float, half: float, floor: float
) -> None:
    comparison = compared("UNRESOLVED", ratio, half, floor)
    lo = comparison.deltas[0].ratio_lo
    assert lo is not None
    if log(lo) <= -floor:
        with pytest.raises(RequirementUnresolved):
            require_verdict("not-slower", comparison)
    else:
        require_verdict("not-slower", comparison)


def device_row(time_s: float | None, floor_s: float | None) -> Row:
    return Row(
        SCHEMA_PHASES, "2026-01-02T03:04:05Z", 1, 20, "cpu", "CPU", None, "tiny", 1, 16, "r", "r", "device",
        time_s=time_s, floor_s=floor_s,
    )  # fmt: skip


def test_a_share_of_the_floor_holds_fails_or_is_unknown() -> None:
    wanted = share_requirement("floor=0.5")
    require_share(wanted, [device_row(1.0, 0.6)])
    with pytest.raises(RequirementFailed, match="does not hold"):
        require_share(wanted, [device_row(1.0, 0.4)])
    for row in (device_row(None, 0.4), device_row(1.0, None)):
        with pytest.raises(RequirementUnresolved, match="not decided"):
            require_share(wanted, [row])


@pytest.mark.parametrize("text", ["floor", "floor=2", "floor=0", "roof=0.5", "reach=x"])
def test_a_requirement_that_is_none_is_bad_input(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--workload", "tiny", "--require", text]) == 2
    assert "allowed: floor=SHARE or reach=SHARE" in capsys.readouterr().err


def test_aa_has_nothing_to_require(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "cpu-blas", "--aa", "--require", "faster"]) == 2
    assert "--aa has one plan only" in capsys.readouterr().err
