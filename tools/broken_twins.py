#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Broken twins: breaks sync/, windows/, dsm/, svp/ and the machines in one place after the other; a
test must fail.

    .env/cli/bin/python tools/broken_twins.py     all twins but those of families; exit status 1 if
                                                  one survives
    ... --list                                    the twins, without running anything
    ... --only 'window.h:2'                       those whose "kind: file:line: statement" matches
    ... --slice 1/4                               every fourth of them
    ... --slice day/60                            a sixtieth, another one each day: for CI
    ... --folders svp                             those of families: minutes each, too long for CI
    ... --json twins.jsonl                        a JSON line for each twin as well

The kinds of twins are those of system_twins.py and, in svp/, of family_twins.py.

Files below a folder `testing` or `broken` are no part of the system. The folders of dsm/ whose tests
start processes are left out, and the transports of whole programs.

How: the tree is copied to a scratch folder for each job, with the list of machines cut down to
`stale`, so that tests compile quickly. Objects are compiled by direct compiler calls, and only
those that include the changed file, directly or not. A twin is caught if a test program
exceeds its time, or fails or crashes and does so again in one of as many runs as there are attempts,
of the failed test alone where the program has named it; it survives if none does in any attempt. A
program ends at its first failure: where that does not come again, it is run without that test. With
the unchanged tree the program must then pass once, and the failed test, or else the program, once
more than there are attempts. If such a run fails and one of the same again passes, luck has a part in
that test, and the twin is not judged: named and counted, neither caught nor a survivor.
The tests that note the order of operations (windows/recorded_test.cpp) come first: they compile in
seconds, and luck has no part in them.
Exit status: 0 all caught that were judged, 1 a survivor, 2 nothing could be concluded: the unchanged
tree fails in all those runs, or more than half of the twins were not judged.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import family_twins
import option_table
import slices
import syntax_tree
import system_twins

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))

from tombolo import files
from tombolo.errors import UserError

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Parts of dsm/ whose tests start processes, and need more libraries: folders and names of files.
ABOVE_PROTOCOLS = {"api", "compiler", "memory", "objects", "arena_heap", "class_heap", "heap", "keys", "private_heap",
                   "process_records", "runtime_hooks", "thread_table"}  # fmt: skip
JUDGED_IN_MEMORY = {"mapped_memory", "paged_memory"}
LAYERS = ("base", "machine", "host", "backends", "sync", "windows", "runtime", "dsm", "svp")
# Their sources are linked to the tests that include their headers.
PARTS_BY_HEADER = ("runtime/counters", "runtime/findings", "dsm/memory", "dsm/pages", "dsm/records", "dsm/threads")
# Sources without a header of their own, by folder.
HEADER_OF_ALL = {"runtime/engines": "machine_id.h", "svp/language": "program.h"}
# These need more libraries; no test here uses them.
NOT_COPIED = {"host": ("mpi",), "svp": ("module", "bench", "svp.cpp")}
MACHINE_LIST = re.compile(r"using AllMachines\s*=[^;]*;")
INCLUDE = re.compile(r'(?m)^ *#include "([^"]+)"')  # always from the root
FLAGS = ("-std=c++20", "-O1", "-w")
# A twin may wait for ever: a killed run of this tool takes it along.
DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")
# On the machine, or on none.
TESTS = (
    "*stale*:Recorded.*:RegionalPages.*:RegionalSteps.*:ReleaseSteps.*:PageSend.*:PageFetchTest.*:ReaderNoticesTest.*"
    ":Scheduled.*:*userfault:*protection:UnfinishedInstruction.*:ConditionTest.*:PartialBarrierTest.*"
    ":CoreMemory.*:PagedMemoryTest.*:Waited.*:PagesInPlace.*:PartialReductionTest.*:AtomicChange.*"
    ":InstrumentedCodeTest.*"
    ":Stale*:TwoHosts/*:W*Region*:SettledRegion*:Flush*:WriteThrough*"
)
COMMON = "common.h"  # GoogleTest's header, parsed once for all tests
FAILED_TEST = re.compile(r"^\[  FAILED  \] ([\w/.]+)", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Twin:
    kind: str
    path: str  # relative to the root
    line: int
    start: int  # of the replaced text in the file, in characters
    end: int
    statement: str
    replacement: str

    @property
    def name(self):
        return f"{self.kind}: {self.path}:{self.line}: {self.statement}"


@dataclasses.dataclass(frozen=True)
class Failure:
    text: str
    only: str = ""  # the test that failed, where the program has named it
    endless: bool = False


@dataclasses.dataclass
class Outcome:
    twin: Twin
    caught_by: str  # empty: survived, or not judged
    seconds: float
    not_judged: str = ""  # why


class NotJudged(Exception):
    """A test that fails with a twin fails without it, too, now and then."""


def is_above_protocols(source):
    """`source`: a path of a source or a test, relative to the root."""
    name = source.stem.removesuffix("_test")
    if source.parts[0] != "dsm" or name in JUDGED_IN_MEMORY:
        return False
    return bool(ABOVE_PROTOCOLS & {*source.parts[:-1], name})


def judged_sources(folder):
    for path in sorted((ROOT / folder).rglob("*")):
        relative = path.relative_to(ROOT)
        if path.suffix not in (".h", ".cpp") or path.stem.endswith(("_test", "_bench")):
            continue
        if {"testing", "broken", "mpi"} & set(relative.parts) or is_above_protocols(relative):
            continue
        if relative.parts[0] == "svp" and not family_twins.is_judged(relative):
            continue
        yield relative


def texts_of(folders):
    return {str(path): (ROOT / path).read_text() for folder in folders for path in judged_sources(folder)}


def find_twins(folders):
    twins = [
        twin
        for path, tree in syntax_tree.trees(texts_of(folders)).items()
        for twin in twins_of(pathlib.Path(path), tree)
    ]
    return sorted(twins, key=lambda twin: (twin.path, twin.start, twin.kind))


def twins_of(path, tree):
    layer = next((f for f in FOLDERS_OF_THEIR_OWN if f in path.parts), path.parts[0])
    for kind, operator in KINDS.items():
        if layer not in FOLDERS_OF.get(kind, layer) or (kind == "edge" and path.name not in family_twins.EDGED):
            continue
        for start, end, replacement in sorted({*operator(tree)}):  # a call may be in the tree twice
            statement = " ".join(tree.source[start:end].split())
            line = tree.source.count("\n", 0, start) + 1
            yield Twin(kind, str(path), line, start, end, statement, replacement)


KINDS = {**system_twins.KINDS, **family_twins.KINDS}
FOLDERS_OF_THEIR_OWN = ("allocator", "pages", "threads", "paged_memory.h")  # of dsm/
# The others: all. The ranges of dsm/ are whole lines, of which a byte less is as many.
PROGRAMS = ("threads", "paged_memory.h")
FOLDERS_OF = {"off by one": ("sync", "windows", "svp"), "guard": ("windows", *PROGRAMS), "step": ("dsm",),
              "view": ("pages",), "early": ("allocator",), "unrenewed": ("allocator",), "call": PROGRAMS,
              "bound": PROGRAMS, "condition": ("sync", "windows"), "machine": ("backends", "host"),
              "line short": ("backends", "host"),
              **dict.fromkeys(("told", "order", "edge", "check"), ("svp",))}  # fmt: skip
MACHINES = ("backends/stale", "backends/flushed", "host/flush")


class Tree:
    """A copy of the sources in which one twin at a time is built and run.

    All trees share the objects of the unchanged sources: an object is named by its source and by
    the contents of its inputs.
    """

    def __init__(self, folder, objects, options):
        self.folder = pathlib.Path(folder)
        self.objects = pathlib.Path(objects)
        self.options = options
        for layer in LAYERS:
            if (ROOT / layer).exists():
                left_out = shutil.ignore_patterns(*NOT_COPIED.get(layer, ("scc", "mpi")))
                shutil.copytree(ROOT / layer, self.folder / layer, ignore=left_out)
        for header, text in option_table.headers(option_table.load()).items():
            option_table.write(self.folder / header, text)
        self.add_engines()
        machines = self.folder / "backends/machines.h"
        reduced, count = MACHINE_LIST.subn("using AllMachines = TypeList<stale::Core>;", machines.read_text())
        if count == 0:
            raise RuntimeError("backends/machines.h has no list of machines any more")
        machines.write_text(reduced)

    def add_engines(self):
        """The files that runtime/CMakeLists.txt makes for each machine that programs may choose."""
        engines = self.folder / "runtime/engines"
        template = (engines / "engine_on.cpp.in").read_text()
        for header in sorted((self.folder / "backends").glob("*/machine.h")):
            machine = header.parent.name
            (engines / f"engine_on_{machine}.cpp").write_text(template.replace("@machine@", machine))

    def sources(self, folders, suffixes):
        found = [p.relative_to(self.folder) for layer in folders for p in sorted((self.folder / layer).rglob("*.cpp"))]
        return [
            s
            for s in found
            if s.stem.endswith(("_test", "_bench")) == bool(suffixes) and (not suffixes or s.stem.endswith(suffixes))
        ]

    def compiler(self, source, *more):
        command = [self.options.cxx, *FLAGS, f"-I{self.folder}", *more, str(self.folder / source)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def includes(self, source):
        """The files of the tree that `source` includes, under whatever condition, and itself."""
        found, left = set(), [str(source)]
        while left:
            name = left.pop()
            if name not in found and (self.folder / name).exists():
                found.add(name)
                left += INCLUDE.findall((self.folder / name).read_text())
        return found

    def compile(self, source, inputs):
        digest = hashlib.sha256()
        for name in sorted(inputs):
            digest.update((self.folder / name).read_bytes())
        target = self.objects / f"{str(source).replace('/', '_')}.{digest.hexdigest()[:16]}.o"
        if not target.exists():
            made = self.folder / "new.o"
            test = source.stem.endswith("_test") or "testing" in source.parts
            common = ["-include", str(self.objects / COMMON)] if test else []
            self.compiler(source, *common, "-c", "-o", str(made))
            made.rename(target)
        return target


def must_run(command):
    subprocess.run(command, check=True, capture_output=True, text=True)


def run_to_end(command, timeout):
    """Exit status and output of a program. Its children, which a broken twin may leave waiting, end
    with it. Raises TimeoutExpired."""
    running = subprocess.Popen(
        [*DIES_WITH_US, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = running.communicate(timeout=timeout)
        return running.returncode, output
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()


class Bench:
    """The tests that the selected twins concern, and how to run them."""

    def __init__(self, twins, scratch, options):
        self.options = options
        self.scratch = pathlib.Path(scratch)
        (self.scratch / "objects").mkdir()
        common = self.scratch / "objects" / COMMON
        common.write_text("#include <gtest/gtest.h>\n")
        must_run([options.cxx, *FLAGS, "-x", "c++-header", str(common), "-o", f"{common}.gch"])
        tree = self.new_tree()
        self.library = tree.sources(("base", "host", "backends", "windows", *PARTS_BY_HEADER), ())
        self.of_families = tree.sources(("svp", "runtime", "host/fibres"), ())
        tests = [
            t
            for t in tree.sources(("sync", "windows", "dsm", "svp", *MACHINES), ("_test",))
            if options.tests.search(str(t)) and not is_above_protocols(t)
        ]
        self.inputs = {source: tree.includes(source) for source in {*self.library, *self.of_families, *tests}}
        changed = {t.path for t in twins}
        self.tests = [t for t in tests if self.concerns(changed, t)]
        self.caught: collections.Counter[pathlib.Path] = collections.Counter()  # by test
        self.seconds: dict[pathlib.Path, float] = collections.defaultdict(float)  # to compile and run it
        self.unchanged = tree
        self.passes: set[tuple[pathlib.Path, str]] = (
            set()
        )  # (test program, one of its tests) that the unchanged tree passes
        self.asking = threading.Lock()

    def new_tree(self):
        return Tree(tempfile.mkdtemp(dir=self.scratch), self.scratch / "objects", self.options)

    def parts(self, test):
        """The sources of a test program: tests of sync do without windows, and those of windows
        that have processes of their own without the common ones."""
        folders = ("base", "host", "backends", "windows" if test.parts[0] == "svp" else test.parts[0])
        processes = f"{test.parts[0]}/testing/processes"
        left_out = "" if f"{processes}.h" in self.inputs[test] else f"{processes}.cpp"
        by_header = self.parts_by_header(test)
        others = [s for s in self.library if s.parts[0] in folders and s.parts[0] != "dsm" and s.parts[1] != "fibres"]
        return [test, *by_header, *(s for s in others if s not in by_header and str(s) != left_out)]

    def parts_by_header(self, test):
        """Those whose headers the test includes, or one of them does."""
        found, included = [], set(self.inputs[test])
        among = (
            self.of_families
            if test.parts[0] == "svp"
            else [s for s in self.library if s.parts[0] in ("dsm", "runtime")]
        )
        while more := [s for s in among if s not in found and self.header_of(s) in included]:
            found += more
            included.update(*(self.inputs[s] for s in more))
        return found

    @staticmethod
    def header_of(source):
        return str(source.with_name(HEADER_OF_ALL.get(str(source.parent), source.with_suffix(".h").name)))

    def concerns(self, changed, test):
        return any(changed & self.inputs[s] for s in self.parts(test))

    def run_test(self, tree, test, only="", left_out=()):
        """How a run of the test program failed, None if it passed. `only`: that test alone;
        `left_out`: all but those."""
        program = tree.folder / "program"
        objects = [tree.compile(s, self.inputs[s]) for s in self.parts(test)]
        families = test.parts[0] == "svp"
        libraries = ("-lboost_context", "-ldl") if families else ()
        common = ("-lgtest", "-lgtest_main", "-lpthread", "-lsodium")
        must_run([self.options.cxx, *map(str, objects), "-o", str(program), *common, *libraries])
        tests = only or tests_but(left_out, family_twins.TESTS if families else TESTS)
        try:
            status, output = run_to_end(
                [str(program), f"--gtest_filter={tests}", "--gtest_fail_fast", "--gtest_brief=1"], self.options.timeout
            )
        except subprocess.TimeoutExpired:
            return Failure(f"{test} (no end in {self.options.timeout} s)", endless=True)
        if status == 0:
            return None
        named = FAILED_TEST.search(output)
        return Failure(named[1], only=named[1]) if named else Failure(f"{test} (exit status {status})")

    def in_order(self, changed):
        """The tests that include one of the changed files. First those named after one and, of
        machines, those beside it; then those that took the least time for each twin that they caught."""
        names = {pathlib.Path(path).with_suffix("") for path in changed}
        folders = {name.parent for name in names}

        def order(test):
            named = test.with_name(test.stem.removesuffix("_test")) in names
            beside = test.parent in folders and test.parts[0] not in ("sync", "windows", "dsm", "svp")
            caught, seconds = self.caught[test], self.seconds[test]
            return not named, not beside, not caught, seconds / (caught or 1), "recorded" not in test.name

        return sorted((t for t in self.tests if self.concerns(changed, t)), key=order)

    def run_tests(self, tree, changed):
        """The failure that catches the changes, or an empty text; tests that find soon come first."""
        for test in self.in_order(changed):
            started = time.monotonic()
            failure = self.failure_that_repeats(tree, test)
            self.seconds[test] += time.monotonic() - started
            if failure:
                self.caught[test] += 1
                self.must_pass_unchanged(test, failure)
                return failure.text
        return ""

    def failure_that_repeats(self, tree, test):
        """Leaves out tests whose failure does not come again: those behind them were not run."""
        left_out: list[str] = []
        while failure := self.run_test(tree, test, left_out=left_out):
            if self.repeats(tree, test, failure):
                return failure
            if not failure.only or failure.only in left_out:
                return None
            left_out.append(failure.only)
        return None

    def repeats(self, tree, test, failure):
        """An endless program has failed all the time. Others have as many runs as there are attempts."""
        return failure.endless or any(self.run_test(tree, test, failure.only) for _ in range(self.options.attempts))

    def must_pass_unchanged(self, test, failure):
        """Raises NotJudged if the unchanged tree fails now and then, RuntimeError if it always does."""
        with self.asking:
            for only, runs in (("", 1), (failure.only, 1 + self.options.attempts)):
                for _ in range(0 if (test, only) in self.passes else runs):
                    failed = self.run_test(self.unchanged, test, only)
                    if failed:
                        self.must_pass_again(test, only, failed)
                        raise NotJudged(f"the unchanged tree fails {failed.text} now and then")
                self.passes.add((test, only))

    def must_pass_again(self, test, only, failed):
        if all(self.run_test(self.unchanged, test, only) for _ in range(self.options.attempts)):
            raise RuntimeError(f"the unchanged tree fails {failed.text}; nothing can be concluded")

    def try_twin(self, tree, twin):
        started = time.monotonic()
        path = tree.folder / twin.path
        original = path.read_text()
        path.write_text(original[: twin.start] + twin.replacement + original[twin.end :])
        caught = not_judged = ""
        try:
            for _ in range(self.options.attempts):
                caught = caught or self.run_tests(tree, {twin.path})
        except NotJudged as reason:
            not_judged = str(reason)
        except subprocess.CalledProcessError as error:
            raise RuntimeError(f"{twin.name} does not build:\n{error.stderr}") from error
        finally:
            path.write_text(original)
        return Outcome(twin, caught, time.monotonic() - started, not_judged)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="only list the twins")
    parser.add_argument("--only", metavar="REGEX", type=re.compile, default=re.compile(""))
    parser.add_argument(
        "--tests", metavar="REGEX", type=re.compile, default=re.compile(""), help="only test sources that match"
    )
    parser.add_argument("--slice", metavar="K/N", default="1/1", help=slices.HELP)
    parser.add_argument("--folders", nargs="+", default=["sync", "windows", "dsm", *MACHINES])
    parser.add_argument("--attempts", type=int, default=3, help="runs of all tests before a twin counts as survivor")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for a test program")
    parser.add_argument("--jobs", type=int, choices=(1, 2), default=2)
    parser.add_argument("--json", metavar="FILE", help="one JSON line for each twin")
    parser.add_argument("--cxx", default=os.environ.get("CXX", "g++"))
    options = parser.parse_args()
    options.slice = slices.slice_of(options.slice, slices.today())
    if options.slice is None:
        parser.error(f"--slice: {slices.EXPECTED}")
    return options


def tests_but(left_out, tests):
    """GoogleTest's filter for them."""
    return f"{tests}-{':'.join(left_out)}" if left_out else tests


def run_all(twins, options, scratch):
    """Yields an Outcome for each twin."""
    bench = Bench(twins, scratch, options)
    local = threading.local()

    def run(twin):
        if not hasattr(local, "tree"):
            local.tree = bench.new_tree()
        return bench.try_twin(local.tree, twin)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        yield from pool.map(run, twins)


def report(outcome, lines):
    twin = outcome.twin
    end = "not judged" if outcome.not_judged else "caught" if outcome.caught_by else "SURVIVED"
    print(f"{end:10} {outcome.seconds:6.1f} s  {twin.name}  {outcome.caught_by or outcome.not_judged}", flush=True)
    record = {
        "kind": twin.kind,
        "file": twin.path,
        "line": twin.line,
        "statement": twin.statement,
        "caught_by": outcome.caught_by or None,
        "not_judged": outcome.not_judged or None,
        "seconds": round(outcome.seconds, 1),
    }
    lines.append(json.dumps(record) + "\n")


def main():
    options = parse_options()
    try:
        if options.json:
            files.check(pathlib.Path(options.json))
        return run_and_report(options)
    except UserError as error:
        print(f"broken_twins: {error}", file=sys.stderr)
        return 2


def run_and_report(options):
    number, of = options.slice
    twins = [t for t in find_twins(options.folders) if options.only.search(t.name)][number::of]
    print(f"slice {number + 1}/{of}: {len(twins)} twins", file=sys.stderr)
    if options.list:
        for twin in twins:
            print(twin.name)
        return 0
    outcomes: list[Outcome] = []
    lines: list[str] = []
    with tempfile.TemporaryDirectory(prefix="broken_twins.") as scratch:
        try:
            for outcome in run_all(twins, options, scratch):
                outcomes.append(outcome)
                report(outcome, lines)
        except RuntimeError as error:
            print(f"broken_twins: {error}", file=sys.stderr)
            return 2
        except subprocess.CalledProcessError as error:
            print(f"broken_twins: the unchanged tree does not build:\n{error.stderr}", file=sys.stderr)
            return 2
    if options.json:
        files.write(pathlib.Path(options.json), "".join(lines))
    for kind in KINDS:
        print_rate(kind, [outcome for outcome in outcomes if outcome.twin.kind == kind])
    print_rate("all", outcomes)
    return exit_status(outcomes)


def exit_status(outcomes):
    """One unlucky run of a loaded host turns nothing red; a survivor does, and luck as a rule."""
    judged = [outcome for outcome in outcomes if not outcome.not_judged]
    if not all(outcome.caught_by for outcome in judged):
        return 1
    return 0 if 2 * len(judged) >= len(outcomes) else 2


def print_rate(what, outcomes):
    if outcomes:
        caught = sum(bool(outcome.caught_by) for outcome in outcomes)
        not_judged = sum(bool(outcome.not_judged) for outcome in outcomes)
        survived = len(outcomes) - caught - not_judged
        print(
            f"{what}: {len(outcomes)} twins, {caught} caught ({100 * caught / len(outcomes):.0f} %), "
            f"{survived} survived" + (f", {not_judged} not judged" if not_judged else "")
        )


if __name__ == "__main__":
    sys.exit(main())
