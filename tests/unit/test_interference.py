"""What came or went on the device while a window was sampled is said of the window and of its rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from gputop.model.workloads import parse_workload
from gputop.plan.types import PlanRequest
from gputop.results.records import Health
from gputop.session import interference
from gputop.session.session import Session

QUIET = Health(sm_clock_hz=1.0e9, power_w=100.0, throttle=(), others=())
BUSY = Health(
    sm_clock_hz=1.5e9, power_w=600.0, throttle=("power cap",), others=("pid 4711 python3, 3.0 GiB",)
)
BLAS = PlanRequest("cpu-blas")


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    opened = Session.open("cpu", parse_workload("tiny"))
    yield opened
    opened.close()


def of_device(health: Health) -> Health:
    """Without what was read of the host, which others use too."""
    return replace(health, host_cores=None, others_cores=None, throttled_s=None)


@pytest.mark.parametrize(
    ("before", "after", "when"),
    [(QUIET, BUSY, " (came while sampling)"), (BUSY, QUIET, " (gone by the end)")],
)
def test_what_was_there_at_one_end_of_a_window_is_told_of_it(
    monkeypatch: pytest.MonkeyPatch, session: Session, before: Health, after: Health, when: str
) -> None:
    told = iter((before, after))
    monkeypatch.setattr(session._bench.backend, "health", lambda: next(told))
    window = session.measure(BLAS, seconds=0.02)
    assert of_device(window.health) == Health(
        after.sm_clock_hz, None, after.power_w, None, BUSY.throttle, BUSY.others
    ), "clock and power of the end"
    assert f"throttled: power cap{when}" in window.notes
    assert any(note.endswith(f"pid 4711 python3, 3.0 GiB{when}") for note in window.notes)
    lane = window.lane("current")
    assert lane is not None
    assert {row.throttle for row in lane.rows} == {"power cap"}
    statuses = {row.phase: row.status or "" for row in lane.rows}
    assert "shared with 1 other process" in statuses["device"]
    assert "shared with 1 other process" in statuses["wall"]


def test_nothing_to_tell_of_a_quiet_device_or_an_unknown_one(
    monkeypatch: pytest.MonkeyPatch, session: Session
) -> None:
    for health in (QUIET, Health()):
        monkeypatch.setattr(session._bench.backend, "health", lambda health=health: health)
        window = session.measure(BLAS, seconds=0.02)
        assert of_device(window.health) == health
        assert not [note for note in window.notes if "throttled" in note or "shared" in note]
        lane = window.lane("current")
        assert lane is not None
        assert not [row for row in lane.rows if "shared" in (row.status or "")]


def test_a_process_whose_memory_grew_is_one_process() -> None:
    later = Health(others=("pid 4711 python3, 9.0 GiB",), throttle=("power cap",))
    both = interference.joined(BUSY, later)
    assert both.others == later.others
    assert interference.disturbed(both) == "shared with 1 other process"
    assert interference.notes(BUSY, later) == (
        "throttled: power cap",
        "the device was shared, and times hold what others ran: pid 4711 python3, 9.0 GiB",
    )


def test_one_reading_is_enough_and_none_is_unknown() -> None:
    assert interference.joined(Health(), BUSY) == interference.joined(BUSY, BUSY)
    assert interference.joined(BUSY, Health()).throttle == ("power cap",)
    assert interference.joined(Health(), Health()) == Health()
    assert interference.notes(Health(), BUSY)[0] == "throttled: power cap"
