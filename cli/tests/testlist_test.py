# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest
from tombolo.errors import UserError
from tombolo.suite import testlist
from tombolo.suite.testlist import Test


def test_a_plain_line_names_program_and_processes():
    assert testlist.parse_line("rma", "winname 2") == Test("rma", "winname", 2)


def test_arguments_environment_and_time_are_kept():
    test = testlist.parse_line("rma", "x 3 arg=-a=1 arg=-b env=A=B=C timeLimit=300 mpiversion=3.0")
    assert test == Test("rma", "x", 3, ("-a=1", "-b"), (("A", "B=C"),), 300)
    assert test.id == "rma/x:3:-a=1:-b"
    assert test.key == "rma/x"


@pytest.mark.parametrize("line", ["", "# winname 2", "  ", "subfolder", "#win_large_shm 4"])
def test_comments_and_folders_are_no_tests(line):
    assert testlist.parse_line("rma", line) is None


def test_a_line_with_an_option_that_we_do_not_know_is_excluded_by_name():
    assert testlist.parse_line("rma", "x 2 resultTest=TestErrFatal").excluded


def test_lists_are_read_from_the_build_before_the_source(tmp_path: Path):
    for name, text in (("build", "a 1\n"), ("suite", "b 1\n")):
        (tmp_path / name / "rma").mkdir(parents=True)
        (tmp_path / name / "rma" / "testlist").write_text(text)
    read = testlist.read(tmp_path / "build", ("rma",), tmp_path / "suite")
    assert [test.name for test in read] == ["a"]


TESTS = [Test("rma", name, 2) for name in "abcde"]


def test_slices_cover_every_test_once():
    parts = [testlist.choose(TESTS, f"{k}/3", None, set()) for k in (1, 2, 3)]
    assert sorted(test.name for part in parts for test in part) == list("abcde")


def test_the_quick_slice_is_a_list_of_names():
    assert [t.name for t in testlist.choose(TESTS, "quick", None, {"rma/b"})] == ["b"]


def test_a_pattern_narrows_a_slice():
    assert [t.name for t in testlist.choose(TESTS, "1/2", "rma/[ab]:", set())] == ["a"]


@pytest.mark.parametrize("slice_", ["0/3", "4/3", "x", "1/"])
def test_a_slice_that_is_none_is_refused(slice_):
    with pytest.raises(UserError, match="slice"):
        testlist.choose(TESTS, slice_, None, set())
