"""Activations and workspaces of a pass as C++ variables, and the function that allocates them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gputop.model import activations
from gputop.plan.types import Dims, Plan


def activation_memory(
    plan: Plan, dims: Dims, scratch: Mapping[tuple[str, str], int], names: Mapping[tuple[str, str], str]
) -> Iterator[str]:
    """Lines of declarations and of `allocate_activations`.

    `scratch`: (site, name) -> bytes; `names`: the same -> the program's variable.
    """
    buffers = activations.table(plan.prune)
    kinds = {buffer.name: "int" if buffer.dtype == "int32" else "float" for buffer in buffers}
    yield "// Activations, [rows, columns]"
    for buffer in buffers:
        declaration = f"{kinds[buffer.name]}* {buffer.name};"
        yield f"{declaration:<20} // [{buffer.rows(dims)}, {buffer.width(dims)}]"
    if names:
        yield ""
        yield "// Workspaces"
        yield from (f"Workspace {name};" for name in names.values())
    yield ""
    yield "void allocate_activations() {"
    for buffer in buffers:
        yield f"    {buffer.name} = allocate<{kinds[buffer.name]}>({buffer.size(dims)});"
    for key, name in names.items():
        yield f"    {name} = {{allocate<char>({scratch[key]})}};"
    yield "}"
