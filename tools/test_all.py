#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs all tests, section after section, and ends with `N passed, N failed`.

    tools/test_all.py [SECTION...]      all sections, or those named (env is always run)

A failing section does not keep the others from running; the exit status is 0 if none failed. Sections
that leave processors idle share them with others in the background, which start beside one of them, one
after the other, and may go on beside the next ones; their output comes when they have ended. The table at
the end says of each section how long it took (`time`) and how many seconds the processors worked for it
(`cpu`): a section whose cpu is far below time times cores waits, or runs on one core.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import slices

ROOT = Path(__file__).resolve().parent.parent
MINUTE = 60
LINE = 400  # characters of a failure's name and reason
PASSED_FAILED = re.compile(r"(\d+) passed, (\d+) failed")
CTEST = re.compile(r"\d+% tests passed, (\d+) tests failed out of (\d+)")
CASES_PASSED = re.compile(r"\[  PASSED  \] (\d+) tests?\.$", re.MULTILINE)  # of one of ctest's programs
CASES_FAILED = re.compile(r"\[  FAILED  \] (\d+) tests?, listed below")
PYTEST = re.compile(r"^(?:.*?(\d+) failed)?.*?(\d+) passed.* in [\d.]+s", re.MULTILINE)
FAILURES = (
    re.compile(r"^\s*\d+ - (.+) \((?!Skipped|Disabled)[^()]+\)(?:\s{2,}\S.*)?$"),  # ctest's closing list, labels behind
    re.compile(r"^(?:FAILED|ERROR) (.+)"),  # pytest's, with the reason, and those of tools/check_package.py
    re.compile(r"^\d+: \[  FAILED  \] (\S+\.\S+?)(?:, where .*)?(?: \(\d+ ms\))?$"),  # of a program that ctest runs
)
CONFORMANCE = "conformance --slice quick --machine coherent --machine stale --seed 1 --jobs 1"
BROKEN_TWINS = ".env/cli/bin/python tools/broken_twins.py --slice day/60"
# A whole run takes longer than the release build; midnight may lie between the build and the tests.
ASAN = f"tools/test_programs.py asan --slice {slices.today() % 2 + 1}/2"
EXPERIMENTS = "./tombolo scc figures --quick --fresh && ./tombolo scc baseline --quick"
UNDER_ASAN = "tombolo_dsm tombolo_pthread tombolo_pthread_hosts tombolo-dsm"  # with which no test is linked
CORES = len(os.sched_getaffinity(0))
# Linux shares processors between terminal sessions first, each with a niceness of its own: that of
# a command counts within its session alone.
IN_THE_BACKGROUND = "{ echo 19 >/proc/self/autogroup; } 2>/dev/null; nice -n 19"


@dataclass(frozen=True)
class Section:
    """One command; its exit status counts as one test unless its output says how many there were."""

    name: str
    command: str
    minutes: int  # it is stopped after them
    required: bool = False  # without it nothing else makes sense
    after: str | None = None  # the section that must have passed
    beside: str | None = None  # the section with which it may start, at low priority


def cases(preset: str) -> str:
    """Runs the test programs of a preset; -V shows how many cases each had."""
    return f"GTEST_BRIEF=1 ctest --test-dir build/{preset} -V -j {CORES}"


SECTIONS = (
    Section("env", "make env-test", 10, required=True),
    Section("build", "make build PRESET=release", 30),
    Section("unit tests", cases("release"), 10, after="build"),
    Section("python tests", "make python-test", 32),
    Section("layers", "tools/check_layers.py", 1),
    Section("tidy", "tools/tidy.py", 1),
    Section("format", "tools/check_format.sh", 2),
    Section("python lint", "tools/check_python.sh", 3),
    # In the background, in the order in which others need them; clang-tidy's result nothing needs.
    Section("conformance build", f"./tombolo {CONFORMANCE} --build-only", 10, after="build", beside="python tests"),
    Section("broken twins", BROKEN_TWINS, 20, after="build", beside="python tests"),
    Section("asan build", f"{ASAN} --build-only --also {UNDER_ASAN}", 40, beside="python tests"),
    Section("tsan build", "make build PRESET=tsan", 40, beside="python tests"),
    Section("clang-tidy", "tools/check_tidy.py --slice day/15", 15, after="build", beside="python tests"),
    Section("demo", "./tombolo demo", 6, after="build"),
    Section("examples", "./tombolo demo --examples", 12, after="build"),
    Section("package", "tools/check_package.py", 6, after="build"),
    Section("experiments", EXPERIMENTS, 10, after="build"),
    Section("conformance", f"./tombolo {CONFORMANCE}", 10, after="conformance build"),
    Section("asan", ASAN, 10, after="asan build"),
    Section("tsan", cases("tsan"), 10, after="tsan build"),
)  # fmt: skip


@dataclass(frozen=True)
class Result:
    passed: int
    failed: int
    seconds: float
    note: str = ""
    failures: tuple[str, ...] = ()  # the names that the program gave
    cpu_seconds: float = 0  # of all its processes that were waited for


def names_of_failures(output: str) -> tuple[str, ...]:
    """The tests that are listed as failed, each once, in the order of the list, with the reason where one is given."""
    found = (pattern.match(line) for line in output.splitlines() for pattern in FAILURES)
    return tuple(dict.fromkeys(match[1][:LINE] for match in found if match))


def last_line(output: str) -> str:
    """The one that tells as a rule why a program has failed which does not list its tests."""
    return output.rstrip().rpartition("\n")[2][:LINE]


def counts(output: str, status: int) -> tuple[int, int]:
    """How many passed and failed: as the program under test says, else the command is one test."""
    if match := list(CTEST.finditer(output)):
        passed = sum(int(n) for n in CASES_PASSED.findall(output))
        failing = [int(n) for n in CASES_FAILED.findall(output)]
        # A program that failed without a word of its cases has crashed or hung.
        failed = sum(failing) + int(match[-1][1]) - len(failing)
    elif match := list(PASSED_FAILED.finditer(output)):
        passed, failed = int(match[-1][1]), int(match[-1][2])
    elif match := list(PYTEST.finditer(output)):
        failed, passed = int(match[-1][1] or 0), int(match[-1][2])
    else:
        passed, failed = (1, 0) if status == 0 else (0, 1)
    if status != 0 and failed == 0:
        failed = 1
    return passed, failed


def stop(process: subprocess.Popen) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        os.killpg(process.pid, signal.SIGKILL)


def run(section: Section, show: bool = True) -> tuple[Result, str]:
    """The result and the output, which is shown as it comes unless told otherwise."""
    start = time.monotonic()
    process = subprocess.Popen(
        section.command if show else f"{IN_THE_BACKGROUND} {section.command}",
        shell=True,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    limit = threading.Timer(section.minutes * MINUTE, stop, [process])
    limit.start()
    lines = []
    for line in process.stdout or ():
        lines.append(line)
        if show:
            sys.stdout.write(line)
            sys.stdout.flush()
    _, ended, usage = os.wait4(process.pid, 0)
    limit.cancel()
    status = process.returncode = os.waitstatus_to_exitcode(ended)
    seconds = time.monotonic() - start
    output = "".join(lines)
    passed, failed = counts(output, status)
    stopped = status == -signal.SIGKILL and seconds >= section.minutes * MINUTE
    note = f"stopped after {section.minutes} min" if stopped else ""
    cpu_seconds = usage.ru_utime + usage.ru_stime
    failures = names_of_failures(output) or (last_line(output),) if failed else ()
    return Result(passed, failed, seconds, note, failures, cpu_seconds), output


def chosen(names: list[str]) -> list[Section]:
    unknown = set(names) - {section.name for section in SECTIONS}
    if unknown:
        sys.exit(f"no such section: {', '.join(sorted(unknown))}")
    return [s for s in SECTIONS if not names or s.required or s.name in names]


def minutes_and_seconds(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), MINUTE)
    return f"{minutes}:{rest:02}"


def summary(results: dict[str, Result], seconds: float) -> str:
    """`seconds`: the time from the first section's start to the last one's end."""
    lines = ["", f"{'section':<17} {'passed':>7} {'failed':>7} {'time':>7} {'cpu':>7}"]
    for name, r in results.items():
        time_and_cpu = f"{minutes_and_seconds(r.seconds):>7} {minutes_and_seconds(r.cpu_seconds):>7}"
        lines.append(f"{name:<17} {r.passed:>7} {r.failed:>7} {time_and_cpu} {r.note}".rstrip())
    total_cpu = minutes_and_seconds(sum(r.cpu_seconds for r in results.values()))
    lines += [f"total time {minutes_and_seconds(seconds)}, cpu {total_cpu} on {CORES} cores", ""]
    for name, r in results.items():
        lines += [f"failed in {name}: {failure}" for failure in r.failures]
    passed = sum(r.passed for r in results.values())
    failed = sum(r.failed for r in results.values())
    return "\n".join([*lines, f"{passed} passed, {failed} failed"])


class Run:
    """Runs sections, and keeps their results. One section at a time runs in the background."""

    def __init__(self, sections: list[Section]) -> None:
        self.sections = sections
        self.results: dict[str, Result] = {}
        self.background: list[tuple[Section, Future]] = []

    def all(self) -> None:
        names = {section.name for section in self.sections}
        with ThreadPoolExecutor(max_workers=1) as pool:
            for section in self.sections:
                if section.beside in names:
                    continue
                for other in (s for s in self.sections if s.beside == section.name):
                    if self.may_run(other):
                        self.background.append((other, pool.submit(run, other, False)))
                if section.after in {other.name for other, _ in self.background}:
                    self.join(until=section.after)
                if self.may_run(section):
                    self.head(section)
                    self.note(section, run(section)[0])
                self.join(wait=False)
                if section.required and self.results[section.name].failed:
                    break
            self.join()

    def join(self, wait: bool = True, until: str | None = None) -> None:
        """Shows the sections in the background that have ended; waits for all, or for one, if told."""
        while self.background and (wait or self.background[0][1].done()):
            section, future = self.background.pop(0)
            self.show(section, future)
            if section.name == until:
                return

    def may_run(self, section: Section) -> bool:
        before = self.results.get(section.after) if section.after else None
        if not before or not before.failed:
            return True
        self.head(section)
        self.results[section.name] = Result(0, 1, 0, f"not run: {section.after} failed")
        return False

    def show(self, section: Section, future: Future) -> None:
        result, output = future.result()
        self.head(section)
        print(output, end="")
        self.note(section, result)

    def head(self, section: Section) -> None:
        print(f"\n=== {section.name}: {section.command}", flush=True)

    def note(self, section: Section, result: Result) -> None:
        self.results[section.name] = result
        print(f"--- {section.name}: {result.seconds:.0f} s", flush=True)


def main() -> int:
    start = time.monotonic()
    sections = Run(chosen(sys.argv[1:]))
    sections.all()
    print(summary(sections.results, time.monotonic() - start))
    return 1 if any(result.failed for result in sections.results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
