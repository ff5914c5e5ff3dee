#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Broken twins: removes each publish, refresh, drain and fence of sync/ and windows/ in turn and
expects the tests on the machine `stale` to fail. A fence of windows/ orders the program's own plain
loads and stores; `stale` does them when it is called, so the tests on `coherent` must notice, where
a load really overtakes a store.

    tools/broken_twins.py                         all twins; exit status 1 if one survives
    tools/broken_twins.py --list                  the statements, without running anything
    tools/broken_twins.py --only 'window.h:2'     those whose "file:line: statement" matches
    tools/broken_twins.py --slice 1/4             every fourth of them, for CI
    tools/broken_twins.py --json twins.jsonl      a JSON line for each twin as well

A call counts if its receiver is a core (`core.`, `core_.`), or if it stands for such calls on all
of the program's own copies (`own_.publish_all()` and its like in windows/). It is replaced by `(void)0`, so that a
twin differs from the original in nothing else. `notify` is left out: a missing one costs time,
never correctness (R6), so no test can or should fail. Files below a folder `testing` or `broken`
are no part of the system.

Two things that only threads of one process can see go wrong are broken as well: the guard of a
refresh is removed, and each `wrote_to` is exchanged with the operation before it, which it notes.

How: the tree is copied to a scratch folder for each job, with the list of machines cut down to
the one so that tests compile quickly. Objects are compiled by direct compiler calls, and only those
that include the changed file (-MM), directly or not. First the unchanged tree must pass. A twin is
caught if a test program fails, crashes or exceeds its time; it survives if all pass in every
attempt.
Exit status: 0 all caught, 1 a survivor, 2 nothing could be concluded.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYERS = ("base", "machine", "host", "backends", "sync", "windows")
CALL = re.compile(
    r"\bcore_?\s*\.\s*(?:publish|refresh|drain|fence)\s*\("
    r"|\bown_\s*\.\s*(?:publish_all|refresh_all|note_put|announce_puts)\s*\("
    r"|(?<=    )publish_all\s*\("
    r"|const std::lock_guard guard\s*\((?=refreshing_)"
)
NOTED = re.compile(r"(Status status = [^;]*;)(\s*)([^;\n]*\bwrote_to\s*\([^;]*;)")
MACHINE_LIST = re.compile(r"using AllMachines\s*=[^;]*;")
FAILED_TEST = re.compile(r"^\[  FAILED  \] ([\w/.]+)", re.M)


def machine_of(path, statement):
    """The machine whose tests must notice."""
    return "coherent" if path.startswith("windows/") and ".fence(" in statement else "stale"


@dataclasses.dataclass(frozen=True)
class Twin:
    path: str  # relative to the root
    line: int
    start: int  # of the replaced text in the file, in characters
    end: int
    statement: str
    replacement: str = "(void)0"

    @property
    def name(self):
        return f"{self.path}:{self.line}: {self.statement}"

    @property
    def machine(self):
        return machine_of(self.path, self.statement)


@dataclasses.dataclass
class Outcome:
    twin: Twin
    caught_by: str  # empty: survived
    seconds: float


def blank_comments(text):
    """The text with comments and string literals as spaces, of the same length."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def closing(text, opening):
    """The position behind the parenthesis that closes the one at `opening`."""
    depth = 0
    for at in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at + 1
    raise ValueError("unbalanced parentheses")


def find_twins(folders):
    twins = []
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            relative = path.relative_to(ROOT)
            if path.suffix not in (".h", ".cpp") or path.stem.endswith(("_test", "_bench")):
                continue
            if {"testing", "broken"} & set(relative.parts):
                continue
            text = path.read_text()
            code = blank_comments(text)
            for start, end, replacement in sorted([*removals(code), *exchanges(code, text)]):
                statement = " ".join(text[start:end].split())
                line = text.count("\n", 0, start) + 1
                twins.append(Twin(str(relative), line, start, end, statement, replacement))
    return twins


def removals(code):
    """The texts that are replaced by nothing: (start, end, replacement)."""
    for call in CALL.finditer(code):
        yield call.start(), closing(code, call.end() - 1), "(void)0"


def exchanges(code, text):
    """The texts that are put in the other order, likewise."""
    for pair in NOTED.finditer(code):
        operation, between, note = (text[slice(*pair.span(group))] for group in (1, 2, 3))
        yield pair.start(), pair.end(), note + between + operation


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
                # These need more libraries; no test here uses them.
                left_out = shutil.ignore_patterns("scc", "fibres", "mpi")
                shutil.copytree(ROOT / layer, self.folder / layer, ignore=left_out)
        machines = self.folder / "backends/machines.h"
        reduced, count = MACHINE_LIST.subn(
            f"using AllMachines = TypeList<{options.machine}::Core>;", machines.read_text())
        if count == 0:
            raise RuntimeError("backends/machines.h has no list of machines any more")
        machines.write_text(reduced)

    def sources(self, folders, suffixes):
        found = [p.relative_to(self.folder) for layer in folders
                 for p in sorted((self.folder / layer).rglob("*.cpp"))]
        return [s for s in found if s.stem.endswith(("_test", "_bench")) == bool(suffixes) and
                (not suffixes or s.stem.endswith(suffixes))]

    def compiler(self, source, *more):
        command = [self.options.cxx, "-std=c++20", "-O1", "-w", f"-I{self.folder}", *more,
                   str(self.folder / source)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def includes(self, source):
        """The files of the tree that `source` includes, and itself."""
        files = self.compiler(source, "-MM").split(":", 1)[1].replace("\\\n", " ").split()
        prefix = f"{self.folder}/"
        return {f.removeprefix(prefix) for f in files if f.startswith(prefix)}

    def compile(self, source, inputs):
        digest = hashlib.sha256()
        for name in sorted(inputs):
            digest.update((self.folder / name).read_bytes())
        target = self.objects / f"{str(source).replace('/', '_')}.{digest.hexdigest()[:16]}.o"
        if not target.exists():
            made = self.folder / "new.o"
            self.compiler(source, "-c", "-o", str(made))
            made.rename(target)
        return target


class Bench:
    """The tests that the selected twins concern, and how to run them."""

    def __init__(self, twins, scratch, options):
        self.options = options
        self.scratch = pathlib.Path(scratch)
        (self.scratch / "objects").mkdir()
        tree = self.new_tree()
        self.library = tree.sources(("base", "host", "backends", "windows"), ())
        tests = [t for t in tree.sources(("sync", "windows"), ("_test",))
                 if options.tests.search(str(t))]
        sources = self.library + tests
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            self.inputs = dict(zip(sources, pool.map(tree.includes, sources)))
        changed = {t.path for t in twins}
        self.tests = [t for t in tests if self.concerns(changed, t)]
        self.caught = collections.Counter()  # by test
        caught = self.run_tests(tree, changed)
        if caught:
            raise RuntimeError(f"the unchanged tree fails {caught}; nothing can be concluded")

    def new_tree(self):
        return Tree(tempfile.mkdtemp(dir=self.scratch), self.scratch / "objects", self.options)

    def parts(self, test):
        """The sources of a test program: tests of sync do without windows."""
        folders = ("base", "host", "backends", test.parts[0])
        return [test, *(s for s in self.library if s.parts[0] in folders)]

    def concerns(self, changed, test):
        return any(changed & self.inputs[s] for s in self.parts(test))

    def run_test(self, tree, test):
        """The damage that a run of the test program caught, or an empty string."""
        program = tree.folder / "program"
        objects = [tree.compile(s, self.inputs[s]) for s in self.parts(test)]
        subprocess.run([self.options.cxx, *map(str, objects), "-o", str(program), "-lgtest",
                        "-lgtest_main", "-lpthread"], check=True, capture_output=True, text=True)
        try:
            done = subprocess.run([str(program), f"--gtest_filter=*{self.options.machine}*",
                                   "--gtest_fail_fast", "--gtest_brief=1"], capture_output=True,
                                  text=True, errors="replace", timeout=self.options.timeout)
        except subprocess.TimeoutExpired:
            return f"{test} (no end in {self.options.timeout} s)"
        if done.returncode == 0:
            return ""
        named = FAILED_TEST.search(done.stdout)
        return named.group(1) if named else f"{test} (exit status {done.returncode})"

    def run_tests(self, tree, changed):
        """Runs the tests that include one of the changed files, those that caught most first."""
        for test in sorted(self.tests, key=lambda t: -self.caught[t]):
            if self.concerns(changed, test):
                caught = self.run_test(tree, test)
                if caught:
                    self.caught[test] += 1
                    return caught
        return ""

    def try_twin(self, tree, twin):
        started = time.monotonic()
        path = tree.folder / twin.path
        original = path.read_text()
        path.write_text(original[:twin.start] + twin.replacement + original[twin.end:])
        caught = ""
        try:
            for _ in range(self.options.attempts):
                caught = caught or self.run_tests(tree, {twin.path})
        except subprocess.CalledProcessError as error:
            raise RuntimeError(f"{twin.name} does not build:\n{error.stderr}") from error
        finally:
            path.write_text(original)
        return Outcome(twin, caught, time.monotonic() - started)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="only list the twins")
    parser.add_argument("--only", metavar="REGEX", type=re.compile, default=re.compile(""))
    parser.add_argument("--tests", metavar="REGEX", type=re.compile, default=re.compile(""),
                        help="only test sources that match")
    parser.add_argument("--slice", metavar="K/N", default="1/1", help="the K-th of N slices")
    parser.add_argument("--folders", nargs="+", default=["sync", "windows"])
    parser.add_argument("--attempts", type=int, default=3,
                        help="runs of all tests before a twin counts as survivor")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for a test program")
    parser.add_argument("--jobs", type=int, choices=(1, 2), default=2)
    parser.add_argument("--json", metavar="FILE", help="one JSON line for each twin")
    parser.add_argument("--cxx", default=os.environ.get("CXX", "g++"))
    options = parser.parse_args()
    match = re.fullmatch(r"(\d+)/(\d+)", options.slice)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        parser.error(f"--slice {options.slice}: expected K/N with 1 <= K <= N")
    options.slice = int(match[1]) - 1, int(match[2])
    return options


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
    print(f"{'caught  ' if outcome.caught_by else 'SURVIVED'} {outcome.seconds:6.1f} s  "
          f"{twin.name}  {outcome.caught_by}", flush=True)
    if lines:
        record = {"file": twin.path, "line": twin.line, "statement": twin.statement,
                  "caught_by": outcome.caught_by or None, "seconds": round(outcome.seconds, 1)}
        print(json.dumps(record), file=lines, flush=True)


def main():
    options = parse_options()
    number, of = options.slice
    twins = [t for t in find_twins(options.folders) if options.only.search(t.name)][number::of]
    if options.list:
        for twin in twins:
            print(twin.name)
        return 0
    survivors = 0
    lines = open(options.json, "w") if options.json else None
    for options.machine in sorted({twin.machine for twin in twins}, reverse=True):
        concerned = [twin for twin in twins if twin.machine == options.machine]
        with tempfile.TemporaryDirectory(prefix="broken_twins.") as scratch:
            try:
                for outcome in run_all(concerned, options, scratch):
                    survivors += not outcome.caught_by
                    report(outcome, lines)
            except RuntimeError as error:
                print(f"broken_twins: {error}", file=sys.stderr)
                return 2
            except subprocess.CalledProcessError as error:
                print(f"broken_twins: the unchanged tree does not build:\n{error.stderr}",
                      file=sys.stderr)
                return 2
    print(f"{len(twins)} twins, {survivors} survived")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
