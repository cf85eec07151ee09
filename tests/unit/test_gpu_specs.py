"""The tables of architectures and cards: consistent with each other and with what is known of a few."""

from __future__ import annotations

import pytest

from gputop.perf.gpu_specs import (
    FLOPS_PER_SM_CLOCK,
    MODELS,
    SM_LIMITS,
    GpuModel,
    arch_name,
    ceiling_status,
    find_model,
    flops_per_sm_clock,
    gated_tensor_rate,
    limits,
    model,
    pipe_limit,
)
from gputop.util.errors import UsageError


@pytest.mark.parametrize("spelling", [90, "90", "sm_90", "SM_90a", "sm_90f", "compute_90", "9.0"])
def test_an_architecture_has_one_name(spelling: str | int) -> None:
    assert arch_name(spelling) == "sm_90"
    assert limits(spelling).arch == "sm_90"
    assert arch_name("12.0") == "sm_120"


def test_an_unknown_architecture_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"sm_42.*Known: sm_80, sm_86"):
        limits("sm_42")


@pytest.mark.parametrize("arch", SM_LIMITS)
def test_a_block_never_gets_more_than_its_sm_has(arch: str) -> None:
    sm = limits(arch)
    assert sm.smem_per_block_optin_bytes + sm.smem_reserved_bytes == sm.smem_per_sm_bytes
    assert sm.threads_per_block <= sm.warps_per_sm * sm.warp_size
    assert sm.registers_per_block <= sm.registers_per_sm


def test_every_architecture_has_limits_and_rates() -> None:
    assert set(SM_LIMITS) == set(FLOPS_PER_SM_CLOCK)


@pytest.mark.parametrize("card", MODELS, ids=lambda card: card.name)
def test_a_datasheet_agrees_with_sms_times_rate_times_clock(card: GpuModel) -> None:
    """Tensor figures are quoted at a clock up to a tenth below boost, never above."""
    assert card.arch in SM_LIMITS
    assert card.source
    if card.boost_hz is None:
        return
    names = {
        name for rate in ("fp32", "tf32", "bf16") for name in FLOPS_PER_SM_CLOCK[card.arch] if rate in name
    }
    for pipe in names:
        quoted = card.get(pipe)
        allowed = pipe_limit(card.arch, pipe, card.sm_count, card.boost_hz, card.device_names[0])
        assert allowed is not None
        if quoted is not None:
            assert 0.89 * allowed <= quoted <= 1.01 * allowed, pipe


def test_the_card_of_the_seed() -> None:
    card = find_model("NVIDIA GeForce RTX 3080 Ti")
    assert card is not None
    assert (card.arch, card.sm_count, card.dram_bytes_per_s) == ("sm_86", 80, 912e9)
    assert card.fp32_flops == pytest.approx(34e12, rel=0.01)
    assert card.get("tf32_mma") == card.fp32_flops


def test_what_a_card_does_not_have_is_unknown() -> None:
    card = model("H200")
    assert card.get("tf32_wgmma") == 495e12
    assert card.get("tf32_mma") is None
    assert card.get("launch_graph") is None
    assert card.get("l2_read") is None


@pytest.mark.parametrize(
    ("reported", "name"),
    [
        ("NVIDIA H200", "H200"),
        ("NVIDIA H100 80GB HBM3", "H100-SXM"),
        ("nvidia a100-sxm4-80gb", "A100-80GB-SXM"),
        ("rtx-4090", "RTX-4090"),
        ("NVIDIA GeForce RTX 3090 Ti", None),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
        ("NVIDIA H200 NVL", None),
        ("", None),
    ],
)
def test_a_card_is_found_by_its_whole_name_only(reported: str, name: str | None) -> None:
    found = find_model(reported)
    assert (found.name if found else None) == name


def test_no_two_cards_share_a_name() -> None:
    spellings = [name for card in MODELS for name in card.spellings]
    assert len(spellings) == len(set(spellings))


def test_an_unknown_card_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"Did you mean 'RTX-4090'\?"):
        model("RTX-4091")


def test_geforce_halves_the_tensor_pipes_and_no_other() -> None:
    assert gated_tensor_rate("NVIDIA GeForce RTX 3090")
    assert not gated_tensor_rate("NVIDIA A10")
    assert flops_per_sm_clock("sm_86", "bf16_mma") == 1024
    assert flops_per_sm_clock("sm_86", "bf16_mma", gated=True) == 512
    assert flops_per_sm_clock("sm_86", "fp32", gated=True) == 256


def test_an_unknown_pipe_has_no_rate() -> None:
    assert flops_per_sm_clock("sm_86", "tf32_wgmma") is None
    assert flops_per_sm_clock("sm_42", "fp32") is None
    assert pipe_limit("sm_90", "fp32", 132, None) is None


def test_limits_of_an_h200_at_its_clock() -> None:
    assert pipe_limit("sm_90", "fp32", 132, 1.98e9) == pytest.approx(66.9e12, rel=1e-3)
    assert pipe_limit("sm_90", "tf32_wgmma", 132, 1.98e9) == pytest.approx(535e12, rel=1e-3)
    assert pipe_limit("sm_90", "bf16_wgmma", 132, 1.98e9) == pytest.approx(1071e12, rel=1e-3)


@pytest.mark.parametrize(
    ("value", "pipe", "starts"),
    [
        (60.8e12, "fp32", "ok"),
        (51.1e12, "fp32", "low: 76%"),
        (70e12, "fp32", "above the hardware: 105%"),
        (330e12, "tf32_mma", "ok: 62% of SMs x rate x clock, which this path can't fill on sm_90"),
        (280e12, "tf32_mma", "low: 52%"),
        (500e12, "tf32_mma", "ok"),
        (330e12, "tf32_wgmma", "low: 62%"),
    ],
)
def test_a_ceiling_is_sane_within_ninety_percent_of_the_width(value: float, pipe: str, starts: str) -> None:
    limit = pipe_limit("sm_90", pipe, 132, 1.98e9)
    status = ceiling_status(value, limit, "sm_90", pipe)
    assert status == starts if starts == "ok" else status.startswith(starts)


def test_a_ceiling_without_a_limit_is_unchecked() -> None:
    assert ceiling_status(1e12, None, "sm_90", "fp32").startswith("unchecked")
