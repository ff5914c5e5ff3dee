# SPDX-License-Identifier: Apache-2.0
"""Reads the suite's lists: one test a line, `name processes [key=value ...]`."""

import re
from dataclasses import dataclass
from pathlib import Path

from tombolo.errors import UserError


@dataclass(frozen=True)
class Test:
    """One line of a list."""

    __test__ = False  # for pytest: the name is the suite's word, not a test of ours

    folder: str  # `rma`
    name: str  # the program
    ranks: int
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    seconds: int | None = None  # allowed by the list, if it says so
    excluded: str | None = None  # why it cannot be judged, for an option that we do not serve

    @property
    def id(self) -> str:
        """Unique in the suite: `rma/rma_contig:2:-iter=10`."""
        return ":".join([f"{self.folder}/{self.name}", str(self.ranks), *self.args])

    @property
    def key(self) -> str:
        """Its name in the list of expected failures: `rma/rma_contig`."""
        return f"{self.folder}/{self.name}"


def parse_line(folder: str, line: str) -> Test | None:
    """None for comments, blank lines and sub-folders (a name without a count)."""
    words = line.split("#", 1)[0].split()
    if len(words) < 2:
        return None
    args, env, seconds, excluded = [], [], None, None
    for word in words[2:]:
        key, _, value = word.partition("=")
        match key:
            case "arg":
                args.append(value)
            case "env":
                name, _, setting = value.partition("=")
                env.append((name, setting))
            case "timeLimit":
                seconds = int(value)
            case "resultTest" | "xfail":
                excluded = word
            case "mpiversion" | "strict" | "lock" | "mem" | "init":
                pass  # all of MPI 4 is required here, and memory and locks are no concern
            case _:
                excluded = word
    return Test(folder, words[0], int(words[1]), tuple(args), tuple(env), seconds, excluded)


def read(build: Path, folders: tuple[str, ...], suite: Path | None = None) -> list[Test]:
    """All tests of the folders, in the lists' order."""
    tests = []
    for folder in folders:
        candidates = [build / folder / "testlist"]
        if suite:
            candidates.append(suite / folder / "testlist")
        path = next((path for path in candidates if path.is_file()), None)
        if path is None:
            raise UserError(f"no testlist for {folder} in {build}")
        for line in path.read_text().splitlines():
            if test := parse_line(folder, line):
                tests.append(test)
    return tests


def choose(tests: list[Test], slice_: str | None, only: str | None, quick: set[str]) -> list[Test]:
    """`K/N` takes every Nth test, `quick` the named ones; `only` is a regular expression."""
    if slice_ == "quick":
        tests = [test for test in tests if test.key in quick]
    elif slice_:
        first, step = slice_of(slice_)
        tests = tests[first - 1 :: step]
    if only:
        tests = [test for test in tests if re.search(only, test.id)]
    return tests


def slice_of(text: str) -> tuple[int, int]:
    """K and N of `K/N`."""
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise UserError(f"a slice is `quick` (of MPICH's tests) or K/N with 1 <= K <= N, not '{text}'")
    return int(match[1]), int(match[2])
