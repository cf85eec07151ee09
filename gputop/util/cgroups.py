"""Limits that control groups set to this process: memory, CPU quota, number of processes.

A process is bound by its own group and by every group above it. Versions 1 and 2 are read, each controller
from where it is mounted. What can't be read limits nothing. Linux only: elsewhere there are no groups.
Source: cgroups(7), and Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst of the Linux kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
UNLIMITED_BYTES = 1 << 60
"""Version 1 writes "no limit" as the largest number of pages."""
NANO, MICRO = 1e-9, 1e-6


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """One control group, at one controller."""

    folder: Path
    unified: bool
    """Whether it is of version 2."""

    def count(self, name: str) -> int | None:
        """Return the number that a file holds; None if there is no such file, or it says `max` or -1."""
        text = _text(self.folder / name)
        return int(text) if text is not None and text.isdecimal() else None

    def field(self, name: str, key: str) -> int | None:
        """Return the number behind `key` in a file of lines `key number`."""
        found = re.search(rf"^{key} (\d+)$", _text(self.folder / name) or "", re.MULTILINE)
        return int(found[1]) if found else None


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """The group that leaves this process the least memory."""

    limit_bytes: int
    left_bytes: int
    """Limit less what the group uses; files that it keeps cached and can drop are not in use."""
    group: str
    """Its name, as `/proc/self/cgroup` spells it below the mount."""


@dataclass(frozen=True, slots=True)
class PidsLimit:
    """A group that bounds the number of processes and threads."""

    limit: int
    used: int | None
    group: str


def groups(controller: str, proc: Path = PROC) -> tuple[ControlGroup, ...]:
    """Return this process's group at `controller` (`memory`, `cpu`, `pids`), then those above it.

    `proc` is where procfs is mounted.
    """
    for name, unified, path in _memberships(proc):
        if name == controller or (unified and not name):
            top = _mount(proc, controller, unified)
            if top is None:
                continue
            root, mounted = top
            own = mounted / _below(path, root)
            chain = (own, *own.parents)
            found = tuple(ControlGroup(folder, unified) for folder in chain[: chain.index(mounted) + 1])
            if not unified or any(_has(group, controller) for group in found):
                return found
    return ()


def memory_limit(proc: Path = PROC) -> MemoryLimit | None:
    """Return the tightest memory limit, or None if there is none."""
    found = [limit for group in groups("memory", proc) if (limit := _memory_limit(group)) is not None]
    return min(found, key=lambda limit: limit.left_bytes, default=None)


def cpu_quota(proc: Path = PROC) -> float | None:
    """Return how many cores' worth of time the tightest quota allows, or None if there is none."""
    quotas = (_quota(group) for group in groups("cpu", proc))
    return min((quota for quota in quotas if quota is not None), default=None)


def throttled_s(proc: Path = PROC) -> float | None:
    """Return for how long quotas have held back this process's groups so far, each core counted.

    None if there is no quota or the kernel does not count. Of several groups with a quota the one that was
    held back longest counts.
    """
    times = (_throttled_s(group) for group in groups("cpu", proc) if _quota(group) is not None)
    return max((time_s for time_s in times if time_s is not None), default=None)


def memory_kills(proc: Path = PROC) -> int | None:
    """Return how many processes the kernel has ended so far for want of memory, in any group.

    None if it does not count (before Linux 4.13).
    """
    found = re.search(r"^oom_kill (\d+)$", _text(proc / "vmstat") or "", re.MULTILINE)
    return int(found[1]) if found else None


def pids_limit(proc: Path = PROC) -> PidsLimit | None:
    """Return the group that leaves the least room for processes and threads, or None if none is bounded."""
    found = [
        PidsLimit(limit, group.count("pids.current"), group.folder.name)
        for group in groups("pids", proc)
        if (limit := group.count("pids.max")) is not None
    ]
    return min(found, key=lambda limit: limit.limit - (limit.used or 0), default=None)


def _memory_limit(group: ControlGroup) -> MemoryLimit | None:
    if group.unified:
        # Above `high` nothing is killed, but every allocation waits.
        limits = [group.count("memory.max"), group.count("memory.high")]
        used, cached = group.count("memory.current"), group.field("memory.stat", "inactive_file")
    else:
        limits = [group.count("memory.limit_in_bytes")]
        used, cached = group.count("memory.usage_in_bytes"), group.field("memory.stat", "total_inactive_file")
    known = [limit for limit in limits if limit is not None and limit < UNLIMITED_BYTES]
    if not known or used is None:
        return None
    left_bytes = max(0, min(known) - used + (cached or 0))
    return MemoryLimit(min(known), left_bytes, group.folder.name)


def _quota(group: ControlGroup) -> float | None:
    if group.unified:
        quota, _, period = (_text(group.folder / "cpu.max") or "max").partition(" ")
        return int(quota) / int(period) if quota.isdecimal() and period.isdecimal() else None
    quota_us, period_us = group.count("cpu.cfs_quota_us"), group.count("cpu.cfs_period_us")
    return quota_us / period_us if quota_us is not None and period_us else None


def _throttled_s(group: ControlGroup) -> float | None:
    name, unit = ("throttled_usec", MICRO) if group.unified else ("throttled_time", NANO)
    count = group.field("cpu.stat", name)
    return None if count is None else count * unit


def _has(group: ControlGroup, controller: str) -> bool:
    """Return whether a group of version 2 has the controller; version 1 may hold it instead."""
    return any(group.folder.glob(f"{controller}.*"))


def _memberships(proc: Path) -> Iterator[tuple[str, bool, str]]:
    """(controller, whether of version 2, path) of every line of `self/cgroup`, `id:controllers:path`."""
    for line in (_text(proc / "self" / "cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for name in controllers.split(","):
            yield name, number == "0" and not controllers, path


def _mount(proc: Path, controller: str, unified: bool) -> tuple[str, Path] | None:
    """(root, mount point) of a hierarchy: the root is the path of the group that lies at the mount point."""
    for line in (_text(proc / "self" / "mountinfo") or "").splitlines():
        mount, _, source = line.partition(" - ")
        kind, *_, options = source.split(" ")
        fits = kind == "cgroup2" if unified else kind == "cgroup" and controller in options.split(",")
        if fits:
            _, _, _, root, point, *_ = mount.split(" ")
            return _unescaped(root), Path(_unescaped(point))
    return None


def _below(path: str, root: str) -> str:
    """The part of a group's path below the mounted root; a group outside of it is seen as the root itself."""
    inside = path == root or path.startswith(root.rstrip("/") + "/")
    return path[len(root.rstrip("/")) :].strip("/") if inside and ".." not in path.split("/") else ""


def _unescaped(text: str) -> str:
    r"""procfs writes a space as `\040`."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None
