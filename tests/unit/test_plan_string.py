"""Plan strings: kernels with their number of parts, former names, and what can't be read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.phases.rungs_cuda import RUNGS
from gputop.plan.plan_string import FORMER, parse_choice, parse_word, respelled
from gputop.plan.types import KernelChoice, PlanRequest
from gputop.planner.resolver import Resolver
from gputop.util.errors import UsageError

KERNELS = [kernel for kernel in Resolver.load().kernels.values() if kernel.backend == "cuda"]
CHOICES = [KernelChoice(kernel.name, splits) for kernel in KERNELS for splits in kernel.splits or (None,)]


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_every_kernel_is_read_as_it_is_written(choice: KernelChoice) -> None:
    assert parse_choice(str(choice)) == choice


@pytest.mark.parametrize(
    ("former", "today"),
    [
        ("gemm_split_k_4", "gemm_split_k/4"),
        ("gemm_sass_fp32_wide_22", "gemm_sass_fp32_wide/22"),
        ("gemm_wmma_short_5", "gemm_wmma_short/5"),
        ("gemm_w2_assault_tall_11", "gemm_w2_assault_tall/11"),
        ("gemm_k_major_short_2", "gemm_k_major_short/2"),
        ("gemm_fp32_k_major_8x4_2", "gemm_fp32_k_major_8x4/2"),
        ("gemm_fp32_cluster_8x6_8", "gemm_fp32_cluster_8x6/8"),
        ("gemm_fp32_slices_52_4", "gemm_fp32_slices_52/4"),
        ("gemm_warpgroup_80_4", "gemm_warpgroup_80/4"),
        ("gemm_one_row_k_major_2", "gemm_one_row_k_major_2"),
        ("gemm_warpgroup_80", "gemm_warpgroup_80"),
        ("gemm_split_k_reduce", "gemm_split_k_reduce"),
    ],
)
def test_a_kernel_with_its_parts_in_its_name_is_read_as_today(former: str, today: str) -> None:
    assert str(parse_choice(former)) == respelled(former) == today
    assert parse_word(f"graph,w2:{former}") == parse_word(f"graph,w2:{today}")
    assert respelled(f"w2:{former} and wo:{former}.") == f"w2:{today} and wo:{today}."


def test_no_kernel_of_today_is_taken_for_a_former_name() -> None:
    assert not [str(choice) for choice in CHOICES if FORMER.search(str(choice))]


def test_rungs_write_kernels_as_today() -> None:
    named = [entry for rung in RUNGS for _, entry in rung.use]
    texts = [text for entry in named for text in ((entry,) if isinstance(entry, str) else entry)]
    assert not [text for text in texts if text != str(parse_choice(text))]


@pytest.mark.parametrize(
    "text", ["gemm_split_k/", "gemm_split_k/0", "gemm_split_k/x", "/4", "gemm/4/4", "a/-1"]
)
def test_a_number_of_parts_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="NAME or NAME/SPLITS"):
        parse_choice(text)
    with pytest.raises(UsageError, match="NAME or NAME/SPLITS"):
        parse_word(f"graph,w2:{text}")


NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789_@", min_size=1, max_size=12)
CHOSEN = st.builds(KernelChoice, NAMES, st.none() | st.integers(1, 999_999))


@given(
    rung=NAMES,
    sets=st.dictionaries(NAMES, NAMES, max_size=3),
    uses=st.dictionaries(NAMES, CHOSEN, max_size=3),
)
def test_a_request_is_read_as_it_is_written(
    rung: str, sets: dict[str, str], uses: dict[str, KernelChoice]
) -> None:
    request = PlanRequest(rung, tuple(sets.items()), tuple(uses.items()))
    assert parse_word(str(request)) == request
