# SPDX-License-Identifier: Apache-2.0
"""Runs mpi4py's tests in one process of an MPI job, and writes the outcome of each as a line of JSON.

    python run_mpi4py_tests.py PLAN.json          run by mpi4py's own main.py, which finds and prepares the tests

The plan names the folder of the tests, their modules, a choice among them, and the file to write. A test
that takes too long, and an end of the process that does, ends the process with a traceback.
This program imports nothing of tombolo: the Python of the MPI runs it.
"""

import contextlib
import faulthandler
import json
import pathlib
import re
import sys
import unittest
from collections.abc import Iterator
from types import TracebackType
from typing import Any

Error = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]


class Notes(unittest.TestResult):
    """Writes each start and each outcome at once: the process may die in the next test."""

    def __init__(self, path: str, limit: float) -> None:
        super().__init__()
        self._file = pathlib.Path(path).open("w")  # noqa: SIM115 (open as long as the process)
        self._limit = limit
        self._outcome: tuple[str, str] | None = None

    def note(self, **fields: object) -> None:
        self._file.write(json.dumps(fields) + "\n")
        self._file.flush()

    def watch(self) -> None:
        faulthandler.dump_traceback_later(self._limit, exit=True)

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self._outcome = None
        self.note(test=test.id())
        self.watch()

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        word, says = self._outcome or ("failed", "no outcome")
        self.note(test=test.id(), outcome=word, says=says)

    def addSuccess(self, test: unittest.TestCase) -> None:
        self._keep("passed")

    def addExpectedFailure(self, test: unittest.TestCase, err: Error) -> None:
        self._keep("passed")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self._keep("skipped", reason)

    def addFailure(self, test: unittest.TestCase, err: Error) -> None:
        super().addFailure(test, err)
        self._fail(test, err)

    def addError(self, test: unittest.TestCase, err: Error) -> None:
        super().addError(test, err)
        self._fail(test, err)

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Error | None) -> None:
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._fail(test, err)

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        super().addUnexpectedSuccess(test)
        self._keep("failed", "passes against expectation")

    def _fail(self, test: unittest.TestCase, err: Error) -> None:
        says = f"{type(err[1]).__name__}: {err[1]}"
        if isinstance(test, unittest.TestCase):
            self._keep("failed", says)
        else:  # the fixture of a class or a module, which no start precedes
            self.note(test=test.id(), outcome="failed", says=says)

    def _keep(self, word: str, says: str = "") -> None:
        """A failure is not forgotten when its test goes on."""
        if self._outcome is None or self._outcome[0] != "failed":
            self._outcome = (word, says)


class Chosen:
    """A runner, as unittest's main program wants one, for the tests that the plan chooses."""

    def __init__(self, notes: Notes, plan: dict[str, Any]) -> None:
        self._notes, self._plan = notes, plan

    def run(self, found: unittest.TestSuite) -> Notes:
        tests = choose(list(flat(found)), self._plan)
        unittest.TestSuite(tests).run(self._notes)
        return self._notes


def flat(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


def choose(tests: list[unittest.TestCase], plan: dict[str, Any]) -> list[unittest.TestCase]:
    """In the order of the tests, which is the same at all processes."""
    if plan.get("only"):
        tests = [test for test in tests if re.search(plan["only"], test.id())]
    if plan.get("slice"):
        first, step = plan["slice"]
        tests = tests[first - 1 :: step]
    if plan.get("just") is not None:
        tests = [test for test in tests if test.id() in plan["just"]]
    done = plan.get("after")
    ids = [test.id() for test in tests]
    return tests[ids.index(done) + 1 :] if done in ids else tests


def run(plan: dict[str, Any]) -> None:
    sys.path.insert(0, plan["tests"])
    sys.dont_write_bytecode = True
    from mpi4py import MPI

    notes = Notes(plan["notes"].format(rank=MPI.COMM_WORLD.Get_rank()), plan["limit"])
    notes.watch()
    import main  # mpi4py's

    modules = [f"^{re.escape(module)}$" for module in plan["modules"]]
    arguments = ["main.py", "-q", *[word for name in modules for word in ("-i", name)]]
    with contextlib.suppress(SystemExit):  # failures are in the notes
        main.main(module=None, argv=arguments, testRunner=Chosen(notes, plan))
    notes.watch()
    notes.note(end=True)


if __name__ == "__main__":
    run(json.loads(pathlib.Path(sys.argv[1]).read_text()))
