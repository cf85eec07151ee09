"""The structs that kernels take, as kernels/include/args.cuh declares them: text, and fields in order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from gputop.util import paths

_STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"//.*")
_DECLARATION = re.compile(r"(?:const )?(int|float|TensorMap|\w+Args)\b(.*)", re.DOTALL)


@cache
def structs() -> Mapping[str, str]:
    """Return each struct's declaration by its name."""
    text = (paths.kernels_dir() / "include" / "args.cuh").read_text(encoding="utf-8")
    return {found[1]: found[0] for found in _STRUCT.finditer(text)}


@cache
def fields(struct: str) -> tuple[str, ...]:
    """Return the names of a struct's fields, in the order in which a launch's arguments fill them."""
    body = _COMMENT.sub("", structs()[struct].partition("{")[2].rpartition("}")[0])
    return tuple(
        name.strip(" *\n")
        for declaration in body.split(";")
        if (found := _DECLARATION.match(declaration.strip()))
        for name in found[2].split(",")
    )
