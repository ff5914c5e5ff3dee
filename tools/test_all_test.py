# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys
from pathlib import Path

import pytest
import test_all
from test_all import ROOT, Result, Section

PROGRAMS = """1: [==========] 12 tests from 3 test suites ran. (1 ms total)
1: [  PASSED  ] 12 tests.
2: [==========] 1 test from 1 test suite ran. (1 ms total)
2: [  PASSED  ] 1 test.
"""
FAILING = """3: [==========] 6 tests from 1 test suite ran. (1 ms total)
3: [  PASSED  ] 4 tests.
3: [  FAILED  ] 2 tests, listed below:
3: [  FAILED  ] Lock.Excludes
3: [  FAILED  ] Locks/fifo_on_stale.Everything, where TypeParam = (anonymous)::Case<A, B>
"""


@pytest.mark.parametrize(
    ("output", "status", "expected"),
    [
        (PROGRAMS + "100% tests passed, 0 tests failed out of 2\n", 0, (13, 0)),
        (PROGRAMS + FAILING + "50% tests passed, 1 tests failed out of 3\n", 8, (17, 2)),
        (PROGRAMS + FAILING + "50% tests passed, 2 tests failed out of 4\n", 8, (17, 3)),
        (".... \n26 passed in 0.59s\n", 0, (26, 0)),
        ("1 failed, 25 passed in 0.59s\n", 1, (25, 1)),
        ("demo: 16 passed, 0 failed\n", 0, (16, 0)),
        ("demo: 15 passed, 1 failed\n", 1, (15, 1)),
        ("layers: every include points down\n", 0, (1, 0)),
        ("a.h:1: bad\n", 1, (0, 1)),
        (PROGRAMS + "100% tests passed, 0 tests failed out of 2\ncrash\n", 1, (13, 1)),
    ],
)
def test_results_are_counted_from_what_the_program_says(output, status, expected):
    assert test_all.counts(output, status) == expected


def test_a_section_that_takes_too_long_fails(monkeypatch):
    monkeypatch.setattr(test_all, "MINUTE", 1)
    result, _ = test_all.run(Section("slow", "sleep 20", 1))
    assert result.failed == 1
    assert "stopped" in result.note


def test_the_summary_ends_with_the_sum():
    text = test_all.summary({"a": Result(3, 0, 61), "b": Result(4, 1, 2)}, 63)
    assert text.splitlines()[-1] == "7 passed, 1 failed"
    assert "1:01" in text


def test_the_summary_tells_the_work_from_the_time():
    work = "import time\nwhile time.process_time() < 0.5: pass"
    idle, _ = test_all.run(Section("idle", "sleep 1", 1))
    busy, _ = test_all.run(Section("busy", f"{sys.executable} -c '{work}'", 1))
    assert idle.cpu_seconds < 0.5 <= busy.cpu_seconds
    text = test_all.summary({"a": Result(1, 0, 61, cpu_seconds=122.4), "b": Result(1, 0, 1, cpu_seconds=3)}, 62)
    row, total = text.splitlines()[2], text.splitlines()[4]
    assert row.split() == ["a", "1", "0", "1:01", "2:02"]
    assert total.startswith("total time 1:02, cpu 2:05 on ")


def test_the_summary_names_what_failed():
    output = """
The following tests did not run:
\t 7 - a.NotHere (Skipped)
The following tests FAILED:
\t531 - b.IsFound<b/on_stale.  # TypeParam = (anonymous)::B<C> > (Failed)
\t532 - b.Hangs (Timeout)
\t533 - b.Crashes (Subprocess aborted)
\t534 - c_NOT_BUILT (Not Run)
\t535 - d_is_labelled (Failed)            tombolo-svp svp_example
Errors while running CTest
FAILED cli/tests/x_test.py::test_y[1 2] - AssertionError: z
"""
    assert test_all.names_of_failures(FAILING) == ("Lock.Excludes", "Locks/fifo_on_stale.Everything")
    names = test_all.names_of_failures(output)
    assert [name[:10] for name in names] == [
        "b.IsFound<",
        "b.Hangs",
        "b.Crashes",
        "c_NOT_BUIL",
        "d_is_label",
        "cli/tests/",
    ]
    assert names[-1] == "cli/tests/x_test.py::test_y[1 2] - AssertionError: z"
    text = test_all.summary({"a": Result(3, 5, 61, failures=names)}, 61)
    assert "failed in a: b.Hangs\n" in text
    assert text.splitlines()[-1] == "3 passed, 5 failed"


def test_pytest_names_what_failed_as_make_runs_it(tmp_path):
    (tmp_path / "wrong_test.py").write_text("def test_one(): pass\n\n\ndef test_other(): assert 0\n")
    commands = subprocess.run(["make", "-n", "python-test"], cwd=ROOT, capture_output=True, text=True).stdout
    (command,) = (line for line in commands.splitlines() if line.endswith(" cli/tests tools"))
    words = command.split()[1:-2]
    env = {**os.environ, "CI": "true"}  # there reasons are not cut at the terminal's width
    done = subprocess.run([sys.executable, *words, tmp_path], cwd=ROOT, capture_output=True, text=True, env=env)
    (name,) = test_all.names_of_failures(done.stdout)
    assert name.endswith("wrong_test.py::test_other - assert 0")
    assert test_all.counts(done.stdout, done.returncode) == (1, 1)


def test_a_failure_of_which_no_list_tells_is_named_by_its_last_line():
    result, _ = test_all.run(Section("broken", "echo begins; echo it does not build; exit 3", 1))
    assert result.failures == ("it does not build",)
    result, _ = test_all.run(Section("right", "echo begins", 1))
    assert result.failures == ()


def test_each_prerequisite_comes_before_what_needs_it():
    names = [section.name for section in test_all.SECTIONS]
    for section in test_all.SECTIONS:
        assert section.after is None or names.index(section.after) < names.index(section.name)
        assert section.beside is None or section.beside in names


def until_there(name: str) -> str:
    return f"timeout 60 sh -c 'until test -e $WITNESS.{name}; do sleep 0.1; done'"


@pytest.fixture
def witness(tmp_path, monkeypatch) -> Path:
    """The start of names of files by which sections tell each other that they run."""
    monkeypatch.setenv("WITNESS", str(tmp_path / "witness"))
    return tmp_path / "witness"


def test_a_section_beside_another_runs_at_the_same_time(witness, capsys):
    run = test_all.Run([
        Section("a", f"touch $WITNESS.a; {until_there('b')}; echo in a", 1),
        Section("b", f"touch $WITNESS.b; {until_there('a')}", 1, beside="a"),
    ])  # fmt: skip
    run.all()
    assert [(name, result.passed) for name, result in run.results.items()] == [("a", 1), ("b", 1)]
    told = capsys.readouterr().out
    assert told.index("in a") < told.index("=== b")


def test_a_section_in_the_background_gives_way_to_those_beside_it():
    """Its session too, where the kernel shares processors between these."""
    shown = "sh -c 'ps -o ni= -p $$; cat /proc/self/autogroup 2>/dev/null'"
    ahead, behind = (test_all.run(Section("shown", shown, 1), show)[1].split() for show in (True, False))
    assert int(behind[0]) > int(ahead[0])
    if len(behind) > 1:
        assert (behind[-1], ahead[-1]) == ("19", "0")


def test_a_section_in_the_background_goes_on_beside_the_next_ones(witness, capsys):
    run = test_all.Run([
        Section("a", "true", 1),
        Section("b", f"{until_there('c')}; echo in b", 1, beside="a"),
        Section("c", "touch $WITNESS.c; echo in c", 1),
    ])  # fmt: skip
    run.all()
    assert [run.results[name].passed for name in "abc"] == [1, 1, 1]
    told = capsys.readouterr().out
    assert told.index("in c") < told.index("\nin b")


def test_one_section_at_a_time_is_in_the_background(witness, capsys):
    run = test_all.Run([
        Section("a", "true", 1),
        Section("b", f"{until_there('d')}; touch $WITNESS", 1, beside="a"),
        Section("c", "test -e $WITNESS", 1, beside="a"),
        Section("d", "test ! -e $WITNESS && touch $WITNESS.d", 1),
        Section("e", "test -e $WITNESS", 1, after="c"),
    ])  # fmt: skip
    run.all()
    assert [run.results[name].passed for name in "bcde"] == [1, 1, 1, 1]


def test_a_section_waits_for_no_more_of_the_background_than_it_needs(witness, capsys):
    run = test_all.Run([
        Section("a", "true", 1),
        Section("b", "true", 1, beside="a"),
        Section("c", until_there("d"), 1, beside="a"),
        Section("d", "touch $WITNESS.d", 1, after="b"),
    ])  # fmt: skip
    run.all()
    assert [run.results[name].passed for name in "abcd"] == [1, 1, 1, 1]


def test_a_section_beside_another_runs_alone_where_that_was_not_asked_for(capsys):
    alone = test_all.Run([Section("b", "echo in b", 1, beside="a")])
    alone.all()
    assert alone.results["b"].passed == 1
    assert "in b" in capsys.readouterr().out


def test_what_needs_a_failed_section_does_not_run_beside_another_either(capsys):
    sections = [
        Section("build", "false", 1),
        Section("a", "echo in a", 1),
        Section("b", "echo in b", 1, after="build", beside="a"),
    ]
    run = test_all.Run(sections)
    run.all()
    assert run.results["b"].note == "not run: build failed"
    assert "\nin b" not in capsys.readouterr().out
