# SPDX-License-Identifier: Apache-2.0
"""How mpi4py's tests are chosen, run and judged: with tests of our own in their place."""

import importlib.util
import io
import stat
import sys
import tarfile
import unittest
from pathlib import Path

import pytest
from tombolo.errors import UserError
from tombolo.mpis import Mpi
from tombolo.processes import Outcome
from tombolo.suite import mpi4py
from tombolo.suite.runner import Setting

PASSED = {"outcome": "passed", "says": ""}
SKIPPED = {"outcome": "skipped", "says": "no such MPI"}
FAILED = {"outcome": "failed", "says": "AssertionError: 11 != 10"}
END = [{"end": True}]
FINE, DEAD = Outcome(0, "", "", 1), Outcome(1, "", "exited on signal 11 (Segmentation fault)", 1)
LATE = Outcome(1, "", "Timeout (0:01:00)!\nThread 0x1 (most recent call first):", 1)


def told(test: str, outcome: dict | None = None) -> list[dict]:
    return [{"test": test}] + ([{"test": test, **outcome}] if outcome else [])


def words(notes: list[list[dict]], outcome: Outcome) -> tuple[list[tuple[str, str]], str | None]:
    found, after = mpi4py.merge(notes, outcome)
    return [(word.test, word.word) for word in found], after


def test_a_test_fails_where_it_fails_at_one_process_and_is_skipped_where_all_skip_it():
    one = told("a", PASSED) + told("b", PASSED) + told("c", SKIPPED) + told("d", SKIPPED) + END
    other = told("a", PASSED) + told("b", FAILED) + told("c", SKIPPED) + told("d", PASSED) + END
    expected = [("a", "passed"), ("b", "failed"), ("c", "skipped"), ("d", "passed")]
    assert words([one, other], FINE) == (expected, None)


def test_the_test_that_a_process_did_not_finish_broke_the_job_although_others_are_further():
    behind = told("a", PASSED) + told("b")
    ahead = told("a", PASSED) + told("b", FAILED) + told("c")
    assert words([behind, ahead], LATE) == ([("a", "passed"), ("b", "failed")], "b")
    waits = told("a", PASSED) + told("b")
    assert words([behind, waits], LATE) == ([("a", "passed"), ("b", "timeout")], "b")
    assert words([behind, waits], DEAD) == ([("a", "passed"), ("b", "crashed")], "b")


def test_a_job_that_ends_badly_behind_its_tests_is_not_a_pass():
    whole = told("a", PASSED) + END
    assert words([whole, whole], DEAD) == ([("a", "passed"), (mpi4py.END, "crashed")], None)
    cut = told("a", PASSED)
    assert words([whole, cut], FINE)[0][-1][0] == mpi4py.END
    assert words([[], []], DEAD) == ([(mpi4py.START, "crashed")], None)


def test_modules_with_windows_are_found(tmp_path):
    (tmp_path / "test_win.py").write_text("w = MPI.Win.Create(m)")
    (tmp_path / "test_p2p.py").write_text("MPI.Window = 1")
    (tmp_path / "helper.py").write_text("MPI.Win")
    assert mpi4py.modules(tmp_path) == ("test_win.py",)
    with pytest.raises(UserError):
        mpi4py.modules(tmp_path / "none")


def test_the_sources_appear_whole(tmp_path):
    (between := tmp_path / "between").mkdir()
    archive = between / "mpi4py-9.8.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        entry = tarfile.TarInfo("mpi4py-9.8/test/main.py")
        entry.size = 4
        packed.addfile(entry, io.BytesIO(b"pass"))
    mpi4py.unpack(archive, between, tmp_path)
    assert (tmp_path / "mpi4py-9.8" / "test" / "main.py").read_text() == "pass"


def test_an_mpi_without_mpi4py_is_refused_with_a_hint(tmp_path):
    with pytest.raises(UserError, match="make env-test"):
        mpi4py.prepare(Mpi("mpich-apt", tmp_path, None, None), print)
    with pytest.raises(UserError, match="make env-test"):
        mpi4py.prepare(Mpi("mpich", tmp_path, None, tmp_path), print)


# --- The program of each process ------------------------------------------------------------------


def rank_program():
    made = importlib.util.spec_from_file_location("run_mpi4py_tests", mpi4py.PROGRAM)
    module = importlib.util.module_from_spec(made)
    made.loader.exec_module(module)
    return module


class Samples(unittest.TestCase):
    __test__ = False  # not pytest's

    def passes(self):
        pass

    def fails_in_part(self):
        with self.subTest("first"):
            self.assertEqual(11, 10)
        with self.subTest("second"):
            pass

    def skips(self):
        self.skipTest("not here")

    @unittest.expectedFailure
    def fails_as_expected(self):
        self.fail()


NAMES = ("passes", "fails_in_part", "skips", "fails_as_expected")


def test_outcomes_are_noted_as_they_come(tmp_path, monkeypatch):
    program = rank_program()
    monkeypatch.setattr(program.Notes, "watch", lambda self: None)  # it ends the process
    notes = program.Notes(str(tmp_path / "notes"), 60)
    unittest.TestSuite(Samples(name) for name in NAMES).run(notes)
    read = mpi4py.read(tmp_path / "notes")
    outcomes = [(n["outcome"], n["says"]) for n in read if "outcome" in n]
    assert outcomes == [
        ("passed", ""), ("failed", "AssertionError: 11 != 10"), ("skipped", "not here"), ("passed", ""),
    ]  # fmt: skip
    assert len(read) == 2 * len(NAMES)


def test_a_line_that_was_cut_off_is_left_out(tmp_path):
    (tmp_path / "notes").write_text('{"test": "a"}\n{"test": "a", "outc')
    assert mpi4py.read(tmp_path / "notes") == [{"test": "a"}]


def test_choices_narrow_each_other():
    choose = rank_program().choose
    tests = [Samples(name) for name in NAMES]
    ids = [test.id() for test in tests]
    assert choose(tests, {}) == tests
    assert choose(tests, {"only": "fails"}) == [tests[1], tests[3]]
    assert choose(tests, {"slice": [2, 2]}) == [tests[1], tests[3]]
    assert choose(tests, {"just": [ids[2], ids[1]], "after": ids[1]}) == [tests[2]]
    assert choose(tests, {"after": ids[3]}) == []


# --- Both together --------------------------------------------------------------------------------

MAIN = """
import unittest, test_some
def main(module, argv, testRunner):
    assert argv[1:] == ["-q", "-i", "^test_some\\\\.py$"]
    testRunner.run(unittest.defaultTestLoader.loadTestsFromModule(test_some))
    raise SystemExit(1)
"""
TESTS = """
import os, sys, time, unittest
from mpi4py import MPI
class Test(unittest.TestCase):
    WIN = MPI.Win
    def test_1(self): print('tombolo: stats {"windows_served": 3}', file=sys.stderr)
    def test_2(self): os.kill(os.getpid(), 11)
    def test_3(self): self.fail("three")
    def test_4(self): time.sleep(600)
    def test_5(self): pass
"""
FAKE_MPI = """
class Win: pass
class COMM_WORLD:
    Get_rank = staticmethod(lambda: 0)
"""


@pytest.fixture
def tests(tmp_path: Path, monkeypatch) -> mpi4py.Tests:
    """Tests that crash, fail and hang, an mpi4py without MPI, and a launcher that starts one process."""
    for name, text in {
        "tests/main.py": MAIN, "tests/test_some.py": TESTS,
        "packages/mpi4py/__init__.py": "", "packages/mpi4py/MPI.py": FAKE_MPI,
    }.items():  # fmt: skip
        (path := tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    launcher = tmp_path / "mpiexec"
    launcher.write_text('#!/bin/bash\nshift 2\n"$@"\ns=$?\n((s < 128)) || echo "(signal $((s - 128)))" >&2\nexit $s\n')
    launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))
    folder = tmp_path / "tests"
    return mpi4py.Tests(Mpi("mpich", launcher, None, tmp_path), Path(sys.executable), folder, mpi4py.modules(folder))


def test_each_test_has_a_verdict_although_some_end_the_processes(tests):
    seen = list(mpi4py.run(tests, 1, mpi4py.Choice(), Setting("stock"), 1.5))
    assert [(v.test, v.verdict) for v in seen] == [
        ("test_some.Test.test_1:1", "passed"), ("test_some.Test.test_2:1", "crashed"),
        ("test_some.Test.test_3:1", "failed"), ("test_some.Test.test_4:1", "timeout"),
        ("test_some.Test.test_5:1", "passed"),
    ]  # fmt: skip
    assert sum(verdict.served for verdict in seen) == 3
    assert "three" in seen[2].output and "test_4" in seen[3].output
    again = list(mpi4py.run_again(tests, [seen[2], seen[4]], 60))
    assert [(v.key, v.verdict) for v in again] == [(seen[2].key, "failed"), (seen[4].key, "passed")]
