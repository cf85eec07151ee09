"""Limits of control groups: files of both versions as kernels write them, and a real group."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputop.util import cgroups
from gputop.util.cgroups import MemoryLimit, PidsLimit

V1_UNLIMITED = "9223372036854771712\n"


class Host:
    """A procfs and a cgroup file system in a folder."""

    def __init__(self, folder: Path) -> None:
        self.proc = folder / "proc"
        self.mounted = folder / "cgroup fs"
        (self.proc / "self").mkdir(parents=True)
        self.mounted.mkdir()
        self._mounts = ["24 1 0:22 / /proc rw - proc proc rw"]

    def member(self, *lines: str) -> None:
        (self.proc / "self" / "cgroup").write_text("".join(f"{line}\n" for line in lines))

    def mount(self, name: str, kind: str, options: str, root: str = "/") -> Path:
        """Mount point of a hierarchy; procfs writes the space in it as an octal number."""
        point = self.mounted / name
        point.mkdir(exist_ok=True)
        spelled = str(point).replace(" ", r"\040")
        self._mounts.append(f"31 23 0:28 {root} {spelled} rw,relatime shared:9 - {kind} cgroup {options}")
        (self.proc / "self" / "mountinfo").write_text("\n".join(self._mounts) + "\n")
        return point


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_version_2_is_bound_by_the_own_group_and_all_above(host: Host) -> None:
    host.member("0::/user.slice/app.scope")
    top = host.mount("unified", "cgroup2", "rw,nsdelegate")
    write(top, cpu__stat="usage_usec 5\n")
    write(
        top / "user.slice",
        memory__max="3000000\n",
        memory__high="max\n",
        memory__current="2500000\n",
        memory__stat="anon 1000000\ninactive_file 400000\n",
        cpu__max="150000 100000\n",
        cpu__stat="nr_throttled 7\nthrottled_usec 1500000\n",
        pids__max="100\n",
        pids__current="97\n",
    )
    write(
        top / "user.slice" / "app.scope",
        memory__max="max\n",
        memory__current="2000000\n",
        memory__stat="inactive_file 0\n",
        cpu__max="max 100000\n",
        cpu__stat="nr_throttled 0\nthrottled_usec 9000000\n",
        pids__max="50\n",
        pids__current="3\n",
    )
    assert cgroups.memory_limit(host.proc) == MemoryLimit(3_000_000, 900_000, "user.slice")
    assert cgroups.cpu_quota(host.proc) == 1.5
    assert cgroups.throttled_s(host.proc) == 1.5, "a group without a quota holds nothing back"
    assert cgroups.pids_limit(host.proc) == PidsLimit(100, 97, "user.slice"), "3 are left there, 47 below"


def test_high_bounds_memory_before_max_does(host: Host) -> None:
    host.member("0::/a")
    top = host.mount("unified", "cgroup2", "rw")
    write(top / "a", memory__max="9000\n", memory__high="4000\n", memory__current="1000\n", memory__stat="")
    assert cgroups.memory_limit(host.proc) == MemoryLimit(4000, 3000, "a")


def test_version_1_has_a_path_of_its_own_for_each_controller(host: Host) -> None:
    host.member("9:cpu,cpuacct:/docker/ab", "4:memory:/jobs/7", "3:pids:/", "1:name=systemd:/init.scope")
    cpu = host.mount("cpu,cpuacct", "cgroup", "rw,cpu,cpuacct")
    memory = host.mount("memory", "cgroup", "rw,memory")
    pids = host.mount("pids", "cgroup", "rw,pids")
    write(cpu / "docker" / "ab", cpu__cfs_quota_us="50000\n", cpu__cfs_period_us="100000\n")
    write(cpu / "docker" / "ab", cpu__stat="nr_periods 9\nnr_throttled 4\nthrottled_time 3500000000\n")
    write(cpu / "docker", cpu__cfs_quota_us="-1\n", cpu__cfs_period_us="100000\n")
    write(memory / "jobs", memory__limit_in_bytes=V1_UNLIMITED, memory__usage_in_bytes="77\n")
    write(
        memory / "jobs" / "7",
        memory__limit_in_bytes="1000\n",
        memory__usage_in_bytes="900\n",
        memory__stat="inactive_file 1\ntotal_inactive_file 50\n",
    )
    write(pids, pids__current="50\n")
    assert cgroups.cpu_quota(host.proc) == 0.5
    assert cgroups.throttled_s(host.proc) == 3.5
    assert cgroups.memory_limit(host.proc) == MemoryLimit(1000, 150, "7")
    assert cgroups.pids_limit(host.proc) is None


def test_a_controller_of_version_1_is_found_beside_version_2(host: Host) -> None:
    host.member("4:memory:/a", "0::/a")
    write(host.mount("unified", "cgroup2", "rw") / "a", cgroup__procs="1\n", cpu__max="20000 10000\n")
    limits = {"memory.limit_in_bytes": "500\n", "memory.usage_in_bytes": "0\n"}
    write(host.mount("memory", "cgroup", "rw,memory") / "a", **limits)
    assert cgroups.cpu_quota(host.proc) == 2.0
    limit = cgroups.memory_limit(host.proc)
    assert limit is not None
    assert limit.limit_bytes == 500


@pytest.mark.parametrize(
    ("path", "root"),
    [
        ("/docker/ab", "/docker/ab"),
        ("/docker/ab/child", "/docker/ab"),
        ("/../../elsewhere", "/"),
        ("/docker/ab", "/docker/a"),
    ],
)
def test_in_a_container_the_mount_shows_its_own_group(host: Host, path: str, root: str) -> None:
    host.member(f"0::{path}")
    top = host.mount("unified", "cgroup2", "rw", root)
    write(top, cpu__max="10000 100000\n")
    write(top / "child", cpu__max="max 100000\n")
    assert cgroups.cpu_quota(host.proc) == 0.1


def test_what_can_not_be_read_limits_nothing(host: Host) -> None:
    for _ in ("no file at all", "no mount", "no group"):
        assert cgroups.memory_limit(host.proc) is None
        assert cgroups.cpu_quota(host.proc) is None
        assert cgroups.throttled_s(host.proc) is None
        assert cgroups.pids_limit(host.proc) is None
        assert cgroups.memory_kills(host.proc) is None
        host.member("0::/a", "garbage", "4:memory")
        if _ == "no mount":
            top = host.mount("unified", "cgroup2", "rw")
            write(top / "a", cpu__max="many 0\n", memory__max="\n", pids__max="max\n", memory__current="x")


def test_kills_for_want_of_memory_are_counted_for_the_machine(host: Host) -> None:
    (host.proc / "vmstat").write_text("pgfault 1\noom_kill 3\nnr_oom_kill 9\n")
    assert cgroups.memory_kills(host.proc) == 3


@given(st.lists(st.one_of(st.none(), st.tuples(st.integers(1, 400), st.integers(1, 400))), max_size=5))
def test_the_tightest_quota_of_a_chain_counts(
    tmp_path_factory: pytest.TempPathFactory, chain: list[tuple[int, int] | None]
) -> None:
    host = Host(tmp_path_factory.mktemp("host"))
    host.member("0::/" + "/".join("g" for _ in chain))
    folder = host.mount("unified", "cgroup2", "rw")
    write(folder, cpu__stat="")
    for quota in chain:
        folder = folder / "g"
        write(folder, cpu__max="max 100000\n" if quota is None else f"{quota[0]}000 {quota[1]}000\n")
    expected = min((quota / period for quota, period in filter(None, chain)), default=None)
    assert cgroups.cpu_quota(host.proc) == expected
