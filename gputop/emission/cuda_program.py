"""A plan as one self-contained CUDA C++ program."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gputop.backends.cuda.bind import plan_launches
from gputop.backends.cuda.compiler.nvrtc import LOWEST_ARCH, arch_of, read_text
from gputop.backends.cuda.compiler.sources import Sources
from gputop.backends.cuda.memory import scratch_bytes
from gputop.backends.cuda.runtime.launch import FIRST_WITH_PDL
from gputop.backends.cuda.timing.events import QUEUE_DEPTH
from gputop.emission import reference_logits
from gputop.emission.activation_memory import activation_memory
from gputop.emission.cpp_text import boolean, comment, joined, rule, string, template
from gputop.emission.file_header import cuda_header
from gputop.emission.kernel_sources import KernelSources
from gputop.emission.launch_lines import StepLaunches, pass_launches, pass_lines, workspace_names
from gputop.emission.weight_tables import draw_tables, fold_table
from gputop.plan.types import STORED_MATHS, Math, Plan, Step, TensorMap, Workload
from gputop.planner.resolver import plan_dims
from gputop.util.errors import UsageError
from gputop.validation.gate import PASS_TOLERANCES

SUFFIX = ".cu"
FILL, BLOCKER = "measure/fill.cu", "measure/blocker.cu"
GEMM_STRUCT = "args.cuh"
"""The header of the struct that library products are given."""
STANDARD_HEADERS = ("algorithm", "chrono", "cmath", "cstdio", "cstdlib", "cstring", "string", "vector")
CUDA_HEADERS = ("cuda_runtime.h",)
MAP_HEADERS = ("cuda.h", "cudaTypedefs.h")
"""What templates/tensor_map.cu includes of CUDA."""
COMPUTE_TYPES: dict[Math, str] = {"fp32": "CUBLAS_COMPUTE_32F", "tf32": "CUBLAS_COMPUTE_32F_FAST_TF32"}
_ARCH = re.compile(r"sm_(\d{2,3})a?")


@dataclass(frozen=True, slots=True)
class Library:
    """A library of the vendor's that a program may call."""

    link_flag: str
    cuda_header: str
    standard_headers: tuple[str, ...]
    """What templates/<name>.cu includes of C++."""


LIBRARIES = {
    "cublas": Library("-lcublas", "cublas_v2.h", ()),
    "cublaslt": Library("-lcublasLt", "cublasLt.h", ("array", "map")),
}


@dataclass(frozen=True, slots=True)
class BuildFlags:
    """What nvcc is told, beside the file."""

    arch: str
    """`sm_90a` if a kernel's instructions exist on that architecture alone, else `sm_90`."""
    link: tuple[str, ...]

    @property
    def compile(self) -> tuple[str, ...]:
        """Return nvcc's command.

        With -arch=sm_90a alone, nvcc 13 compiles for compute_90 too, which lacks the instructions.
        """
        if self.arch.endswith("a"):
            return "-O3", "-std=c++17", f"-arch={self.arch.replace('sm', 'compute')}", f"-code={self.arch}"
        return "-O3", "-std=c++17", f"-arch={self.arch}"

    def command(self, file: str) -> str:
        """The command that builds `file`."""
        return shlex.join(("nvcc", *self.compile, file, *self.link, "-o", file.removesuffix(SUFFIX)))


@dataclass(frozen=True, slots=True)
class CudaProgram:
    """One emitted program."""

    text: str
    build: BuildFlags


def device_arch(word: str) -> str:
    """`sm_90` for `sm_90` or `sm_90a`. UsageError for anything else, and below the lowest of our kernels."""
    match = _ARCH.fullmatch(word)
    if match is None or int(match[1]) < int(LOWEST_ARCH):
        raise UsageError(f"--arch {word}: an architecture is sm_{LOWEST_ARCH} or later, for example sm_90.")
    return f"sm_{match[1]}"


def cuda_program(
    workload: Workload, plan: Plan, steps: Sequence[Step], sources: Sources, arch: str
) -> CudaProgram:
    """The program of a resolved plan. `steps`: those of its timed pass; `arch`: of the device, as `sm_90`.

    UsageError for a baseline, for a plan that stores anything but floats or that this architecture can't run,
    and for a source that is missing.
    """
    number = arch.removeprefix("sm_")
    if plan.peer:
        raise UsageError(
            f"{plan.rung} is a framework's own pass without a source here; emit writes passes of our kernels."
        )
    if plan.math in STORED_MATHS:
        raise UsageError(
            f"{plan.word} stores {plan.math}, and an emitted program floats: emit a plan in another math."
        )
    if plan.pdl and int(number) < FIRST_WITH_PDL:
        raise UsageError(
            f"pdl=on: programmatic dependent launch exists from sm_{FIRST_WITH_PDL} on, and --arch is {arch}."
        )
    dims = plan_dims(workload, plan)
    launched = pass_launches(steps, plan, dims)
    scratch = scratch_bytes(plan_launches(tuple(steps), plan, dims))
    workspaces = workspace_names(scratch)
    libraries = _libraries(launched)
    maps = _has_tensor_maps(launched)
    names = _source_names(launched)
    kernels = KernelSources(sources)
    for name in (*names, FILL, BLOCKER):
        kernels.add(name)
    if libraries:
        kernels.add_header(GEMM_STRUCT)
    build = BuildFlags(
        _target(names, sources, number), tuple(LIBRARIES[name].link_flag for name in libraries)
    )
    binary = file_stem(plan.word)
    sections = (
        comment(cuda_header(workload, plan, dims, launched, build.command(binary + SUFFIX), binary)),
        "\n".join(_includes(kernels, libraries, maps)),
        *(f"#define {macro}  // the model's activation function" for macro in sources.macros),
        kernels.text(),
        rule("The program", "="),
        "namespace program {",
        "\n".join(_constants(workload, plan, launched, libraries)),
        template("launch.cu"),
        *((template("tensor_map.cu"),) if maps else ()),
        *(template(f"{name}.cu") for name in libraries),
        template("weights.cu"),
        "\n".join((*draw_tables(plan, dims), "", *fold_table(plan))),
        template("draw_all_weights.cu"),
        "\n".join(activation_memory(plan, dims, scratch, workspaces)),
        f"void open_libraries() {{{''.join(f' open_{name}();' for name in libraries)} }}",
        "\n".join(pass_lines(launched, plan, kernels, workspaces)),
        "\n".join(reference_logits.declaration(workload, "constexpr")),
        template("main.cu"),
    )
    return CudaProgram(joined(sections), build)


def file_stem(word: str) -> str:
    """A plan's word as a file name."""
    return re.sub(r"[^\w-]+", "_", word)


def _libraries(steps: Sequence[StepLaunches]) -> tuple[str, ...]:
    return tuple(sorted({launch.library for step in steps for launch in step.launches} - {""}))


def _has_tensor_maps(steps: Sequence[StepLaunches]) -> bool:
    return any(
        isinstance(arg, TensorMap) for step in steps for launch in step.launches for arg in launch.args
    )


def _source_names(steps: Sequence[StepLaunches]) -> tuple[str, ...]:
    """The sources of all launches, in the order of their first launch."""
    named = (
        launch.source or step.step.kernel.source
        for step in steps
        for launch in step.launches
        if not launch.library
    )
    return tuple(dict.fromkeys(named))


def _target(names: Sequence[str], sources: Sources, arch: str) -> str:
    """`sm_90a` if any source needs it, else `sm_90`. UsageError for a source that does not run on `arch`."""
    targets = [f"sm_{arch}"]
    for name in names:
        target = arch_of(read_text(sources.find(name)), arch)
        if target is None:
            raise UsageError(f"{name} does not run on sm_{arch}. Choose its architecture with --arch.")
        targets.append(target)
    return max(targets, key=len)


def _includes(kernels: KernelSources, libraries: Sequence[str], maps: bool) -> Iterator[str]:
    used = [LIBRARIES[name] for name in libraries]
    standard = {*STANDARD_HEADERS, *(header for library in used for header in library.standard_headers)}
    cuda = {
        *CUDA_HEADERS,
        *(MAP_HEADERS if maps else ()),
        *kernels.system_headers,
        *(library.cuda_header for library in used),
    }
    yield from (f"#include <{header}>" for header in sorted(standard))
    yield ""
    yield from (f"#include <{header}>" for header in sorted(cuda))
    yield ""
    yield "#pragma nv_diag_suppress 177  // a header may define more than this plan uses"


def _constants(
    workload: Workload, plan: Plan, steps: Sequence[StepLaunches], libraries: Sequence[str]
) -> Iterator[str]:
    launches = sum(len(step.launches) for step in steps)
    yield f"constexpr const char* PLAN = {string(plan.word)};"
    yield f"constexpr const char* WORKLOAD = {string(workload.name)};"
    yield f"constexpr long long SEED = {workload.seed};"
    yield f"constexpr int BATCH = {plan.batch}, SEQ = {workload.dims.seq}, VOCAB = {workload.dims.vocab};"
    yield f"constexpr double TOLERANCE = {PASS_TOLERANCES[plan.math]:g};"
    yield f"constexpr bool GRAPH = {boolean(plan.graph)};"
    yield "// Whether the stream's queue takes all launches of a pass before the first one begins."
    yield f"constexpr bool FITS_QUEUE = {boolean(plan.graph or launches <= QUEUE_DEPTH)};"
    if libraries:
        yield f"constexpr bool TRANSPOSED_WEIGHTS = {boolean(plan.layout == 'transposed')};"
        yield f"constexpr cublasComputeType_t COMPUTE_TYPE = {COMPUTE_TYPES[plan.math]};"
