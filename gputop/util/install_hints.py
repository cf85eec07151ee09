"""Commands that add, repair or remove packages of the gputop that runs, by the tool that installed it."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from gputop.util import paths

DISTRIBUTION = "gputop-roofline"


@dataclass(frozen=True, slots=True)
class Installer:
    """One tool's commands. `{python}` is the Python that runs gputop, `{environment}` its name in pipx."""

    install: str
    upgrade: str
    again: str
    """Installs what is recorded as installed once more, without what it depends on."""
    uninstall: str


PIP = Installer(
    "{python} -m pip install{force}",
    "{python} -m pip install{force} --upgrade",
    "{python} -m pip install{force} --force-reinstall --no-deps",
    "{python} -m pip uninstall{force} --yes",
)
PIPX = Installer(
    "pipx inject {environment}",
    "pipx runpip {environment} install --upgrade",
    "pipx runpip {environment} install --force-reinstall --no-deps",
    "pipx runpip {environment} uninstall --yes",
)
UV = Installer(
    "uv pip install --python {python}",
    "uv pip install --python {python} --upgrade",
    "uv pip install --python {python} --reinstall --no-deps",
    "uv pip uninstall --python {python}",
)


def extra(names: str) -> str:
    """Return the command that adds one extra, or several separated by commas.

    `make` does it in a checkout's own environment, unless it has done so: it would not look again.
    """
    root = paths.checkout()
    if root is None or Path(sys.prefix) != root / ".venv":
        return install(f"{DISTRIBUTION}[{names}]")
    here = _short(root)
    if (root / ".venv" / f".installed-{names}").exists():
        return f"{_filled(PIP.install)} --editable {shlex.quote(f'{root}[{names}]')}"
    return f"make {'' if here == '.' else f'-C {here} '}run EXTRAS={names}"


def install(requirement: str) -> str:
    """Return the command that adds a package: `python3 -m pip install 'numpy>=2'`."""
    return f"{_filled(_installer().install)} {shlex.quote(requirement)}"


def upgrade(requirement: str) -> str:
    """Return the command that brings a package to the newest version that the requirement allows."""
    return f"{_filled(_installer().upgrade)} {shlex.quote(requirement)}"


def install_again(distribution: str) -> str:
    """Return the command that repairs a package which is recorded as installed and can't be imported."""
    return f"{_filled(_installer().again)} {shlex.quote(distribution)}"


def uninstall(*distributions: str) -> str:
    """Return the command that removes packages, without a question."""
    return f"{_filled(_installer().uninstall)} {shlex.join(distributions)}"


def requirement_of(distribution: str) -> str:
    """Return what gputop asks of a package, `numpy<3,>=2.0`; its bare name if gputop asks for none."""
    import importlib.metadata

    try:
        asked = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        asked = []
    found = (line.partition(";")[0].strip() for line in asked)
    return next(
        (line for line in found if re.match(rf"{re.escape(distribution)}($|[^\w.-])", line)), distribution
    )


def is_recorded(distribution: str) -> bool:
    """Return whether this environment lists a package as installed, whatever is left of its files."""
    import importlib.metadata

    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _installer() -> Installer:
    """The tool that keeps this environment. Those of pipx and uv have no pip as a rule."""
    if (Path(sys.prefix) / "pipx_metadata.json").exists():
        return PIPX
    if importlib.util.find_spec("pip") is not None:
        return PIP
    return UV if shutil.which("uv") or _made_by_uv() else _ENSURED


def _made_by_uv() -> bool:
    prefix = Path(sys.prefix)
    try:
        return (
            prefix / "uv-receipt.toml"
        ).exists() or "\nuv = " in f"\n{(prefix / 'pyvenv.cfg').read_text()}"
    except OSError:
        return False


def _with_ensurepip(installer: Installer) -> Installer:
    """Return the command for an environment without an installer: Python brings pip."""
    first = "{python} -m ensurepip && "
    return Installer(
        first + installer.install,
        first + installer.upgrade,
        first + installer.again,
        first + installer.uninstall,
    )


_ENSURED = _with_ensurepip(PIP)


def _filled(command: str) -> str:
    environment = shlex.quote(Path(sys.prefix).name)
    return command.format(python=_python(), environment=environment, force=_force())


def _force() -> str:
    """Return the option that pip needs outside a virtual environment if a distribution manages Python (PEP
    668).
    """
    kept = sys.prefix == sys.base_prefix and Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED").exists()
    return " --break-system-packages" if kept else ""


def _python() -> str:
    """Return `python` if that is what the shell would run, else the full path.

    Links are not resolved: a virtual environment's Python links to the system's and must not pass for it.
    """
    path = Path(sys.executable)
    found = shutil.which(path.name)
    if found is not None and Path(found).absolute() == path:
        return path.name
    return _short(path)


def _short(path: Path) -> str:
    """Return the path relative to this folder or to home if it lies below one of them, quoted for a shell."""
    try:
        return shlex.quote(str(path.relative_to(Path.cwd())))
    except (ValueError, OSError):
        pass
    home = os.path.expanduser("~")
    if path.is_relative_to(home):
        return f"~/{shlex.quote(str(path.relative_to(home)))}"
    return shlex.quote(str(path))
