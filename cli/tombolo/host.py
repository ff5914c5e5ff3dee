# SPDX-License-Identifier: Apache-2.0
"""What this host offers: cores, memory, instructions."""

import os
from pathlib import Path


def cores() -> int:
    """Hardware threads that this process may use."""
    return len(os.sched_getaffinity(0))


def physical_cores() -> int:
    """Cores with hyperthreads folded together: what Open MPI counts as its slots."""
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


def _cpuinfo() -> list[str]:
    try:
        return Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return []
