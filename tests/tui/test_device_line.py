"""What disturbs the host stands in the lines about the device, at any width that holds it."""

from __future__ import annotations

import pytest

from gputop.results.records import DeviceFacts, Health
from gputop.tui.widgets.device_line import device_name, health_line

QUIET = Health(sm_clock_hz=2e9, host_cores=2, others_cores=0.05)
BUSY = Health(sm_clock_hz=2e9, host_cores=2, others_cores=1.5, throttled_s=3.5)


@pytest.mark.parametrize("width", [80, 200])
def test_others_and_a_quota_come_before_what_may_be_cut(width: int) -> None:
    line = health_line(BUSY, width).plain
    assert "others ! 150 % of 2 cores" in line
    assert "quota ! held back 3.50 s" in line
    assert len(line) <= width


def test_a_quiet_host_is_not_spoken_of() -> None:
    assert "others" not in health_line(QUIET, 200).plain
    assert "quota" not in health_line(QUIET, 200).plain


def test_the_device_is_named_with_its_quota() -> None:
    assert device_name(DeviceFacts("cpu", "A CPU", cpu_quota_cores=0.5)) == "A CPU, 0.5 cores by quota"
    gpu = DeviceFacts("cuda", "A GPU", index=1, cpu_quota_cores=4.0)
    assert device_name(gpu) == "A GPU [1], host: 4 cores by quota"
    assert device_name(DeviceFacts("cuda", "A GPU", index=1)) == "A GPU [1]"
