"""What a kernel's loops issue, by its machine code: disassembled with nvdisasm, without a device."""

from __future__ import annotations

import functools
import hashlib
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from gputop.backends.cuda.compiler.instruction_flops import warp_flops
from gputop.backends.cuda.compiler.nvrtc import Cubin
from gputop.perf.loop_mix import LoopMix, opcode_mix
from gputop.util import install_hints
from gputop.util.errors import Unavailable
from gputop.util.input_file import read_regular
from gputop.util.json_decode import BrokenJson, decode_json
from gputop.util.output_file import keep
from gputop.util.paths import cache_dir

INSTRUCTION_BYTES = 16
TENSOR = re.compile(r"HMMA|HGMMA|IMMA|DMMA")
MATH = re.compile(rf"{TENSOR.pattern}|FFMA")
NEVER = ("!PT", "@!PT")
"""A predicate that is never true: ptxas pads asynchronous copies so."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a kernel, in order."""

    opcode: str
    operands: str = ""
    predicate: str = ""


class _Function(msgspec.Struct, frozen=True):
    """A kernel in nvdisasm's listing."""

    name: str = msgspec.field(name="function-name")
    instructions: tuple[Instruction, ...] = msgspec.field(name="sass-instructions")


_listings = msgspec.json.Decoder(tuple[Any, list[_Function]])
MOST_LISTING_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class SassLoop:
    """The body of a loop: what one warp issues in one turn, both sides of a branch counted."""

    first: int
    last: int
    """Numbers of its first and last instruction in the kernel."""
    mix: Mapping[str, int]
    """Opcode -> how many, without those that never run."""

    @property
    def instructions(self) -> int:
        return sum(self.mix.values())

    @property
    def flops(self) -> float:
        """Of one turn of one warp."""
        return float(sum(count * warp_flops(opcode) for opcode, count in self.mix.items()))

    def count(self, pattern: str) -> int:
        """Instructions whose opcode begins with the pattern."""
        return sum(count for opcode, count in self.mix.items() if re.match(pattern, opcode))


def disassemble(cubin: Cubin, entry: str) -> tuple[Instruction, ...]:
    """The kernel's instructions. Unavailable without nvdisasm, with the command that mends it."""
    return _functions(cubin.code, cubin.source)[entry]


@functools.lru_cache(maxsize=4)
def _functions(code: bytes, source: str) -> dict[str, tuple[Instruction, ...]]:
    """Every kernel of a file, kept for the next time: nvdisasm takes a second, for one as for all."""
    kept = cache_dir("sass") / f"{hashlib.sha256(code).hexdigest()[:32]}.json"
    try:
        _, functions = decode_json(_listings, read_regular(kept, MOST_LISTING_BYTES))
    except (OSError, BrokenJson):
        text = _listing(code, source)
        keep(kept, text)
        _, functions = decode_json(_listings, text)
    return {function.name: function.instructions for function in functions}


def _listing(code: bytes, source: str) -> bytes:
    """nvdisasm's JSON."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(code)
        done = subprocess.run([_nvdisasm(), "-json", str(file)], capture_output=True)
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip()[:200]
        raise Unavailable(f"nvdisasm can't read {source} ({why}); {install_hints.extra('compile')}.")
    return done.stdout


def loops(code: Sequence[Instruction]) -> tuple[SassLoop, ...]:
    """Every branch that goes back, with what lies between; the branch to itself at the end is none."""
    found = []
    for last, instruction in enumerate(code):
        target = re.findall(r"0x[0-9a-f]+", instruction.operands)
        if instruction.opcode.split(".")[0] != "BRA" or not target:
            continue
        first = int(target[-1], 16) // INSTRUCTION_BYTES
        if first < last:
            body = (i.opcode for i in code[first : last + 1] if i.predicate not in NEVER)
            found.append(SassLoop(first, last, Counter(body)))
    return tuple(found)


def main_loop(code: Sequence[Instruction]) -> SassLoop | None:
    """Return the loop that multiplies and adds most of those without another such loop inside, or None.

    An instruction of tensor cores counts as the many multiply-adds that it is. Of several alike the loop that
    issues most.
    """
    working = [loop for loop in loops(code) if loop.count(MATH.pattern)]
    innermost = [loop for loop in working if not any(holds(loop, other) for other in working)]
    return max(innermost, key=lambda loop: (loop.flops, loop.instructions), default=None)


def loop_mixes(code: Sequence[Instruction]) -> tuple[LoopMix, ...]:
    """Return what each loop issues: those with most multiply-adds first, then the longest."""
    ordered = sorted(loops(code), key=lambda loop: (-loop.count(MATH.pattern), -loop.instructions))
    return tuple(LoopMix(loop.first, loop.last, opcode_mix(loop.mix)) for loop in ordered)


def holds(outer: SassLoop, inner: SassLoop) -> bool:
    """Whether a loop lies within another."""
    return outer is not inner and outer.first <= inner.first and inner.last <= outer.last


def _nvdisasm() -> str:
    found = shutil.which("nvdisasm")
    if found is None:
        try:
            from cuda.pathfinder import find_nvidia_binary_utility
        except ImportError:
            raise Unavailable(f"nvdisasm is not installed; {install_hints.extra('compile')}.") from None
        found = find_nvidia_binary_utility("nvdisasm")
    if found is None:
        raise Unavailable(f"nvdisasm is not installed; {install_hints.extra('compile')}.")
    return str(found)
