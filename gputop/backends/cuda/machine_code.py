"""A kernel's machine code without launching it: compiled here, for a device of any architecture."""

from __future__ import annotations

from collections import Counter

from gputop.backends.argument_words import pack_words
from gputop.backends.cuda.compiler.cubin import FunctionFacts
from gputop.backends.cuda.compiler.nvrtc import Cubin, arch_of, compile_source, read_text
from gputop.backends.cuda.compiler.sass import NEVER, disassemble, main_loop
from gputop.backends.cuda.compiler.sources import Sources
from gputop.plan.types import Dims, Kernel, Plan, Step, Task
from gputop.planner.kernel_calls import launches_of
from gputop.results.kernel_report import MachineCode
from gputop.util.errors import Unavailable, UsageError

SHOWN = 8
"""Opcodes of a mix."""


def machine_code(
    kernel: Kernel, task: Task, plan: Plan, dims: Dims, arch: str, sources: Sources
) -> MachineCode | None:
    """Return the code of the launch that does a task's work; None of a library's.

    `arch`: compute capability (`90`). Raise CompileFailed, and UsageError if an entry of a user's own kernel
    is missing or takes other arguments than it is given.
    """
    launch = launches_of(Step(kernel, (task,)), plan, dims)[0]
    if launch.library:
        return None
    cubin = compiled(kernel, launch.source or kernel.source, arch, sources)
    facts = _function(cubin, launch.entry)
    if kernel.record:
        check_arguments(kernel, facts, len(pack_words(launch.args, lambda _: 0)))
        _check_block(facts, launch.block)
    mix, of_loop = _mix(cubin, launch.entry)
    return MachineCode(
        str(Step(kernel, (task,)).choice),
        facts.registers,
        facts.spill_bytes,
        facts.smem_bytes,
        facts.code_bytes,
        mix,
        of_loop,
    )


def compiled(kernel: Kernel, source: str, arch: str, sources: Sources) -> Cubin:
    """Return a kernel's source compiled. Raise CompileFailed; UsageError for another architecture's."""
    path = sources.find(source)
    target = arch_of(read_text(path), arch)
    if target is None:
        raise UsageError(f"{kernel.name} ({source}) is written for another architecture than sm_{arch}.")
    return compile_source(path, source, target, sources.folders, sources.macros)


def check_arguments(kernel: Kernel, facts: FunctionFacts, given_bytes: int) -> None:
    """Raise UsageError if a kernel takes another struct than it is given: it would read beyond it."""
    if facts.parameter_bytes is not None and facts.parameter_bytes != given_bytes:
        raise UsageError(
            f"{facts.name} of {kernel.source} takes {facts.parameter_bytes} bytes of arguments, and a kernel "
            f"of {' or '.join(kernel.covers)} is given {given_bytes}: its struct is another one."
        )


def _function(cubin: Cubin, entry: str) -> FunctionFacts:
    if entry not in cubin.functions:
        there = ", ".join(sorted(cubin.functions)) or "none"
        raise UsageError(
            f'{cubin.source} has no kernel {entry!r}; it has: {there}. An entry is extern "C" __global__.'
        )
    return cubin.functions[entry]


def _check_block(facts: FunctionFacts, block: tuple[int, int, int]) -> None:
    threads = block[0] * block[1] * block[2]
    if facts.max_threads is not None and threads > facts.max_threads:
        raise UsageError(
            f"The record of {facts.name} launches {threads} threads a block, and its __launch_bounds__ allow "
            f"{facts.max_threads}."
        )


def _mix(cubin: Cubin, entry: str) -> tuple[tuple[tuple[str, int], ...], bool]:
    """The most frequent opcodes without modifiers, and whether they are a loop's; none without a tool."""
    try:
        code = disassemble(cubin, entry)
    except Unavailable:
        return (), False
    loop = main_loop(code)
    counted = loop.mix if loop else Counter(i.opcode for i in code if i.predicate not in NEVER)
    families: Counter[str] = Counter()
    for opcode, count in counted.items():
        families[opcode.partition(".")[0]] += count
    return tuple(families.most_common(SHOWN)), loop is not None
