"""Reads plan strings: RUNG[,TOGGLE=VALUE...][,SITE:KERNEL[/SPLITS]...]. `str` of a request writes one."""

from __future__ import annotations

import re

from gputop.plan.types import KernelChoice, PlanRequest
from gputop.util.errors import UsageError

FORM = "RUNG[,TOGGLE=VALUE...][,SITE:KERNEL[/SPLITS]...]"

FORMER = re.compile(
    r"(gemm_(?:split_k|sass_fp32_[a-z]+|wmma_[a-z]+|w2_assault_[a-z]+|k_major_[a-z]+|fp32_k_major_[0-9a-z]+"
    r"|fp32_cluster_[0-9a-z]+|fp32_slices_[0-9]+|warpgroup_[0-9]+))_([0-9]+)(?![0-9A-Za-z_])"
)
"""A kernel as older files and scripts name it, with its number of parts in the name."""


def parse_word(word: str) -> PlanRequest:
    """Return the request that a word spells. Names are not looked up here.

    Raise UsageError for a broken form, and for one name with two values.
    """
    rung, *parts = (part.strip() for part in word.split(","))
    if not rung or "=" in rung or ":" in rung:
        raise UsageError(f"A plan begins with a rung: {FORM}, got {word!r}. See `gputop list rungs`.")
    sets: list[tuple[str, str]] = []
    uses: list[tuple[str, KernelChoice]] = []
    for part in parts:
        toggle, is_set, value = part.partition("=")
        site, is_use, kernel = part.partition(":")
        if is_set and toggle and value:
            sets.append((toggle, value))
        elif is_use and site and kernel:
            uses.append((site, parse_choice(kernel)))
        else:
            raise UsageError(
                f"{part!r} in {word!r} is neither TOGGLE=VALUE nor SITE:KERNEL. A plan is {FORM}."
            )
    return checked_once(PlanRequest(rung, tuple(sets), tuple(uses)))


def parse_choice(text: str) -> KernelChoice:
    """Return the kernel that `NAME` or `NAME/SPLITS` means, or the former `NAME_SPLITS`.

    Raise UsageError for a number of parts that is none.
    """
    name, slash, splits = respelled(text).partition("/")
    if not slash:
        return KernelChoice(name)
    if not (name and re.fullmatch(r"[1-9][0-9]{0,5}", splits)):
        raise UsageError(f"{text!r} is no kernel: it is written NAME or NAME/SPLITS, as gemm_split_k/4.")
    return KernelChoice(name, int(splits))


def respelled(text: str) -> str:
    """Return a text with kernels written as they are today, `NAME/SPLITS` for the former `NAME_SPLITS`."""
    return FORMER.sub(r"\1/\2", text)


def checked_once(request: PlanRequest) -> PlanRequest:
    """Return the request itself. Raise UsageError if it gives one name two values: one would be ignored."""
    for pairs in (request.sets, request.uses):
        given: dict[str, str] = {}
        for name, value in pairs:
            if given.setdefault(name, str(value)) != str(value):
                raise UsageError(f"{name} is asked to be {given[name]} and {value}: give it one value.")
    return request
