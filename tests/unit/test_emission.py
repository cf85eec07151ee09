"""What `gputop emit` writes: each launch as the backend makes it, sources that stand together, refusals."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gputop.backends.cuda.bind import plan_launches
from gputop.backends.cuda.compiler.sources import Sources
from gputop.backends.cuda.memory import scratch_bytes
from gputop.backends.cuda.runtime.params import pack
from gputop.cli import main
from gputop.emission.arguments import LAYER, Place, expression
from gputop.emission.c_program import c_program
from gputop.emission.cuda_program import CudaProgram, cuda_program
from gputop.emission.kernel_sources import KernelSources
from gputop.emission.launch_lines import workspace_names
from gputop.model import activations
from gputop.model.weights import BY_NAME, FOLDS, TENSORS, layer_count
from gputop.model.workloads import WORKLOADS, parse_workload
from gputop.plan.plan_string import parse_word
from gputop.plan.types import Activation, Dims, Launch, Plan, Scratch, TensorMap, View, WeightView, Workload
from gputop.planner.resolver import Resolver, plan_dims
from gputop.util.errors import UsageError
from gputop.util.paths import kernels_dir

ROOT = Path(__file__).resolve().parents[2]
ARCH = "sm_90"
SMALL = WORKLOADS[0]
OURS = [rung.id for rung in Resolver.load().rungs_of("cuda") if rung.kind != "peer" and rung.id != "bf16"]
CC = shutil.which("cc")
needs_cc = pytest.mark.skipif(CC is None, reason="there is no C compiler (cc)")


def resolved(word: str, workload: Workload = SMALL, arch: str = ARCH) -> tuple[Resolver, Plan]:
    resolver = Resolver.load().on(arch)
    rung = resolver.rung(parse_word(word).rung)
    return resolver, resolver.resolve(parse_word(word), workload.dims, rung.backend)


def emitted(word: str, workload: Workload = SMALL, arch: str = ARCH) -> CudaProgram:
    resolver, plan = resolved(word, workload, arch)
    steps = resolver.steps(plan, plan_dims(workload, plan))
    return cuda_program(workload, plan, steps, Sources.before_ours(), arch)


def test_a_plan_that_stores_bf16_is_refused() -> None:
    with pytest.raises(UsageError, match="bf16 stores bf16, and an emitted program floats"):
        emitted("bf16")


# ---- Launches: the program passes what the backend packs.

_STATEMENT = re.compile(
    r"(?:launch\((?P<kernel>\w+::\w+), Shape\{(?P<shape>\{[^{}]*\}, \{[^{}]*\}[^{}]*)\}, [\w:<>]*\{"
    r"|(?P<library>cublas\w*)\(GemmArgs\{)(?P<args>.*?)\}\);"
)
_LOOP = re.compile(r"for \(int layer = (\d+); layer < (\d+); \+\+layer\) \{(.*?)\n    \}", re.DOTALL)


class Memory:
    """Addresses as the program's expressions form them: `wqkv[layer] + 768`."""

    def __init__(self, plan: Plan, dims: Dims, scratch: dict[tuple[str, str], int]) -> None:
        self.bases: dict[str, int] = {}
        self._layer_elements: dict[str, int] = {}
        sizes = [(b.name, b.size(dims)) for b in activations.table(plan.prune)]
        sizes += [(t.name, _elements(t.shape(dims)) * layer_count(t, dims)) for t in TENSORS]
        sizes += [(f.bias, BY_NAME[f.weight].shape(dims)[0]) for f in FOLDS if f.bias not in BY_NAME]
        self.names = workspace_names(scratch)
        sizes += [(self.names[key], size) for key, size in scratch.items()]
        for tensor in TENSORS:
            self._layer_elements[tensor.name] = _elements(tensor.shape(dims))
        place = 1 << 20
        for name, elements in sizes:
            assert name not in self.bases, f"{name} stands for two things"
            self.bases[name] = place
            place += elements + 1000

    def address(self, site: str, operand: View | WeightView | Scratch) -> int:
        if isinstance(operand, Scratch):
            return self.bases[self.names[site, operand.name]]
        if isinstance(operand, View):
            return self.bases[operand.buffer] + operand.offset
        elements = self._layer_elements.get(operand.tensor, 0)
        return self.bases[operand.tensor] + operand.layer * elements + operand.offset

    def variables(self) -> dict[str, Any]:
        tensors = {
            name: Indexed(self.bases[name], self._layer_elements.get(name, 0))
            for name in (*self._layer_elements, *(f.bias for f in FOLDS))
            if name in self.bases
        }
        return {**self.bases, **tensors, "nullptr": 0}


class Indexed:
    def __init__(self, base: int, elements: int) -> None:
        self._base, self._elements = base, elements

    def __getitem__(self, layer: int) -> int:
        return self._base + layer * self._elements


def _elements(shape: tuple[int, ...]) -> int:
    return shape[0] * (shape[1] if len(shape) == 2 else 1)


def statements(text: str) -> Iterator[re.Match[str]]:
    """The statements of `enqueue_pass`, its loops unrolled."""
    body = text.split("void enqueue_pass() {\n", 1)[1].split("\n}\n", 1)[0]

    def unrolled(loop: re.Match[str]) -> str:
        first, end, inner = int(loop[1]), int(loop[2]), loop[3]
        return "".join(re.sub(rf"\b{LAYER}\b", str(i), inner) for i in range(first, end))

    body = re.sub(r"//.*", "", body)
    body = _LOOP.sub(unrolled, body)
    body = re.sub(r"\s+", " ", body)
    yield from _STATEMENT.finditer(body)
    assert not _STATEMENT.sub("", body).strip(), "something in the pass is no launch"


def passed(args: str, variables: dict[str, Any]) -> bytes:
    """The struct that an initialiser list makes: inner braces are lists of numbers, names are pointers."""
    text = re.sub(r"(?<=[\d.])f\b", "", args).replace("{", "(").replace("}", ",)")
    text = re.sub(r"\b(?!tensor_map\b)[a-z]\w*(?:\[[\d +]+\])?(?: \+ \d+)?", r"pointer(\g<0>)", text)
    names = {**variables, "pointer": pointer, "tensor_map": TensorMap}
    values = eval(f"({text},)", {"__builtins__": {}}, names)
    return pack(values, lambda view: view.offset if isinstance(view, View) else 0, encoded)


def pointer(address: int) -> View:
    return View("", 0, 0, 0, 0, address)


def encoded(tensor: TensorMap, address: int) -> bytes:
    return repr((address, tensor.sizes, tensor.strides, tensor.box)).encode()


@pytest.mark.parametrize("word", [*OURS, "flash,batch=3", "split-k,prune=on,fold=on", "hopper,qkv:cublas"])
def test_the_program_launches_what_the_backend_launches(word: str) -> None:
    resolver, plan = resolved(word)
    dims = plan_dims(SMALL, plan)
    steps = resolver.steps(plan, dims)
    launches = list(plan_launches(steps, plan, dims))
    memory = Memory(plan, dims, scratch_bytes(launches))
    written = list(statements(emitted(word).text))
    assert len(written) == len(launches)
    for statement, (site, launch) in zip(written, launches, strict=True):
        if launch.library:
            assert statement["library"].startswith(launch.library)
        else:
            assert statement["kernel"].endswith(f"::{launch.entry}")
            assert _numbers(statement["shape"]) == _shape(launch, plan)
        expected = pack(launch.args, lambda operand, site=site: memory.address(site, operand), encoded)  # type: ignore[misc]
        assert passed(statement["args"], memory.variables()) == expected, statement[0]


def _numbers(shape: str) -> tuple[tuple[int, ...], int, int, frozenset[str]]:
    numbers = [int(n) for n in re.findall(r"\b\d+\b", shape)]
    smem, cluster = (*numbers[6:], *(0, 1)[len(numbers) - 6 :])
    return tuple(numbers[:6]), smem, cluster, frozenset(re.findall("[A-Z_]{3,}", shape)) - {"PLAIN"}


def _shape(launch: Launch, plan: Plan) -> tuple[tuple[int, ...], int, int, frozenset[str]]:
    flags = {
        "COOPERATIVE": launch.cooperative,
        "DEPENDENT": launch.pdl and plan.pdl,
        "MOST_SMEM": plan.carveout == "shared",
    }
    wanted = frozenset(name for name, on in flags.items() if on)
    return (*launch.grid, *launch.block), launch.smem_bytes, launch.cluster, wanted


def test_equal_layers_are_one_loop() -> None:
    body = emitted("hopper").text.split("void enqueue_pass() {\n", 1)[1].split("\n}\n", 1)[0]
    assert body.count("for (int layer = 0; layer < 11; ++layer) {") == 1
    assert body.count("gemm_11_warpgroup::") == 5, "four products of a layer, and the last one's kv"


def test_an_argument_of_an_unknown_type_is_refused() -> None:
    with pytest.raises(UsageError, match="an argument of type complex, which qkv takes"):
        expression(1j, Place("qkv", 0, {}))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="can't write inf"):
        expression(float("inf"), Place("qkv", 0, {}))


# ---- Sources


def test_every_header_stands_once_and_before_its_users() -> None:
    text = emitted("megakernel").text
    sections = re.findall(r"^// ---- (kernels/\S+) -+$", text, re.MULTILINE)
    assert len(sections) == len(set(sections))
    assert sections.index("kernels/include/args.cuh") < sections.index("kernels/include/epilogue.cuh")
    assert sections.index("kernels/include/epilogue.cuh") < sections.index(
        "kernels/megakernel/17_persistent.cu"
    )
    assert '#include "' not in text
    assert "#pragma once" not in text
    assert 'extern "C"' not in text
    assert "// Rung 17, the whole pass as one cooperative launch" in text, "kernels keep their comments"


def own_kernels(folder: Path, source: str, header: str = "") -> KernelSources:
    (folder / "gemm").mkdir()
    (folder / "gemm" / "own.cu").write_text(source)
    if header:
        (folder / "gemm" / "own.cuh").write_text(header)
    return KernelSources(Sources.before_ours(folder))


def test_a_source_of_a_users_own_is_taken_with_its_headers(tmp_path: Path) -> None:
    source = (
        '#include <mma.h>\n#include "own.cuh"\n#define TILE 4\nextern "C" __global__ void k(Own args) {}\n'
    )
    sources = own_kernels(tmp_path, source, '#pragma once\n#include "args.cuh"\nstruct Own { int a; };\n')
    sources.add("gemm/own.cu")
    text = sources.text()
    assert list(sources.system_headers) == ["mma.h"]
    assert text.index("struct GemmArgs") < text.index("struct Own") < text.index("namespace gemm_own {")
    assert text.index("#define TILE 4") < text.index("#undef TILE") < text.index("}  // namespace gemm_own")
    assert sources.parameter("gemm/own.cu", "k") == "Own"


def test_a_struct_of_the_source_itself_is_named_by_its_namespace(tmp_path: Path) -> None:
    sources = own_kernels(
        tmp_path, "struct Own { int a; };\n__global__ void k(const __grid_constant__ Own args) {}\n"
    )
    sources.add("gemm/own.cu")
    assert sources.parameter("gemm/own.cu", "k") == "gemm_own::Own"


def test_an_entry_that_a_macro_makes_is_given_bare_braces(tmp_path: Path) -> None:
    sources = own_kernels(
        tmp_path, "#define K(name) __global__ void name(GemmArgs args) {}\nK(k_8)  // not k_4\n"
    )
    sources.add("gemm/own.cu")
    assert sources.parameter("gemm/own.cu", "k_8") == ""
    with pytest.raises(UsageError, match="no kernel 'k_4'"):
        sources.parameter("gemm/own.cu", "k_4")


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ('#include "gone.cuh"\n', "gemm/own.cu includes 'gone.cuh', which is not found"),
        ("__global__ void other(GemmArgs args) {}\n", "no kernel 'k' that takes one struct by value"),
        ("__global__ void k(int a, int b) {}\n", "no kernel 'k' that takes one struct by value"),
        ("__device__ void k(GemmArgs args) {}\n", "no kernel 'k' that takes one struct by value"),
    ],
)
def test_a_source_that_can_not_be_written_is_refused(source: str, why: str, tmp_path: Path) -> None:
    sources = own_kernels(tmp_path, source)

    def written() -> None:
        sources.add("gemm/own.cu")
        sources.parameter("gemm/own.cu", "k")

    with pytest.raises(UsageError, match=re.escape(why)):
        written()


# ---- The command


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("torch-eager",), "a framework's own pass"),
        (("cpu-blas",), "writes only cpu-loops"),
        (("cpu-loops", "--set", "fold=on"), "writes only cpu-loops"),
        (("cpu-loops", "--batch", "2"), "writes only cpu-loops"),
        (("hoper",), "Did you mean 'hopper'?"),
        (("hopper", "--arch", "sm_80"), "its instructions exist on sm_90 only"),
        (("graph", "--set", "pdl=on", "--arch", "sm_80"), "exists from sm_90 on, and --arch is sm_80"),
        (("naive", "--arch", "sm_75"), "an architecture is sm_80 or later"),
        (("naive", "--arch", "90"), "an architecture is sm_80 or later"),
        (("cpu-loops", "--kernels", "."), "would change nothing"),
        (("naive", "-o", "no-such-folder/a.cu"), "there is no folder"),
        (("naive", "--rung", "graph"), "Unknown option --rung"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_can_not_be_written_is_answered_by_a_sentence(
    words: tuple[str, ...], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(("emit", *words)) == 2
    streams = capsys.readouterr()
    assert why in streams.err
    assert streams.out == ""


def test_a_file_and_stdout_get_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    file = tmp_path / "split.cu"
    words = ("emit", "split-k", "--workload", "tiny")
    ran = [
        subprocess.run(
            [sys.executable, "-m", "gputop", *words, *output],
            env={"PYTHONHASHSEED": seed, "XDG_CACHE_HOME": str(tmp_path)},
            capture_output=True,
            check=True,
            timeout=60,
        )
        for seed, output in (("1", ()), ("2", ("-o", str(file))))
    ]
    assert ran[0].stdout == file.read_bytes()
    assert ran[1].stdout == b""
    assert f"nvcc -O3 -std=c++17 -arch=sm_90 {file} -o {tmp_path / 'split'}" in ran[1].stderr.decode()


def test_a_file_is_written_without_what_reaches_a_gpu(tmp_path: Path) -> None:
    code = (
        "import sys; from gputop.cli import main; main(('emit', 'graph', '-o', sys.argv[1]));"
        "print([name for name in ('cupy', 'cuda', 'nvmath', 'torch', 'textual') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a.cu")],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "[]\n"


def test_the_header_says_what_to_do_with_the_file() -> None:
    program = emitted("tournament")
    header = program.text.split("\n\n", 1)[0]
    assert (
        "//   nvcc -O3 -std=c++17 -arch=compute_90a -code=sm_90a tournament.cu -lcublasLt -o tournament\n"
        in header
    )
    assert "captured into one graph" in header
    assert "takes the one that the library's heuristic names first" in " ".join(header.split("\n// "))
    assert "layernorm_row_in_registers  128x1x1" in header
    assert max(map(len, program.text.splitlines())) <= 130


def documented() -> list[str]:
    """Every `gputop emit` of the pages, without where its output goes."""
    pages = [ROOT / "README.md", ROOT / "docs" / "emit.md"]
    lines = [
        line for page in pages for line in page.read_text().splitlines() if line.startswith("gputop emit ")
    ]
    return [re.split(r"\s{2,}| \| | -o ", line)[0] for line in lines]


@pytest.mark.parametrize("line", dict.fromkeys(documented()))
def test_the_pages_commands_work(line: str, tmp_path: Path) -> None:
    file = tmp_path / "program"
    assert main((*line.split()[1:], "-o", str(file))) == 0
    assert file.read_text().startswith("// Plan ")


def test_a_file_carries_a_part_of_a_large_vocabulary_and_says_so() -> None:
    text = emitted("naive", ODD).text
    assert "checks the first 256 of 300 against" in " ".join(text.split("\n// "))
    assert len(text.split("REFERENCE[REFERENCE_LOGITS] = {", 1)[1].split("}", 1)[0].split(",")) == 257


def test_a_users_own_kernel_is_written_in_place_of_ours(tmp_path: Path) -> None:
    ours = (kernels_dir() / "gemm" / "01_naive.cu").read_text()
    (tmp_path / "gemm").mkdir()
    (tmp_path / "gemm" / "01_naive.cu").write_text(f"// Mine.\n{ours}")
    file = tmp_path / "mine.cu"
    assert main(("emit", "naive", "--kernels", str(tmp_path), "-o", str(file))) == 0
    assert "namespace gemm_01_naive {\n\n// Mine.\n" in file.read_text()


# ---- cpu-loops


def built(text: str, folder: Path) -> Path:
    source, binary = folder / "loops.c", folder / "loops"
    source.write_text(text)
    command = ["cc", "-O3", "-Wall", "-Wextra", "-Werror", str(source), "-o", str(binary), "-lm"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return binary


def loops(workload: Workload) -> str:
    _, plan = resolved("cpu-loops", workload)
    return c_program(workload, plan)


ODD_SIZES = Dims(
    layers=1, d_model=21, heads=3, d_ff=50, seq=5, vocab=300, activation="gelu_new", tied_head=True
)
ODD = Workload('a "name" 100%s, \\', ODD_SIZES, seed=7)
GELU = Workload("exact", replace(ODD_SIZES, activation="gelu", tied_head=False))


@pytest.mark.parametrize(("activation", "macro"), [("relu", None), ("gelu_new", "GELU_TANH")])
def test_a_program_has_the_models_activation(activation: Activation, macro: str | None) -> None:
    workload = Workload("two", replace(parse_workload("mini").dims, activation=activation))
    resolver, plan = resolved("graph", workload)
    steps = resolver.steps(plan, plan_dims(workload, plan))
    sources = Sources.before_ours(activation=activation)
    text = cuda_program(workload, plan, steps, sources, ARCH).text
    defined = re.findall(r"^#define (GELU\w*)", text, re.M)
    assert defined == ([macro] if macro else [])
    if macro:
        assert text.index(f"#define {macro}") < text.index("kernels/include/activation.cuh")
        assert "GELU (tanh)" in text


@needs_cc
@pytest.mark.parametrize(
    "workload",
    [
        *map(parse_workload, ("tiny", "mini")),
        ODD,
        GELU,
        pytest.param(parse_workload("gpt2-small"), marks=pytest.mark.thorough),
    ],
    ids=lambda workload: workload.name,
)
def test_the_c_program_gives_the_logits_of_the_reference(
    workload: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    binary = built(loops(workload), tmp_path)
    done = subprocess.run([str(binary), "0"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    assert f"plan cpu-loops, {workload.name}, seed {workload.seed}, one core" in done.stdout
    found = re.search(
        r"logits (\S+) (\S+), reference (\S+) (\S+), error (\S+) of 1e-05 allowed: PASS", done.stdout
    )
    assert found is not None, done.stdout
    one, two, first, second, error = map(float, found.groups())
    assert (one, two) == pytest.approx((first, second), abs=2e-6)
    assert error < 3e-6


@needs_cc
def test_the_c_program_shows_no_time_for_wrong_logits(tmp_path: Path) -> None:
    text = loops(parse_workload("tiny"))
    wrong = re.sub(r"(REFERENCE_LOGITS\] = \{\n    )[^,]+", r"\g<1>9.0", text)
    assert wrong != text
    done = subprocess.run([str(built(wrong, tmp_path)), "1"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "FAIL" in done.stdout
    assert " ms" not in done.stdout


@needs_cc
def test_the_c_program_times_as_many_passes_as_it_is_told(tmp_path: Path) -> None:
    binary = built(loops(parse_workload("tiny")), tmp_path)
    done = subprocess.run([str(binary), "5"], capture_output=True, text=True, timeout=60)
    assert "median of 5 passes" in done.stdout
    assert subprocess.run([str(binary), "-1"], capture_output=True, timeout=60).returncode == 2
