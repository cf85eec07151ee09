"""Long computations show signs of life while somebody listens."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gputop.backends.cpu import backend as cpu
from gputop.backends.cpu import ceilings, memory, prepared
from gputop.backends.cpu.prepared import CpuPrepared
from gputop.model import rng, weights
from gputop.model.workloads import parse_workload
from gputop.plan.plan_string import parse_word
from gputop.planner.resolver import Resolver, plan_dims
from gputop.util import heartbeat
from gputop.validation import gate, phase_check, reference

TINY = parse_workload("tiny")
CATALOG = Resolver.load()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that the pulse sees, to be moved by hand."""
    now = [100.0]
    monkeypatch.setattr(heartbeat, "monotonic", lambda: now[0])
    return now


def test_last_words_are_repeated_once_they_are_old(clock: list[float]) -> None:
    told: list[str] = []
    with heartbeat.on_heartbeat(told.append) as say:
        say("placing the weights")
        heartbeat.beat()
        clock[0] += heartbeat.EVERY_S
        heartbeat.beat()
        heartbeat.beat()
        assert told == ["placing the weights"] * 2
        clock[0] += heartbeat.EVERY_S / 2
        say("checking the answer")
        clock[0] += heartbeat.EVERY_S / 2
        heartbeat.beat()
        assert told[2:] == ["checking the answer"], "words that are new count too"


def test_without_a_listener_a_beat_is_heard_by_nobody(clock: list[float]) -> None:
    told: list[str] = []
    heartbeat.beat()
    with heartbeat.on_heartbeat(told.append):
        clock[0] += heartbeat.EVERY_S
        stranger = threading.Thread(target=heartbeat.beat)
        stranger.start()
        stranger.join()
        assert told == [], "another thread's beats are not this one's"
    clock[0] += heartbeat.EVERY_S
    heartbeat.beat()
    assert told == []


def on_tiny(word: str) -> CpuPrepared:
    plan = CATALOG.resolve(parse_word(word), TINY.dims, "cpu")
    backend = cpu.open_backend(TINY, None, lambda text: None)
    return backend.prepare(plan, CATALOG.steps(plan, plan_dims(TINY, plan)), lambda text: None)


def check_phases(word: str) -> Callable[[], object]:
    made = on_tiny(word)
    dims = plan_dims(TINY, made.plan)
    trace = made.trace(gate.trace_tokens(TINY, dims)[0], 0.0)
    steps = CATALOG.steps(made.plan, dims, keep_layers=True)
    return lambda: phase_check.check_phases(trace, steps, TINY, made.plan, dims)


TRANSPOSED = CATALOG.resolve(parse_word("cpu-transposed,fold=on"), TINY.dims, "cpu")
LAYERS = TINY.dims.layers


@pytest.mark.parametrize(
    ("work", "at_least"),
    [
        (lambda: rng.fill(0, [rng.Draw("x", 1.0, False, np.empty(3, np.float32))] * 5), 5),
        (lambda: weights.effective(weights.master(TINY), TRANSPOSED, TINY.dims), 5 * LAYERS),
        (lambda: memory.own_copy(weights.master(TINY)), len(weights.TENSORS)),
        (lambda: reference.float64_pass(TINY, rng.tokens(TINY, 0, 1)), LAYERS),
        (lambda: on_tiny("cpu-loops").run(rng.tokens(TINY, 0, 1), 0.0), 7 * LAYERS),
        (lambda: on_tiny("cpu-loops").trace(rng.tokens(TINY, 0, 1), 0.0), 7 * LAYERS),
        (lambda: on_tiny("cpu-loops").sample_pass(4), 4),
        (lambda: check_phases("cpu-blas")(), 7 * LAYERS),
        (lambda: ceilings._best_s(lambda: None, 3), 3),
    ],
    ids=["fill", "forms", "copy", "reference", "gated pass", "trace", "sample", "phase gate", "ceiling"],
)
def test_long_work_beats(work: Callable[[], object], at_least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "EVERY_S", 0.0)
    told: list[str] = []
    with heartbeat.on_heartbeat(told.append):
        work()
    assert len(told) >= at_least


def test_a_long_pass_beats_at_every_step_and_a_short_one_is_spared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "EVERY_S", 0.0)
    told: list[str] = []
    made = on_tiny("cpu-blas")
    launches = made.facts()
    with heartbeat.on_heartbeat(told.append):
        made.run(rng.tokens(TINY, 0, 1), 0.0)
        told.clear()
        made.sample_phases(1)
        made.sample_pass(3)
        assert len(told) == 3, "once a pass, between the stamps never"
        monkeypatch.setattr(prepared, "LONG_PASS_S", 0.0)
        made.run(rng.tokens(TINY, 0, 1), 0.0)
        told.clear()
        made.sample_phases(1)
        assert len(told) == len(made.steps)
        told.clear()
        made.sample_pass(3)
        assert len(told) == 3 * (1 + len(made.steps))
    assert made.facts() == launches, "a beat is no launch"


def test_blocks_of_a_long_sequence_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attention's references hold few scores at a time; here a block is a row or two."""
    long = replace(TINY, dims=replace(TINY.dims, seq=37, layers=1))
    ids = rng.tokens(long, 0, 3)
    whole = reference.float64_pass(long, ids)
    phase = CATALOG.phase("attention")
    for pruned in (False, True):
        dims = replace(long.dims, batch=3)
        plan = CATALOG.resolve(parse_word(f"cpu-blas,batch=3,prune={'on' if pruned else 'off'}"), dims, "cpu")
        task = next(t for t in CATALOG.pass_tasks(plan, dims, False) if t.site.phase == "attention")
        draw = np.random.default_rng(0).standard_normal
        queries = task.output.rows
        operands = {"q": draw((queries, 64)), "k": draw((111, 64)), "v": draw((111, 64))}
        at_once = phase.reference(operands, task, dims)
        monkeypatch.setattr("gputop.phases.attention.MOST_SCORES", 2 * 3 * 4 * 37)
        np.testing.assert_allclose(phase.reference(operands, task, dims), at_once, rtol=1e-12)
        monkeypatch.undo()
    monkeypatch.setattr(reference, "MOST_SCORES", 2 * 3 * 37)
    np.testing.assert_allclose(reference.float64_pass(long, ids), whole, rtol=1e-12)
