"""Inductor's log of its trials: the forms that its versions write, among whatever else stands in a log."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.backends.cuda.torch.autotune_log import parse
from gputop.results.records import Tuned

TOOK = "SingleProcess AUTOTUNE benchmarking takes 0.9 seconds and 0.6 seconds"
DESCRIBED = (
    " ACC_TYPE='tl.float32', ALLOW_TF32=True, BLOCK_K=32, BLOCK_M=64, EVEN_K=True, num_stages=5, num_warps=8"
)
STATS = '{"num_choices": 20, "best_kernel": "bias_addmm", "best_time": 0.0081, "best_triton_pos": 1}'


@dataclass(frozen=True)
class Form:
    """How one version writes."""

    unit: str
    details: bool
    head: tuple[str, ...]
    between: tuple[str, ...]
    end: str
    mark: str = ""


FORMS = {
    "2.0": Form("s", False, (), (), "SingleProcess AUTOTUNE takes 2.949904441833496 seconds"),
    "2.1": Form(" ms", False, (), (), "SubProcess AUTOTUNE takes 4.7125 seconds"),
    "2.5": Form(" ms", True, (), (), f"{TOOK} precompiling"),
    "2.8": Form(
        " ms", True, ("Autotune Choices Stats:", STATS), ("strides: [0, 1], [768, 1]", "dtypes: torch.half"),
        f"{TOOK} precompiling for 20 choices",
    ),
    "2.11": Form(
        " ms", True, ("V0205 11:43:25.4 39 select_algorithm.py:3267] [0/0] Autotuning elapsed time: 0.69s",),
        ("strides: [0, 1], [768, 1]",),
        f"{TOOK} precompiling for 20 choices and 0.2 seconds prescreening", mark=" [CACHE HIT]",
    ),
}  # fmt: skip

kernel_names = st.one_of(
    st.integers(0, 999).map("triton_mm_{}".format),
    st.sampled_from(["addmm", "bias_addmm", "mm", "bmm", "_scaled_mm", "decompose_k_mm_2_split_9"]),
)
LIBRARIES = {"addmm", "bias_addmm", "mm", "bmm", "_scaled_mm"}
trials = st.dictionaries(kernel_names, st.floats(1e-3, 50), min_size=1, max_size=10)
products = st.dictionaries(
    st.tuples(
        st.sampled_from(["addmm", "mm", "bmm", "mm_plus_mm"]),
        st.tuples(st.integers(1, 9000), st.integers(1, 9000)).map(lambda s: f"{s[0]}x{s[1]}, {s[1]}x{s[0]}"),
    ),
    trials,
    min_size=1,
    max_size=4,
)


def written(form: Form, operation: str, sizes: str, times: dict[str, float]) -> list[str]:
    best = min(times.values())
    ranked = sorted(times, key=lambda name: times[name])
    lines = [*form.head, f"AUTOTUNE {operation}({sizes}){form.mark}", *form.between]
    for name in ranked:
        details = DESCRIBED if form.details and name.startswith("triton") else " " * form.details
        lines.append(f"  {name} {times[name]:.4f}{form.unit} {best / times[name]:.1%}{details}")
    return [*lines, form.end]


@given(products, st.sampled_from(sorted(FORMS)), st.booleans())
def test_what_any_version_writes_is_read_back(
    asked: dict[tuple[str, str], dict[str, float]], version: str, amid_others: bool
) -> None:
    lines: list[str] = []
    for (operation, sizes), times in asked.items():
        lines += ["/lib/python/torch/_inductor/compile_fx.py:236: UserWarning: 100.0% sure"] * amid_others
        lines += written(FORMS[version], operation, sizes, times)
    found = {(item.operation, item.sizes): item for item in parse("\n".join(lines) + "\n")}
    assert list(found) == list(asked)
    for key, times in asked.items():
        best_s = min(times.values())
        # The log has a tenth of a per cent: what is far from the best is known as coarsely.
        readable = {name: time for name, time in times.items() if best_s / time >= 0.0006}
        item = found[key]
        assert item.choices >= len(readable) >= 1
        assert times[item.best] == pytest.approx(best_s, rel=2e-3)
        if item.second_ratio is not None and item.second_ratio < 10:
            assert item.second is not None
            assert item.second_ratio == pytest.approx(times[item.second] / times[item.best], rel=0.02)
        libraries = {name: time for name, time in readable.items() if name in LIBRARIES}
        if libraries:
            assert item.library in libraries
            assert (item.library_ratio or 0) >= 1


def test_a_log_by_hand() -> None:
    text = """
AUTOTUNE addmm(128x2304, 128x768, 768x2304)
strides: [0, 1], [768, 1], [1, 768]
  triton_mm_11 0.0080 ms 100.0% ACC_TYPE='tl.float32', num_stages=3, num_warps=4
  triton_mm_7 0.0082 ms 97.5% ACC_TYPE='tl.float32', num_stages=3, num_warps=8
  bias_addmm 0.0120 ms 66.7%\x20
  triton_mm_3 inf ms 0.0% ACC_TYPE='tl.float32'
  triton_mm_4 0.0000 ms <DIVIDED BY ZERO ERROR>
SingleProcess AUTOTUNE benchmarking takes 0.97 seconds and 0.60 seconds precompiling for 17 choices
  triton_mm_9 0.0001 ms 100.0%
AUTOTUNE addmm(128x2304, 128x768, 768x2304)
  addmm 0.0070 ms 100.0%
"""
    (item,) = parse(text)
    assert (item.best, item.second, item.library, item.choices) == (
        "triton_mm_11",
        "triton_mm_7",
        "bias_addmm",
        3,
    )
    assert item.second_ratio == pytest.approx(1 / 0.975)
    assert item.library_ratio == pytest.approx(1 / 0.667)


def test_a_log_whose_lines_carry_a_prefix_is_read_as_well() -> None:
    text = (
        "2025-01-18 22:59:25 | info | AUTOTUNE mm(4900x1280, 1280x1280)\n"
        "2025-01-18 22:59:25 | info |   mm 0.0788 ms 100.0%\\n\n"
        "2025-01-18 22:59:25 | info |   triton_mm_75 0.0799 ms 98.7%\\n\n"
    )
    (item,) = parse(text)
    assert (item.sizes, item.best, item.library_ratio) == ("4900x1280, 1280x1280", "mm", 1.0)


def test_where_the_library_is_not_listed_it_is_unknown() -> None:
    (item,) = parse("AUTOTUNE mm(8x8, 8x8)\n  triton_mm_1 0.1000 ms 100.0%\n")
    assert item == Tuned("mm", "8x8, 8x8", 1, "triton_mm_1")


@given(st.text())
def test_any_other_text_says_nothing_and_breaks_nothing(text: str) -> None:
    assert all(item.choices > 0 for item in parse(text))
