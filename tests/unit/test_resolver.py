"""The catalog is total, plans resolve, words round-trip, and what can't be is refused with why."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gputop.backends.cpu.kernels import TABLE
from gputop.backends.cuda.compiler.nvrtc import arch_of
from gputop.model.workloads import WORKLOADS
from gputop.perf.gpu_specs import SM_LIMITS
from gputop.plan.plan_string import parse_choice, parse_word
from gputop.plan.types import Dims, Kernel, KernelChoice, Plan, PlanRequest, Task
from gputop.planner.plan_views import site_choices, site_views, toggle_views
from gputop.planner.registry import divided
from gputop.planner.resolver import Resolver, plan_dims
from gputop.util.errors import UsageError

CATALOG = Resolver.load()
TINY = WORKLOADS[2].dims
CPU_RUNGS = tuple(rung.id for rung in CATALOG.rungs_of("cpu"))
CPU_TOGGLES = {toggle.name: toggle.values for toggle in CATALOG.toggles if "cpu" in toggle.backends}


def kernels_of(plan: Plan) -> dict[str, str]:
    """Site -> kernel as it is written."""
    return {site: str(choice) for site, choice in plan.dispatch}


def resolve(word: str, dims: Dims = TINY, backend: str = "cpu") -> Plan:
    return CATALOG.resolve(parse_word(word), dims, backend)


def test_every_cpu_entry_is_in_the_backends_table() -> None:
    entries = {entry for k in CATALOG.kernels.values() if k.backend == "cpu" for entry in k.entries}
    assert entries == set(TABLE)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
@pytest.mark.parametrize("rung", CPU_RUNGS)
def test_cpu_rungs_resolve_everywhere(rung: str, workload: object) -> None:
    dims = next(w.dims for w in WORKLOADS if w is workload)
    plan = resolve(rung, dims)
    assert plan.word == rung
    assert [site for site, _ in plan.dispatch] == [site.name for site in CATALOG.sites(dims, plan.prune)]


def test_a_rung_has_all_that_the_rungs_before_it_changed() -> None:
    assert kernels_of(resolve("cpu-loops"))["w1"] == "cpu_loops_gemm"
    last = resolve("cpu-batch")
    assert (last.layout, last.threads, last.fused_qkv, last.fold, last.prune, last.batch) == (
        ("row", "all", True, True, True, 8)
    )
    assert plan_dims(WORKLOADS[2], last).tokens == 8 * 16


def test_each_rung_but_the_first_predicts() -> None:
    for rung in CATALOG.rungs_of("cpu"):
        if rung.before is None:
            continue
        assert rung.prediction is not None, rung.id
        assert rung.prediction.lo <= rung.prediction.gain <= rung.prediction.hi


# --- words --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "canonical"),
    [
        ("cpu-blas", "cpu-blas"),
        ("cpu-blas,threads=1,layout=row", "cpu-blas"),
        ("cpu-blas, w1:cpu_loops_gemm , fold=on", "cpu-blas,fold=on,w1:cpu_loops_gemm"),
        ("cpu-blas,fold=on,fold=on", "cpu-blas,fold=on"),
        ("cpu-batch,batch=3", "cpu-batch,batch=3"),
        ("cpu-pruned,w1:cpu_loops_gemm", "cpu-pruned,w1:cpu_loops_gemm"),
        ("cpu-pruned,w1@1:cpu_loops_gemm", "cpu-pruned,w1@1:cpu_loops_gemm"),
        (
            "cpu-pruned,w1:cpu_loops_gemm,w1@1:cpu_blas_gemm",
            "cpu-pruned,w1:cpu_loops_gemm,w1@1:cpu_blas_gemm",
        ),
    ],
)
def test_words_are_canonical(asked: str, canonical: str) -> None:
    assert resolve(asked).word == canonical


def test_a_phases_entry_serves_its_other_sites() -> None:
    plan = resolve("cpu-pruned,qkv:cpu_loops_gemm")
    assert {kernels_of(plan)[site] for site in ("qkv", "kv", "q@1")} == {"cpu_loops_gemm"}


@st.composite
def cpu_requests(draw: st.DrawFn) -> PlanRequest:
    sets = []
    for name in draw(st.lists(st.sampled_from(sorted(CPU_TOGGLES)), max_size=4, unique=True)):
        values = ("fp32",) if name == "math" else CPU_TOGGLES[name]
        value = draw(st.sampled_from(values)) if values else str(draw(st.integers(1, 9)))
        sets.append((name, value))
    bare = resolve(str(PlanRequest(draw(st.sampled_from(CPU_RUNGS)), tuple(sets))))
    uses = []
    sites = [site for site, _ in bare.dispatch]
    # In pass order, as a phase's entry behind one of its sites would hide that.
    for site in sorted(draw(st.sets(st.sampled_from(sites), max_size=5)), key=sites.index):
        phase = {s.name: s.phase for s in CATALOG.sites(TINY, bare.prune)}[site]
        names = [kernel.name for kernel in CATALOG.kernels_for(phase, "cpu")]
        uses.append((site, KernelChoice(draw(st.sampled_from(names)))))
    return PlanRequest(bare.rung, tuple(sets), tuple(uses))


@given(request=cpu_requests())
def test_a_plans_word_means_the_plan(request: PlanRequest) -> None:
    plan = CATALOG.resolve(request, TINY, "cpu")
    assert resolve(plan.word) == plan
    assert parse_word(str(request)) == request


@given(word=st.text(max_size=40))
def test_any_word_is_refused_in_a_sentence(word: str) -> None:
    assume(word.split(",")[0].strip() not in CPU_RUNGS)
    with pytest.raises(UsageError, match=r"(?i)rung"):
        resolve(word)


@pytest.mark.parametrize(
    "word",
    ["", ",", "fold=on", "w1:k", "cpu-blas,,", "cpu-blas,fold", "cpu-blas,=on", "cpu-blas,fold="],
)
def test_a_broken_word_is_answered(word: str) -> None:
    with pytest.raises(UsageError, match="RUNG"):
        parse_word(word)


# --- refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("cpu-blass", r"Unknown rung 'cpu-blass'\. Did you mean 'cpu-blas'\?"),
        ("naive", r"Rung naive runs on cuda, not on cpu\. Rungs on cpu: cpu-loops"),
        ("cpu-blas,flod=on", r"Unknown toggle 'flod'\. Did you mean 'fold'\?"),
        ("cpu-blas,fold=yes", r"fold='yes': fold is one of on, off"),
        ("cpu-blas,threads=2", r"threads is one of 1, all"),
        ("cpu-blas,batch=0", r"batch is a whole number from 1 to"),
        ("cpu-blas,batch=-1", r"batch is a whole number"),
        ("cpu-blas,batch=two", r"batch is a whole number"),
        ("cpu-blas,batch=999999", r"batch is a whole number from 1 to 4096"),
        ("cpu-blas,math=tf32", r"can't serve \S+: it computes in fp32 only, and the plan's math is tf32"),
        ("cpu-blas,graph=on", r"graph=on: graph exists on cuda only, not on cpu"),
        ("cpu-blas,w3:cpu_blas_gemm", r"Unknown site 'w3'\. Did you mean 'w.'\?.*w1, w2, wo"),
        ("cpu-blas,w1@1:cpu_blas_gemm", r"no site w1@1: it exists with prune=on \(--set prune=on\)"),
        (
            "cpu-blas,w1:cpu_blas_gem",
            r"Unknown kernel for w1 'cpu_blas_gem'\. Did you mean 'cpu_blas_gemm'\?",
        ),
        (
            "cpu-blas,w1:cpu_layernorm",
            r"cpu_layernorm can't serve w1 on cpu: it computes ln1, ln2, lnf on cpu",
        ),
        ("cpu-pruned,w1@1:cpu_blas_gemm,w1:cpu_loops_gemm", r"nothing is left of w1@1:cpu_blas_gemm"),
        ("cpu-blas,w1:cpu_blas_gemm/2", r"no cpu_blas_gemm/2 for w1\. It divides nothing"),
        ("cpu-blas,w1:gemm_naive", r"gemm_naive can't serve w1 on cpu: .* on cuda\. Allowed: cpu_blas_gemm"),
    ],
)
def test_what_can_not_be_is_refused_with_why(word: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        resolve(word)


def test_a_math_that_is_stored_too_is_said_where_to_begin_from() -> None:
    """No kernel of another rung stores it, so that the toggle alone makes no plan of ours."""
    assert resolve("torch-eager,math=bf16", WORKLOADS[0].dims, "cuda").math == "bf16"
    assert resolve("bf16", WORKLOADS[0].dims, "cuda").math == "bf16"
    with pytest.raises(UsageError, match=r"the plan's math is bf16: .* begin from rung bf16\.$"):
        resolve("graph,math=bf16", WORKLOADS[0].dims, "cuda")
    with pytest.raises(UsageError, match=r"computes in bf16 only, and the plan's math is tf32\.$"):
        resolve("bf16,math=tf32", WORKLOADS[0].dims, "cuda")
    with pytest.raises(UsageError, match=r"the plan's math is tf32\.$"):
        resolve("naive,math=tf32", WORKLOADS[0].dims, "cuda")


def test_setting_what_already_holds_is_no_error() -> None:
    assert resolve("cpu-blas,graph=off,math=fp32").word == "cpu-blas"


def test_a_peer_takes_no_kernels_and_few_toggles() -> None:
    peer = next(rung.id for rung in CATALOG.rungs if rung.kind == "peer")
    plan = resolve(f"{peer},batch=2", backend="cuda")
    assert plan.dispatch == ()
    assert CATALOG.steps(plan, TINY) == ()
    with pytest.raises(UsageError, match="own pass: no kernel"):
        resolve(f"{peer},w1:gemm_naive", backend="cuda")
    with pytest.raises(UsageError, match="organises its own pass; only math and batch"):
        resolve(f"{peer},prune=on", backend="cuda")


# --- views --------------------------------------------------------------------------------------------


def test_toggle_views_say_what_stands_and_what_can_not() -> None:
    views = {view.name: view for view in toggle_views(CATALOG, resolve("cpu-fused"), TINY)}
    assert set(views) == {toggle.name for toggle in CATALOG.toggles}
    assert (views["fused_qkv"].value, views["threads"].value, views["batch"].value) == ("on", "all", "1")
    assert views["fold"].refused == ()
    assert [value for value, _ in views["math"].refused] == ["tf32", "bf16"]
    assert all(re.search("cuda only", why) for _, why in views["graph"].refused)
    assert [value for value, _ in views["graph"].refused] == ["on"]


def test_site_views_name_the_other_kernels() -> None:
    plan = resolve("cpu-pruned,w1@1:cpu_loops_gemm")
    views = {view.site: view for view in site_views(CATALOG, plan, TINY)}
    assert list(views) == [site for site, _ in plan.dispatch]
    assert (str(views["w1@1"].kernel), views["w1@1"].others) == ("cpu_loops_gemm", ("cpu_blas_gemm",))
    assert views["embed"].others == ()


def too_narrow(task: Task, plan: Plan, dims: Dims) -> str | None:
    return None if task.site.columns >= 128 else f"it needs 128 columns, got {task.site.columns}"


def with_kernels(*kernels: Kernel) -> Resolver:
    return replace(CATALOG, records=(*CATALOG.records, *kernels))


def test_a_kernels_limits_are_the_reason() -> None:
    catalog = with_kernels(Kernel("wide", "cpu", "", ("w1", "wo"), limits=too_narrow))
    plan = catalog.resolve(parse_word("cpu-blas"), TINY, "cpu")
    w1, wo = (site_choices(catalog, plan, TINY, site) for site in ("w1", "wo"))
    assert "wide" in {candidate.choice.kernel for candidate in w1.candidates}
    assert wo.refused == (("wide", "wide can't serve wo: it needs 128 columns, got 64."),)


def test_a_split_kernel_is_refused_more_tiles_than_it_has_arrival_counters_for() -> None:
    def refusal(kernel: str, batch: int) -> str | None:
        dims = replace(WORKLOADS[0].dims, batch=batch)
        plan, choice = resolve(f"cublaslt,batch={batch}", dims, "cuda"), parse_choice(kernel)
        w1 = divided(CATALOG.site_tasks(plan, dims)["w1"], choice)
        return CATALOG.refusal(CATALOG.kernel(choice.kernel), w1, plan, dims)

    assert refusal("gemm_k_major_short/2", 64) is None, "6,144 tiles"
    assert refusal("gemm_k_major_short/2", 128) == "it has arrival counters for 8192 tiles, and w1 has 12288"
    assert refusal("gemm_k_major_short/1", 128) is None, "it draws none"


# --- kernels that fuse --------------------------------------------------------------------------------

FUSED = Kernel("ln2_w1", "cpu", "", ("ln2", "w1"), fuses=True)
WHOLE = Kernel("mega", "cpu", "", tuple(phase.name for phase in CATALOG.phases), fuses=True)


def sites_of(catalog: Resolver, plan: Plan, dims: Dims = TINY) -> list[str]:
    return [step.site for step in catalog.steps(plan, dims)]


def test_a_fusing_kernel_takes_its_tasks_together() -> None:
    catalog = with_kernels(FUSED)
    plan = catalog.resolve(parse_word("cpu-pruned,w1:ln2_w1"), TINY, "cpu")
    assert plan.word == "cpu-pruned,ln2:ln2_w1"
    assert catalog.resolve(parse_word(plan.word), TINY, "cpu") == plan
    sites = sites_of(catalog, plan)
    assert sites.count("ln2+w1") == 1
    assert sites.count("ln2@1+w1@1") == 1
    assert not {"ln2", "w1", "ln2@1", "w1@1"} & set(sites)


def test_a_fusing_kernel_may_serve_the_last_layer_alone() -> None:
    catalog = with_kernels(FUSED)
    plan = catalog.resolve(parse_word("cpu-pruned,w1@1:ln2_w1"), TINY, "cpu")
    sites = sites_of(catalog, plan)
    assert "ln2@1+w1@1" in sites
    assert {"ln2", "w1"} <= set(sites)


def test_a_fusing_kernel_is_given_all_or_nothing() -> None:
    catalog = with_kernels(FUSED)
    with pytest.raises(UsageError, match=r"ln2_w1 computes ln2 and w1 in one launch.*dispatch all of them"):
        catalog.resolve(parse_word("cpu-blas,ln2:ln2_w1,w1:cpu_blas_gemm"), TINY, "cpu")


@pytest.mark.parametrize("rung", ["cpu-blas", "cpu-pruned"])
def test_a_kernel_may_take_the_whole_pass(rung: str) -> None:
    catalog = with_kernels(WHOLE)
    plan = catalog.resolve(parse_word(f"{rung},embed:mega"), TINY, "cpu")
    (step,) = catalog.steps(plan, TINY)
    assert step.tasks == catalog.pass_tasks(plan, TINY, False)


# --- steps --------------------------------------------------------------------------------------------


def test_steps_of_a_pruned_pass_in_order() -> None:
    last = ["ln1", "kv", "q@1", "attention@1", "wo@1", "ln2@1", "w1@1", "w2@1"]
    first = ["ln1", "qkv", "attention", "wo", "ln2", "w1", "w2"]
    assert sites_of(CATALOG, resolve("cpu-pruned")) == ["embed", *first, *last, "lnf", "head"]


@given(layers=st.integers(1, 5), pruned=st.booleans())
def test_counts_of_the_sites_are_those_of_the_pass(layers: int, pruned: bool) -> None:
    dims = replace(TINY, layers=layers)
    plan = resolve("cpu-pruned" if pruned else "cpu-blas", dims)
    sites = sites_of(CATALOG, plan, dims)
    assert {site.name: site.count for site in CATALOG.sites(dims, pruned)} == {
        s: sites.count(s) for s in sites
    }


# --- several kernels for a site ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arch", "word", "site", "kernel"),
    [
        ("sm_90", "graph", "w2", "gemm_warpgroup_56/8"),
        ("sm_80", "graph", "w2", "cublaslt"),
        ("sm_120", "graph", "w2", "cublaslt"),
        ("sm_90", "graph,math=fp32", "wo", "gemm_fp32_cluster_8x4/8"),
        ("sm_89", "graph,math=fp32", "wo", "gemm_fp32_k_major_half/8"),
        ("sm_90", "fp32-slices", "w2", "gemm_fp32_slices_52/4"),
        ("sm_90", "graph,math=fp32", "attention", "attention_flash_warps"),
        ("sm_90", "graph,batch=2", "w2", "cublaslt"),
        ("sm_90", "tournament", "qkv", "cublaslt_best"),
        ("sm_90", "graph,w2:cublaslt", "w2", "cublaslt"),
    ],
)
def test_a_rung_takes_the_first_kernel_that_device_math_and_size_allow(
    arch: str, word: str, site: str, kernel: str
) -> None:
    plan = CATALOG.on(arch).resolve(parse_word(word), WORKLOADS[0].dims, "cuda")
    assert kernels_of(plan)[site] == kernel
    assert plan.word == word, "what a rung chooses by itself is no change to it"


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("hopper", "its instructions exist on sm_90 only, and this device is sm_89"),
        ("naive,w1:gemm_fp32_cluster_8x8_2", "it needs sm_90 or later, and this device is sm_89"),
    ],
)
def test_a_kernel_of_another_architecture_is_refused_where_the_device_is_known(word: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        CATALOG.on("sm_89").resolve(parse_word(word), WORKLOADS[0].dims, "cuda")
    CATALOG.resolve(parse_word(word), WORKLOADS[0].dims, "cuda")


def test_records_and_sources_name_the_same_architectures() -> None:
    for kernel in CATALOG.kernels.values():
        if kernel.source:
            text = (CATALOG.kernels_dir / kernel.source).read_text(encoding="utf-8")
            for arch in SM_LIMITS:
                allowed = kernel.only_arch in ("", arch) and int(arch.removeprefix("sm_")) >= kernel.min_arch
                assert (arch_of(text, arch.removeprefix("sm_")) is not None) == allowed, (kernel.name, arch)


def test_dependent_launches_need_a_kernel_that_waits_by_itself() -> None:
    with pytest.raises(UsageError, match="no kernel of this plan supports programmatic"):
        CATALOG.resolve(parse_word("megakernel,pdl=on"), WORKLOADS[0].dims, "cuda")
