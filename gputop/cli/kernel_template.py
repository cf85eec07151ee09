"""`gputop list kernels --template SITE`: a folder with a kernel to begin with."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gputop import backends
from gputop.cli.options import request_of, workload_of
from gputop.cli.terminal import print_data, print_message
from gputop.planner.own_kernels.template import template_files
from gputop.util.errors import UsageError, unknown_name
from gputop.util.input_file import unreadable
from gputop.util.output_file import open_target

if TYPE_CHECKING:
    from gputop.plan.types import Layout
    from gputop.planner.resolver import Resolver

DEFAULT_FOLDER = "my-kernels"
LAYOUT: Layout = "row"
"""How the fastest rungs store weights; `--rung` asks for another rung's."""


def write_template(options: argparse.Namespace, catalog: Resolver) -> int:
    """Write the folder, and say what is next. Raise UsageError for no site, and for files that are there."""
    site, phase = _site(options.template, options, catalog)
    backend = backends.COMPILES if options.backend == "auto" else options.backend
    layout = LAYOUT
    if options.rung:
        plan = catalog.resolve(request_of(options, ""), workload_of(options).dims, backend)
        layout = plan.layout
    folder = Path(options.output or DEFAULT_FOLDER)
    files = template_files(site, phase, backend, layout)
    _require_room(folder, files)
    for name, text in files.items():
        open_target(str(folder / name)).write(text)
        print_data(str(folder / name))
    name = next(iter(files)).partition(".")[0]
    compared = options.rung or ("graph" if backend == backends.COMPILES else "cpu-blas")
    print_message(
        f"gputop --kernels {folder} --backend {backend} watches it; a verdict alone: "
        f"gputop compare {compared} {compared},{site}:{name} --kernels {folder}"
    )
    return 0


def _site(name: str, options: argparse.Namespace, catalog: Resolver) -> tuple[str, str]:
    """The site and its phase, whether it exists in pruned plans or in the others."""
    dims = workload_of(options).dims
    sites = {site.name: site.phase for pruned in (False, True) for site in catalog.sites(dims, pruned)}
    sites |= {phase: phase for phase in sites.values()}
    if name not in sites:
        raise unknown_name("site", name, sites)
    return name, sites[name]


def _require_room(folder: Path, files: dict[str, str]) -> None:
    """Make the folder. Raise UsageError if it can't be made, or holds one of the files: work may be in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = [name for name in files if (folder / name).exists()]
    except (OSError, ValueError) as error:
        raise unreadable(folder, "the folder for a template", error) from error
    if there:
        raise UsageError(f"{folder / there[0]} is there already: move it, or name another folder with -o.")
