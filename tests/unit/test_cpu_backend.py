"""The cpu backend at tiny: right in every form, its memory its own, its peaks measured and kept."""

from __future__ import annotations

import gc
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gputop.backends.cpu import backend as cpu
from gputop.backends.cpu import machine
from gputop.backends.cpu import prepared as passes
from gputop.backends.cpu.backend import CpuBackend
from gputop.backends.cpu.kernels import TABLE
from gputop.backends.cpu.prepared import CpuPrepared
from gputop.model import weights
from gputop.model.rng import tokens
from gputop.model.workloads import LEAST, parse_workload
from gputop.plan.plan_string import parse_word
from gputop.plan.types import Dims, Plan, Workload
from gputop.planner.resolver import Resolver, plan_dims
from gputop.session.prepared_plans import PreparedLanes
from gputop.util import cgroups, host_cpu
from gputop.util.aligned_array import ALIGN_BYTES, aligned
from gputop.util.errors import UsageError
from gputop.validation import gate, phase_check

TINY = parse_workload("tiny")
CATALOG = Resolver.load()
RUNGS = [rung.id for rung in CATALOG.rungs_of("cpu")]


def silent(text: str) -> None:
    """Narrates to nobody."""


@pytest.fixture(scope="module")
def backend() -> Iterator[CpuBackend]:
    opened = cpu.open_backend(TINY, None, silent)
    yield opened
    opened.close()


def resolve(word: str, workload: Workload = TINY) -> Plan:
    return CATALOG.resolve(parse_word(word), workload.dims, "cpu")


def prepare(backend: CpuBackend, word: str) -> CpuPrepared:
    plan = resolve(word, backend.workload)
    return backend.prepare(plan, CATALOG.steps(plan, plan_dims(backend.workload, plan)), silent)


def check_phases(backend: CpuBackend, prepared: CpuPrepared, poison: float) -> dict[str, bool]:
    plan, workload = prepared.plan, backend.workload
    dims = plan_dims(workload, plan)
    trace = prepared.trace(gate.trace_tokens(workload, dims)[0], poison)
    steps = CATALOG.steps(plan, dims, keep_layers=True)
    return {check.site: check.ok for check in phase_check.check_phases(trace, steps, workload, plan, dims)}


@pytest.mark.parametrize(
    "word", [*RUNGS, "cpu-loops,prune=on,fold=on,batch=3", "cpu-pruned,layout=transposed"]
)
def test_every_phase_is_right(backend: CpuBackend, word: str) -> None:
    prepared = prepare(backend, word)
    outcome = check_phases(backend, prepared, np.nan)
    assert outcome
    assert all(outcome.values()), outcome


@settings(max_examples=30)
@given(
    heads=st.integers(1, 3),
    d_head=st.integers(1, 5),
    layers=st.integers(1, 3),
    d_ff=st.integers(1, 9),
    seq=st.integers(1, 6),
    vocab=st.integers(LEAST["vocab"][0], 9),
    word=st.sampled_from(
        [
            f"{rung},batch={batch},fused_qkv={fused}"
            for rung in RUNGS
            for batch in (1, 2)
            for fused in ("on", "off")
        ]
    ),
)
def test_any_shape_is_right(
    heads: int, d_head: int, layers: int, d_ff: int, seq: int, vocab: int, word: str
) -> None:
    assume(heads * d_head >= LEAST["d_model"][0])
    odd = Workload("odd", Dims(layers, heads * d_head, heads, d_ff, seq, vocab))
    opened = cpu.open_backend(odd, None, silent)
    prepared = prepare(opened, word)
    outcome = check_phases(opened, prepared, 1e30)
    assert all(outcome.values()), outcome


@pytest.mark.parametrize("word", ["cpu-loops", "cpu-threads", "cpu-pruned"])
def test_what_was_in_the_buffers_does_not_matter(backend: CpuBackend, word: str) -> None:
    prepared = prepare(backend, word)
    ids = tokens(TINY, 0, 1)
    first = prepared.run(ids, np.nan)
    assert np.array_equal(first, prepared.run(ids, 1e30))
    assert np.array_equal(first, prepared.trace(ids, np.nan).logits)


def test_other_tokens_give_other_logits(backend: CpuBackend) -> None:
    prepared = prepare(backend, "cpu-blas")
    first = prepared.run(tokens(TINY, 0, 1), np.nan)
    assert not np.array_equal(first, prepared.run(tokens(TINY, 1, 1), np.nan))
    assert np.array_equal(first, prepared.run(tokens(TINY, 0, 1), np.nan)), "the first answer comes back"


def test_a_copy_of_a_plan_has_memory_of_its_own(backend: CpuBackend) -> None:
    first, copy = prepare(backend, "cpu-loops,batch=2"), prepare(backend, "cpu-loops,batch=2")
    for name, array in first._weights.items():
        assert not np.may_share_memory(array, copy._weights[name])


def test_plans_share_the_weights_that_they_store_alike() -> None:
    """Or flipping through a ladder would take the model's size in memory again for each rung."""
    backend = cpu.open_backend(TINY, None, silent)
    plain, fused = prepare(backend, "cpu-threads"), prepare(backend, "cpu-fused")
    folded = prepare(backend, "cpu-folded")
    assert np.may_share_memory(plain._weights["w1"], fused._weights["w1"])
    assert not np.may_share_memory(plain._weights["w1"], folded._weights["w1"])


def test_weights_are_drawn_once_whoever_comes_first() -> None:
    weights.master.cache_clear()
    backend = cpu.open_backend(TINY, None, silent)
    prepared = prepare(backend, "cpu-loops")
    assert weights.master.cache_info().misses == 1
    assert np.shares_memory(prepared._weights["w1"], weights.master(TINY)["w1"])


def test_every_array_starts_on_a_cache_line(backend: CpuBackend) -> None:
    for word in ("cpu-blas", "cpu-folded", "cpu-transposed"):
        prepared = prepare(backend, word)
        buffers = prepared._memory._buffers
        assert {a.ctypes.data % ALIGN_BYTES for a in (*prepared._weights.values(), *buffers.values())} == {0}


@given(st.lists(st.integers(1, 7), min_size=1, max_size=3))
def test_arrays_start_on_a_cache_line(shape: list[int]) -> None:
    array = aligned(tuple(shape))
    assert array.shape == tuple(shape)
    assert array.ctypes.data % ALIGN_BYTES == 0


def test_a_pass_allocates_no_activation(backend: CpuBackend) -> None:
    prepared = prepare(backend, "cpu-blas,batch=64")
    prepared.sample_pass(3)
    activation = plan_dims(TINY, prepared.plan).tokens * TINY.dims.d_model * 4
    gc.collect()
    tracemalloc.start()
    try:
        prepared.sample_pass(3)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < activation


@pytest.mark.parametrize("word", ["cpu-blas", "cpu-blas,batch=3,prune=on", "cpu-threads"])
def test_passes_at_once_give_what_they_give_in_turn(backend: CpuBackend, word: str) -> None:
    ready = prepare(backend, word)
    runs = gate.pass_runs(TINY, plan_dims(TINY, ready.plan))
    for (logits, seconds), (ids, poison) in zip(ready.run_each(runs), runs, strict=True):
        assert logits.tobytes() == ready.run(ids, poison).tobytes()
        assert seconds > 0


def test_each_pass_of_the_gate_finds_its_own_poison(
    backend: CpuBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the one that runs beside, in memory of its own: a value that is not written shows there too."""
    monkeypatch.setitem(TABLE, "cpu_blas_gemm", lambda *_: ())
    ready = prepare(backend, "cpu-blas")
    outs = [logits for logits, _ in ready.run_each(gate.pass_runs(TINY, plan_dims(TINY, ready.plan)))]
    assert np.isnan(outs[0]).all()
    assert (outs[1] == np.float32(1e30)).all()


def test_a_pass_that_has_just_run_takes_the_place_of_the_dropped_one(
    backend: CpuBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only where a pass is long, and only its own: another plan leaves other caches."""
    monkeypatch.setattr(passes, "LITTLE", 1e9)
    mine, other = prepare(backend, "cpu-blas"), prepare(backend, "cpu-threads")
    told: list[str] = []
    monkeypatch.setattr(passes, "beat", lambda: told.append("pass"))

    def passes_of(sample: CpuPrepared) -> int:
        told.clear()
        sample.sample_pass(3)
        return len(told)

    assert passes_of(mine) == 3
    assert passes_of(mine) == 3, "short: one more costs nothing"
    monkeypatch.setattr(passes, "DEAR_PASS_S", 0.0)
    assert passes_of(mine) == 2
    mine.sample_phases(1)
    assert passes_of(mine) == 2
    mine.run(tokens(TINY, 0, 1), 1e30)
    assert passes_of(mine) == 2
    assert passes_of(other) == 3
    assert passes_of(mine) == 3
    monkeypatch.setattr(passes, "LITTLE", 0.0)
    assert passes_of(mine) == 3, "too long ago"


def test_a_sample_times_the_pass_within_its_use(backend: CpuBackend) -> None:
    times = prepare(backend, "cpu-blas").sample_pass(3)
    assert 0 < times.device_s <= times.wall_s
    assert times.submit_s is None, "the host is the device"


def test_a_split_has_every_site_once(backend: CpuBackend) -> None:
    prepared = prepare(backend, "cpu-pruned")
    first, split = prepared.sample_phases(2)
    assert first.time_s.keys() == split.time_s.keys()
    sites = list(dict.fromkeys(step.site for step in prepared.steps))
    assert list(split.time_s) == list(split.gap_s) == sites
    assert all(time_s > 0 for time_s in split.time_s.values())
    assert split.timer == "perf_counter"


def test_launches_are_the_calls_made(backend: CpuBackend) -> None:
    fused, apart = prepare(backend, "cpu-blas,fused_qkv=on"), prepare(backend, "cpu-blas")
    launches = {
        name: {fact.site: fact.launches for fact in prepared.facts()}
        for name, prepared in (("fused", fused), ("apart", apart))
    }
    assert launches["apart"]["qkv"] - launches["fused"]["qkv"] == 2 * TINY.dims.layers
    assert launches["apart"]["w1"] == 3 * TINY.dims.layers, "product, bias, ReLU"
    assert [fact.kernel for fact in apart.facts()][1] == "cpu_layernorm"


def test_closing_twice_is_harmless(backend: CpuBackend) -> None:
    prepared = prepare(backend, "cpu-blas")
    prepared.close()
    prepared.close()


def test_every_cpu_kernel_record_has_its_function() -> None:
    entries = {
        entry for kernel in CATALOG.kernels.values() if kernel.backend == "cpu" for entry in kernel.entries
    }
    assert entries == set(TABLE)


def test_the_backend_is_always_usable_and_has_one_device() -> None:
    assert cpu.available() is None
    with pytest.raises(UsageError, match="leave --device out"):
        cpu.open_backend(TINY, "1", silent)


def test_memory_needed_covers_weights_and_grows_with_the_batch(backend: CpuBackend) -> None:
    small, large = backend.need_bytes(resolve("cpu-blas")), backend.need_bytes(resolve("cpu-blas,batch=64"))
    assert weights.weight_bytes(TINY.dims) < small < large
    assert large > 64 * TINY.dims.tokens * TINY.dims.d_ff * 4


@pytest.mark.parametrize(
    ("sizes", "word"),
    [
        ((3, 64, 4, 256, 48, 64), "cpu-blas,batch=24"),
        ((2, 32, 4, 64, 256, 64), "cpu-pruned"),
        ((2, 256, 4, 512, 4, 64), "cpu-folded,layout=transposed"),
    ],
    ids=["batch", "sequence", "weights"],
)
def test_memory_needed_is_what_preparing_and_both_gates_take(
    sizes: tuple[int, int, int, int, int, int], word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or a batch that `fits` would be ended by the kernel, together with who knows what else."""
    for module in ("validation.gate", "validation.phase_check"):
        monkeypatch.setattr(f"gputop.{module}.MOST_COMPARED", 1 << 12)
    for module in ("validation.gate", "validation.reference", "phases.attention"):
        monkeypatch.setattr(f"gputop.{module}.MOST_SCORES", 1 << 12)
    monkeypatch.setattr("gputop.backends.cpu.warmup.EARLY_BYTES", 0)
    opened = cpu.open_backend(Workload("sized", Dims(*sizes)), None, silent)
    plan = resolve(word, opened.workload)
    gc.collect()
    tracemalloc.start()
    try:
        need_bytes = opened.need_bytes(plan)
        lanes = PreparedLanes(opened, CATALOG)
        assert lanes.check_phases(lanes.get(plan, silent), silent).ok
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < need_bytes < 2.5 * peak_bytes


def test_facts_name_the_machine_and_its_libraries(backend: CpuBackend) -> None:
    facts = backend.facts()
    assert facts.notes == ()
    assert facts.backend == "cpu"
    assert facts.name
    assert facts.sm_count == host_cpu.whole_cores()
    assert np.__version__ in facts.versions
    assert facts.memory_bytes is None or facts.memory_bytes > 0


def test_a_control_group_limits_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    unlimited = machine.free_bytes()
    monkeypatch.setattr(cgroups, "memory_limit", lambda: cgroups.MemoryLimit(3_000_000, 900_000, "a"))
    assert machine.free_bytes() == min(unlimited, 900_000)


def test_a_limit_of_the_address_space_bounds_what_is_free() -> None:
    code = "from gputop.backends.cpu import machine; print(machine.free_bytes())"
    command = ["prlimit", "--as=4000000000", sys.executable, "-c", code]
    if shutil.which(command[0]) is None:
        pytest.skip("no prlimit here")
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert 0 < int(said) < 4_000_000_000


def test_unreadable_files_are_unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("CPUINFO", "MEMINFO", "CACHES", "CLOCK_KHZ", "STATM"):
        monkeypatch.setattr(machine, name, tmp_path / "none")
    monkeypatch.setattr(cgroups, "memory_limit", lambda: None)
    assert machine.clock_hz() is None
    assert machine.memory_bytes() is None
    assert machine.last_cache_bytes() is None
    assert machine.processor()
    assert machine.free_bytes() == 2**63 - 1
