"""A wait of known length in one kernel of the pass: is it found, and is it as long as it was made?

The kernel is the template of a kernel of one's own, which is right for all shapes, so that both gates hold.
Two copies of it differ by the wait alone, by the device's own clock, at the kernel's begin.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.proofs.evidence import Evidence, Measured, measured_of
from benchmarks.proofs.setting import Setting
from benchmarks.proofs.windows import ALONE_S, found, pairs
from gputop.plan.plan_string import parse_word
from gputop.plan.types import Layout
from gputop.planner.own_kernels.template import template_files

SITE = "lnf"
"""Runs once a pass."""
PLAIN = f"my_{SITE}"


@dataclass(frozen=True, slots=True)
class Spin:
    """A wait as a share of the pass."""

    share: float
    label: str
    windows: int


LARGE, SMALL = Spin(0.01, "1 %", 20), Spin(0.002, "0.2 %", 40)


@dataclass(frozen=True, slots=True)
class WaitText:
    """How a wait is put into a template's source."""

    suffix: str
    begins: str
    """The line that the wait is put behind."""
    wait: str
    """With `@NS@` in the place of the nanoseconds."""
    head: str = ""
    """What the source has to begin with."""


WAITS: Mapping[str, WaitText] = {
    "cuda": WaitText(
        ".cu",
        f"{PLAIN}(const __grid_constant__ LayernormArgs args) {{",
        """
    long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); while (now - begin < @NS@);""",
    ),
    "cpu": WaitText(
        ".c",
        f"{PLAIN}(const LayernormArgs* args) {{",
        """
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while (1000000000ll * (now.tv_sec - begin.tv_sec) + now.tv_nsec - begin.tv_nsec < @NS@);""",
        "#define _POSIX_C_SOURCE 199309L\n#include <time.h>\n",
    ),
}


def write_kernels(folder: Path, backend: str, layout: Layout, waits_ns: Mapping[str, int]) -> None:
    """Write the plain kernel, and for each name one that waits."""
    files = template_files(SITE, SITE, backend, layout)
    text = WAITS[backend]
    source, record = files[PLAIN + text.suffix], files[f"{PLAIN}.toml"]
    for name, wait_ns in {PLAIN: 0, **waits_ns}.items():
        code = with_wait(source, text, wait_ns) if wait_ns else source
        (folder / f"{name}{text.suffix}").write_text(code.replace(PLAIN, name), encoding="utf-8")
        (folder / f"{name}.toml").write_text(record.replace(PLAIN, name), encoding="utf-8")


def with_wait(source: str, text: WaitText, wait_ns: int) -> str:
    """Return the source with a wait at the begin of its function. Raise ValueError for another source."""
    before, begins, rest = source.partition(text.begins)
    if not begins:
        raise ValueError(f"the template of {SITE} has no line {text.begins!r}")
    return f"{text.head}{before}{begins}{text.wait.replace('@NS@', str(wait_ns))}{rest}"


def spin(setting: Setting, kept: Evidence) -> Iterator[Measured]:
    """Yield windows of the plain kernel against those that wait for each share of the pass."""
    subjects = setting.subjects
    plain = parse_word(f"{subjects.plan},{SITE}:{PLAIN}")
    with tempfile.TemporaryDirectory(prefix="gputop-proofs-") as name:
        folder = Path(name)
        write_kernels(folder, setting.backend, subjects.layout, {})
        with setting.session(folder) as session:
            window = session.measure(plain, seconds=ALONE_S, whole=True, say=setting.say)
            (alone,) = found(measured_of("", window))
        waits_ns = {each: round(each.share * alone.device_s * 1e9) for each in (LARGE, SMALL)}
        names = {each: f"{PLAIN}_waits_{wait_ns}" for each, wait_ns in waits_ns.items()}
        by_name = {names[each]: wait_ns for each, wait_ns in waits_ns.items()}
        write_kernels(folder, setting.backend, subjects.layout, by_name)
        with setting.session(folder) as session:
            for each, wait_ns in waits_ns.items():
                slowed = parse_word(f"{subjects.plan},{SITE}:{names[each]}")
                expected = alone.device_s / (alone.device_s + wait_ns * 1e-9)
                left = each.windows - len(kept.labelled(each.label))
                yield from pairs(setting, session, plain, slowed, each.label, left, expected)
