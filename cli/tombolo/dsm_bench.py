# SPDX-License-Identifier: Apache-2.0
"""The kernels of bench/dsm: on virtual shared memory and with Pthreads, measured in turn."""

import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tombolo import dsm, libraries, paths
from tombolo.errors import UserError

FLAGS = ["-O3", "-march=native", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-pthread"]
TIME_LIMIT_S = 300
PTHREADS = "pthreads"


@dataclass(frozen=True)
class Kernel:
    """A row. `goal`: the ratio to reach with `window`; or `goal_us`, the time."""

    program: str
    variant: str
    goal: float | None = None
    goal_us: float | None = None
    quick: tuple[str, ...] = ()  # size and times, where the usual ones take long


KERNELS = (
    Kernel("jacobi", "reduction", 0.90, quick=("1024", "20")),
    Kernel("jacobi", "lock", 0.85, quick=("1024", "20")),
    Kernel("triad", "warm", 0.95, quick=("1048576", "5")),
    Kernel("cold", "read", 0.6, quick=("33554432",)),
    Kernel("fill", "memset", 0.35, quick=("536870912",)),
    Kernel("hand_over", "64 bytes", goal_us=3, quick=("0", "2000")),
    Kernel("barrier", "nothing written", goal_us=3, quick=("0", "2000")),
)


@dataclass(frozen=True)
class Contestant:
    """One way to run the kernels: Pthreads, or a transport on a machine."""

    transport: str
    machine: str = "coherent"

    @property
    def label(self) -> str:
        plain = self.transport != "window" or self.machine == "coherent"
        return self.transport if plain else f"{self.transport} on {self.machine}"


@dataclass
class Measured:
    """The seconds of a kernel, by contestant and round; None where it failed."""

    kernel: Kernel
    rounds: list[dict[Contestant, float | None]] = field(default_factory=list)

    def seconds(self, who: Contestant) -> float | None:
        values = [v for each in self.rounds if (v := each.get(who)) is not None]
        return median(values) if values else None

    def ratio(self, who: Contestant) -> float | None:
        """How quick it is beside Pthreads: the median over the rounds; 1 is as quick."""
        base = Contestant(PTHREADS)
        ratios = [
            theirs / ours
            for each in self.rounds
            if (theirs := each.get(base)) is not None and (ours := each.get(who)) is not None
        ]
        return median(ratios) if ratios else None


def compiled(pthreads: bool) -> Path:
    """The program of all kernels, made anew each time: it takes a second."""
    root = paths.checkout()
    if root is None:
        raise UserError("the kernels are in the source tree; run this from a checkout")
    source = root / "bench/dsm/kernels.c"
    target = paths.home() / "build/bench/dsm" / (PTHREADS if pthreads else "shared")
    target.parent.mkdir(parents=True, exist_ok=True)
    options = ["-DPTHREADS"] if pthreads else []
    libraries_of_it = [] if pthreads else dsm.flags()
    argv = ["cc", *FLAGS, f"-I{root}", *options, source, "-o", target, *libraries_of_it]
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode != 0:
        raise UserError(f"{paths.shown(source)} does not compile:\n{done.stderr}")
    return target


def run(kernel: Kernel, who: Contestant, threads: int, quick: bool) -> dict:
    """The line of one run; a UserError if it fails."""
    arguments = [kernel.program, kernel.variant, *(kernel.quick if quick else ())]
    if who.transport == PTHREADS:
        argv = [str(compiled(pthreads=True)), *arguments]
        env = os.environ | {"THREADS": str(threads)}
    else:
        argv = dsm.command(threads, [str(compiled(pthreads=False)), *arguments])
        # The memset of 1 GiB goes through a cache of a quarter of it.
        choice = dsm.Choice(who.transport, None, who.machine, "1200MiB", "256MiB")
        env = dsm.environment(choice)
    try:
        done = subprocess.run(argv, capture_output=True, text=True, env=env, timeout=TIME_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise UserError(f"it takes longer than {TIME_LIMIT_S} s") from None
    if done.returncode != 0:
        raise UserError(f"it ended with status {done.returncode}: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout)


def contestants(machines: list[str]) -> list[Contestant]:
    """Pthreads, the same pages for all, and caches of their own on each machine."""
    libraries.need_program(dsm.LAUNCHER)
    on_machines = [Contestant("window", machine) for machine in machines]
    return [Contestant(PTHREADS), Contestant("map"), *on_machines]
