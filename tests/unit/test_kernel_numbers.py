"""A kernel file's number is that of the rung that first dispatches it, and its header says so.

A file that no rung dispatches has the number of the rung whose menu it is in.
"""

from __future__ import annotations

import re
from functools import cache

import pytest

from gputop.backends.cuda.bind import plan_launches
from gputop.model.workloads import parse_workload
from gputop.plan.plan_string import parse_choice
from gputop.plan.types import PlanRequest
from gputop.planner.resolver import Resolver, plan_dims
from gputop.util.paths import kernels_dir

SOURCES = {
    path.relative_to(kernels_dir()).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(kernels_dir().rglob("*.cu"))
    if path.parent.name != "measure"
}
HEADER = re.compile(r"// (?:Rung (?P<rung>\d+)\b|In rung (?P<menu>\d+)'s menu, no rung uses it:)")


@cache
def first_rungs() -> dict[str, int]:
    """Source -> lowest number of a rung that names a kernel of it, as an alternative too, or launches it."""
    resolver, workload = Resolver.load(), parse_workload("mini")
    found: dict[str, int] = {}
    for rung in sorted(resolver.rungs_of("cuda"), key=lambda rung: rung.number):
        named = (name for _, names in rung.use for name in ((names,) if isinstance(names, str) else names))
        sources = {resolver.kernel(parse_choice(name).kernel).source for name in named}
        plan = resolver.resolve(PlanRequest(rung.id), workload.dims, "cuda")
        dims = plan_dims(workload, plan)
        if not plan.peer:
            sources |= {launch.source for _, launch in plan_launches(resolver.steps(plan, dims), plan, dims)}
        for source in sources:
            found.setdefault(source, rung.number)
    return found


@pytest.mark.parametrize("source", SOURCES)
def test_a_files_number_is_its_first_rungs(source: str) -> None:
    number = int(source.split("/")[1].split("_")[0])
    header = HEADER.match(SOURCES[source])
    assert header, f"{source} starts with neither `// Rung N` nor `// In rung N's menu, no rung uses it:`"
    first = first_rungs().get(source)
    assert (header["menu"] is None) == (first is not None), f"{source} is used first by rung {first}"
    assert number == int(header["rung"] or header["menu"]) == (first or number)
