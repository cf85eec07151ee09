"""What is said of the host of a measurement, in the same words on the screen, in tables and in files."""

from __future__ import annotations

from gputop.results.records import DeviceFacts, Health
from gputop.util.units import percent, seconds

NOTABLE_SHARE = 0.05
"""Share of the cores that others use from which on a window says so: below lies what any system does."""


def quota_words(facts: DeviceFacts) -> str:
    """Return `0.5 cores by quota`, of a GPU `host: 0.5 cores by quota`; nothing without a quota."""
    quota = facts.cpu_quota_cores
    if quota is None:
        return ""
    words = f"{cores_words(quota)} by quota"
    return words if facts.backend == "cpu" else f"host: {words}"


def others_words(health: Health) -> str:
    """Return `others use 150 % of your 2 cores`; nothing if they use little, or it is not known."""
    others, host_cores = health.others_cores, health.host_cores
    if others is None or host_cores is None or others < NOTABLE_SHARE * host_cores:
        return ""
    return f"others use {percent(others)} of your {cores_words(host_cores)}"


def throttled_words(health: Health) -> str:
    """Return `a CPU quota held it back for 3.50 s`; nothing if none did."""
    return f"a CPU quota held it back for {seconds(health.throttled_s)}" if health.throttled_s else ""


def cores_words(count: float) -> str:
    """Return `0.5 cores`, `1 core`."""
    return f"{count:.3g} core{'' if count == 1 else 's'}"
