# SPDX-License-Identifier: Apache-2.0
"""The resources of this host: cores, memory, instructions."""

import os
import resource
from collections.abc import Iterator
from pathlib import Path

CONTAINER_MEMORY = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
OWN_GROUPS = "/proc/self/cgroup"
GROUPS = "/sys/fs/cgroup"
KERNEL = "/proc/sys/kernel"
# A quota of processor time, and the period that it is for: of a group of the second version, and of
# the first.
QUOTA = ("cpu.max",)
FIRST_QUOTA = ("cpu.cfs_quota_us", "cpu.cfs_period_us")


def cores() -> int:
    """Hardware threads that this process may use, or as many as the least quota of its control
    groups keeps busy."""
    return min([len(os.sched_getaffinity(0)), *_quotas()])


def _quotas() -> Iterator[int]:
    for folder, files in _groups():
        try:
            quota, period = (int(n) for f in files for n in (folder / f).read_text().split())
        except (OSError, ValueError):  # "max", say
            continue
        if quota > 0 and period > 0:
            yield -(-quota // period)


def _groups(controller: str = "cpu") -> Iterator[tuple[Path, tuple[str, ...]]]:
    """The groups for processor time, or another controller, that this process is in, up to the root, and the
    files of their quotas; as host/processes/control_groups.h finds them. None if the kernel does not tell."""
    try:
        lines = Path(OWN_GROUPS).read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]  # "number:controllers:path"
        own = Path(path.lstrip("/"))
        for group in (own, *own.parents):
            if path and not controllers:
                yield Path(GROUPS) / group, QUOTA
            elif controller in controllers.split(","):
                yield Path(GROUPS) / controller / group, FIRST_QUOTA


def most_processes() -> tuple[int, str]:
    """How many processes there may be at once, and the limit that says so."""
    limits = []
    for name in ("pid_max", "threads-max"):
        try:
            limits.append((int(Path(KERNEL, name).read_text()), f"kernel.{name}"))
        except (OSError, ValueError):
            continue
    of_user, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if of_user != resource.RLIM_INFINITY and os.geteuid() != 0:  # it does not bind root
        limits.append((of_user, "ulimit -u"))
    for folder, _ in _groups("pids"):
        try:
            limits.append((int((folder / "pids.max").read_text()), f"{folder}/pids.max"))
        except (OSError, ValueError):  # "max", say
            continue
    return min(limits, default=(1 << 22, "kernel.pid_max"))


def physical_cores() -> int:
    """Cores with hyperthreads folded together: the slots of Open MPI."""
    seen = set()
    for cpu in os.sched_getaffinity(0):
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        try:
            seen.add(siblings.read_text().strip())
        except OSError:
            seen.add(str(cpu))
    return len(seen)


def cpu_flags() -> set[str]:
    """The flags of the first processor in /proc/cpuinfo (`flags` on x86, `Features` on Arm)."""
    for line in _cpuinfo():
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            return set(value.split())
    return set()


def cpu_name() -> str:
    for line in _cpuinfo():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Processor"):
            return value.strip()
    return os.uname().machine


def free_memory() -> int:
    """Bytes that new processes may take: as the kernel and the container allow."""
    free = _available()
    for limit, used in CONTAINER_MEMORY:
        try:
            most = Path(limit).read_text().strip()
            if most != "max":
                free = min(free, int(most) - int(Path(used).read_text()))
        except (OSError, ValueError):
            continue
    return max(0, free)


def _available() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            key, _, value = line.partition(":")
            if key == "MemAvailable":
                return int(value.split()[0]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _cpuinfo() -> list[str]:
    try:
        return Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return []
