"""Write `gputop/_data/kernel_facts/`: what NVRTC makes of our kernels. NVRTC and nvdisasm are needed.

python -m docs.write_kernel_facts [--any-compiler]
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import msgspec

from gputop.backends.cuda.compiler.code_facts import code_facts
from gputop.backends.cuda.compiler.nvrtc import arch_of, compile_source, toolchain
from gputop.cli.kernel_code import kernel_code
from gputop.perf.kernel_facts import KernelFacts, KnownKernels, file_of, known_kernels
from gputop.plan.launch_shape import CodeFacts
from gputop.planner.registry import Registry
from gputop.results.kernel_code import KernelCode
from gputop.util.paths import kernels_dir

ARCHITECTURES = ("90",)
ANY_COMPILER = "--any-compiler"
MEASURING = "measure/"
"""Sources that measure the device: no plan launches them."""


def facts_of(arch: str) -> KnownKernels:
    """Return the facts of every entry for a compute capability (`90`). Raise Unavailable without a tool."""
    found: dict[str, KernelFacts] = {}
    root = kernels_dir()
    for path in sorted(root.rglob("*.cu")):
        name = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        source_arch = arch_of(text, arch)
        if name.startswith(MEASURING) or source_arch is None:
            continue
        cubin = compile_source(path, name, source_arch, (root,))
        for entry, function in cubin.functions.items():
            code = code_facts(cubin, entry)
            if code is not None and function.registers is not None:
                found[entry] = _facts(function.registers, code, kernel_code(cubin, entry, text))
    kernels = {kernel.name: kernel.entries for kernel in Registry.load().kernels.values() if kernel.source}
    known = {name: entries for name, entries in kernels.items() if found.keys() >= set(entries)}
    return KnownKernels(
        f"sm_{arch}", f"NVRTC {toolchain().version}", dict(sorted(found.items())), dict(sorted(known.items()))
    )


def _facts(registers: int, code: CodeFacts, told: KernelCode) -> KernelFacts:
    return KernelFacts(
        registers=registers,
        smem_bytes=told.smem_bytes or 0,
        spill_bytes=told.spill_bytes or 0,
        instructions=told.instructions or 0,
        source=told.source,
        cubin=told.cubin,
        code=code,
        loops=told.loops,
    )


def _lines(known: KnownKernels) -> bytes:
    def listed(items: Mapping[str, object]) -> bytes:
        return b",\n".join(
            b" %s: %s" % (msgspec.json.encode(name), msgspec.json.encode(item))
            for name, item in items.items()
        )

    head = b'{"arch": %s, "compiler": %s' % (
        msgspec.json.encode(known.arch),
        msgspec.json.encode(known.compiler),
    )
    return head + b',\n"entries": {\n%s\n},\n"kernels": {\n%s\n}}\n' % (
        listed(known.entries),
        listed(known.kernels),
    )


def why_not(known: KnownKernels, before: KnownKernels) -> str:
    """Return why these facts must not replace those before, if another compiler made them; else nothing."""
    if not before.compiler or before.compiler == known.compiler:
        return ""
    number = before.compiler.removeprefix("NVRTC ")
    return (
        f"The file is by {before.compiler}, and this is {known.compiler}, which makes other code of every "
        f"kernel: the model would no longer hold for what was recorded. Install that one (pip install "
        f"nvidia-cuda-nvrtc=={number}.*), or write all anew with {ANY_COMPILER}."
    )


def main(words: Sequence[str]) -> int:
    for arch in ARCHITECTURES:
        known = facts_of(arch)
        why = "" if ANY_COMPILER in words else why_not(known, known_kernels(known.arch))
        if why:
            print(why, file=sys.stderr)
            return 1
        # A line an entry: what changes is seen in a diff.
        file_of(known.arch).write_bytes(_lines(known))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
