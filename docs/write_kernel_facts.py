"""Write `gputop/_data/kernel_facts/`: what NVRTC makes of our kernels. NVRTC and nvdisasm are needed.

python -m docs.write_kernel_facts
"""

from __future__ import annotations

import msgspec

from gputop.backends.cuda.compiler.code_facts import code_facts
from gputop.backends.cuda.compiler.nvrtc import arch_of, compile_source, toolchain
from gputop.perf.kernel_facts import KernelFacts, KnownKernels, file_of
from gputop.util.paths import kernels_dir

ARCHITECTURES = ("90",)
MEASURING = "measure/"
"""Sources that measure the device: no plan launches them."""


def facts_of(arch: str) -> KnownKernels:
    """Return the facts of every entry for a compute capability (`90`). Raise Unavailable without a tool."""
    found: dict[str, KernelFacts] = {}
    root = kernels_dir()
    for path in sorted(root.rglob("*.cu")):
        name = path.relative_to(root).as_posix()
        source_arch = arch_of(path.read_text(encoding="utf-8"), arch)
        if name.startswith(MEASURING) or source_arch is None:
            continue
        cubin = compile_source(path, name, source_arch, (root,))
        for entry, function in cubin.functions.items():
            code = code_facts(cubin, entry)
            if code is not None and function.registers is not None:
                found[entry] = KernelFacts(function.registers, function.smem_bytes, code)
    return KnownKernels(f"sm_{arch}", f"NVRTC {toolchain().version}", dict(sorted(found.items())))


def main() -> None:
    for arch in ARCHITECTURES:
        known = facts_of(arch)
        text = msgspec.json.format(msgspec.json.encode(known), indent=1)
        file_of(known.arch).write_bytes(text + b"\n")


if __name__ == "__main__":
    main()
