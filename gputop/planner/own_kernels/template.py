"""A folder to begin with: a kernel that is right for one site, and its record."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources

from gputop.plan.types import Layout
from gputop.planner.own_kernels.families import FAMILIES, Family
from gputop.planner.own_kernels.struct_fields import structs

SUFFIX = {"cuda": ".cu", "cpu": ".c"}


@dataclass(frozen=True, slots=True)
class LaunchLines:
    """How the template of a family is launched, as lines of its record."""

    lines: tuple[str, ...]
    options: tuple[str, ...] = ()
    """What could be said too, as comments."""


LAUNCHES = {
    "product": LaunchLines(
        (
            "tile = [16, 16, 16]          # rows and columns of output of a block, and its inner step",
            "block = [16, 16]             # threads along x, y, z",
            'grid = ["columns / tile_columns", "rows / tile_rows"]   # blocks along x, y, z; / rounds up',
        ),
        (
            "stages = [2, 3]              # if it keeps several steps in shared memory: {stages} in entry",
            "splits = [1, 2, 4]           # parts of the inner axis that it can be divided into: my_kernel/4",
            'reduce = "my_kernel_reduce"  # a function that adds the parts, launched with a thread an output',
            'takes = { inner = { multiple = 16, least = 16, most = 4096 } }',
        ),
    ),
    "layernorm": LaunchLines(
        (
            "block = 128                  # threads: four warps",
            'grid = "rows / 4"            # blocks; / rounds up',
        ),
        ("takes = { columns = { multiple = 4, most = 1024 } }",),
    ),
    "attention": LaunchLines(
        (
            "block = 128                  # threads: four warps",
            'grid = ["queries / 4", "heads", "batch"]   # blocks along x, y, z; / rounds up',
            "takes = { d_head = { most = 256 } }",
        ),
    ),
    "embedding": LaunchLines(
        (
            "block = 256                  # threads",
            'grid = ["columns / 256", "rows"]   # blocks along x, y; / rounds up',
        ),
    ),
}  # fmt: skip
COMMON_OPTIONS = (
    'smem_bytes = "tile_rows * 1024"   # dynamic shared memory of a block, by the same arithmetic',
    "cluster = 2                  # blocks of a cluster along x, on sm_90",
    "pdl = true                   # it calls griddep_wait() before it reads what an earlier kernel wrote",
)


def template_files(site: str, phase: str, backend: str, layout: Layout) -> dict[str, str]:
    """Return name -> text of a kernel's source and record for one site of a phase.

    `layout`: how w lies, if the phase is a product.
    """
    family = next(family for family in FAMILIES if phase in family.phases)
    name = "my_" + "".join(letter if letter.isalnum() else "_" for letter in site)
    source = (resources.files(__package__) / "templates" / f"{family.name}{SUFFIX[backend]}").read_text(
        "utf-8"
    )
    by_rows = layout == "row"
    wanted = {
        "@ENTRY@": name,
        "@W_BY_ROWS@": str(by_rows).lower() if backend == "cuda" else str(int(by_rows)),
        "@STRUCT@": _c_struct(family.struct),
    }
    for mark, text in wanted.items():
        source = source.replace(mark, text)
    record = _record(family, name, site, phase, backend, layout)
    return {f"{name}{SUFFIX[backend]}": source, f"{name}.toml": record}


def _record(family: Family, name: str, site: str, phase: str, backend: str, layout: Layout) -> str:
    where = f'phases = ["{phase}"]' if site == phase else f'site = "{site}"'
    source = f"{name}{SUFFIX[backend]}"
    lines = [
        f"# A kernel for {site}. Save this file or {source} while gputop runs with --kernels:",
        "# it is compiled, checked, and measured against the kernel whose place it would take.",
        f'entry = "{name}"',
        f"{where:<28} # {_where_hint(family)}",
        'idea = "What it does differently."',
        'math = ["fp32", "tf32"]      # of the plans that it may serve',
    ]
    if family.divides:
        said = f'layout = "{layout}"'
        lines.append(f"{said:<28} # w is [columns, inner] in row, [inner, columns] in transposed")
    launch = LAUNCHES[family.name]
    if backend == "cuda":
        options = (*launch.options, *COMMON_OPTIONS)
        lines += [*launch.lines, "", "# What it may say besides:", *(f"# {option}" for option in options)]
    sizes = ", ".join(family.sizes)
    lines += ["", f"# Sizes that grid, smem_bytes and takes may name: {sizes}."] if backend == "cuda" else []
    return "\n".join(lines) + "\n"


def _where_hint(family: Family) -> str:
    return f'of {", ".join(family.phases)}; or site = "NAME" for one site alone'


def _c_struct(name: str) -> str:
    """The struct as C declares it."""
    return (
        structs()[name].replace(f"struct {name} {{", f"typedef struct {name} {{").replace("};", f"}} {name};")
    )
