# SPDX-License-Identifier: Apache-2.0
"""Runs one test under one setting and says whether it passed.

The suite's own `runtests` is not used: it gives up after five time-outs and takes any line on
stderr for an error, and we print statistics there.
"""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tombolo import processes, stats
from tombolo.launch import Choice, job
from tombolo.mpis import Mpi
from tombolo.suite.testlist import Test

# Messages of the launchers about a rank that died by SIGILL, SIGABRT, SIGBUS, SIGFPE or SIGSEGV.
CRASH = re.compile(r"\(signal (?:4|6|7|8|11)\)|exited on signal (?:4|6|7|8|11)\b")
LONGEST_LIMIT = 180
# `stale` compares a process's whole region at each synchronization: benchmarks take their time.
PATIENCE = {"stale": 10}
TAIL = 3000


@dataclass(frozen=True)
class Setting:
    """`stock`, or a machine and a seed."""

    machine: str
    seed: int | None = None

    @property
    def label(self) -> str:
        return self.machine if self.seed is None else f"{self.machine} seed {self.seed}"

    @property
    def choice(self) -> Choice | None:
        if self.machine == "stock":
            return None
        return Choice(self.machine, seed=self.seed, stats="json")


@dataclass(frozen=True)
class Verdict:
    """A result line."""

    test: str
    key: str
    n: int
    mpi: str
    machine: str
    seed: int | None
    verdict: str  # passed, failed, crashed, timeout, skipped, not built, excluded
    seconds: float
    served: int = 0
    forwarded: int = 0
    reasons: list[str] = field(default_factory=list)
    output: str = ""  # the end of it, when it did not pass

    @property
    def passed(self) -> bool:
        return self.verdict == "passed"

    def record(self) -> dict:
        return asdict(self)


def run(test: Test, mpi: Mpi, build: Path, setting: Setting, limit: float) -> Verdict:
    """One test, start to verdict."""

    def verdict(word: str, seconds: float = 0, **more: Any) -> Verdict:
        return Verdict(test.id, test.key, test.ranks, mpi.key, setting.machine, setting.seed, word, seconds, **more)

    folder = build / test.folder
    if test.excluded:
        return verdict("excluded", output=test.excluded)
    if not (folder / test.name).is_file():
        return verdict("not built")
    started = job(
        mpi,
        test.ranks,
        [f"./{test.name}", *test.args],
        setting.choice,
        yields=True,
        extra=dict(test.env),
    )
    limit = max(limit, min(test.seconds or 0, LONGEST_LIMIT)) * PATIENCE.get(setting.machine, 1)
    outcome = processes.run(started, limit, folder)
    windows = stats.total(outcome.stderr)
    word = "timeout" if outcome.status is None else judged(outcome.stdout, outcome.stderr, outcome.status)
    shown = "" if word == "passed" else _tail(outcome)
    return verdict(
        word,
        round(outcome.seconds, 3),
        served=windows.served,
        forwarded=windows.forwarded,
        reasons=list(windows.reasons),
        output=shown,
    )


def judged(stdout: str, stderr: str, status: int) -> str:
    """`passed`, `failed` or `crashed`: a failed check of the test differs from a dead rank."""
    if succeeded(stdout, status):
        return "passed"
    return "crashed" if CRASH.search(stdout) or CRASH.search(stderr) else "failed"


def succeeded(stdout: str, status: int) -> bool:
    """The suite's own criterion: the line ` No Errors`, and a clean exit."""
    return status == 0 and any(line.strip() == "No Errors" for line in stdout.splitlines())


def run_all(
    tests: list[Test],
    mpi: Mpi,
    build: Path,
    setting: Setting,
    limit: float,
    jobs: int,
    seen: Callable[[Verdict], None],
) -> Iterator[Verdict]:
    """The tests in order, `jobs` at a time."""
    with ThreadPoolExecutor(jobs) as pool:
        pending = [pool.submit(run, test, mpi, build, setting, limit) for test in tests]
        try:
            for future in pending:
                verdict = future.result()
                seen(verdict)
                yield verdict
        except BaseException:
            for future in pending:
                future.cancel()
            raise


# Lines that say no more than that something went wrong.
DECORATION = re.compile(rf"exit |{stats.PREFIX}|=|YOUR APPLICATION|This typically|Please see|-{{4}}")


def complaint(output: str) -> str:
    """The line of a failed test's output that says most, for a table."""
    lines = [line for line in output.splitlines() if re.search(r"[A-Za-z]{3}", line)]
    telling = [line for line in lines if not DECORATION.match(line)]
    return (telling or lines or [""])[0].strip()[:120]


def _tail(outcome: processes.Outcome) -> str:
    text = f"exit {outcome.status}\n{outcome.stdout[-TAIL:]}\n{outcome.stderr[-TAIL:]}"
    return text.strip()
