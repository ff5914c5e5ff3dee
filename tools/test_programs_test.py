# SPDX-License-Identifier: Apache-2.0
"""A slice of the test programs is built and run, and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest
import test_programs

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(few C)
enable_testing()
foreach(name one two three)
  add_executable(${name} main.c)
  add_test(NAME ${name} COMMAND ${name})
endforeach()
add_executable(part main.c)
add_test(NAME four COMMAND part $<TARGET_FILE:two>)
set_tests_properties(four PROPERTIES LABELS "part;two")
"""


@pytest.fixture
def checkout(tmp_path, monkeypatch) -> Path:
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    configure = "build/%/build.ninja:\n\t@cmake -G Ninja -B build/$* >/dev/null\n"
    (tmp_path / "Makefile").write_text(configure)
    monkeypatch.setattr(test_programs, "ROOT", tmp_path)
    return tmp_path


def done(monkeypatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["test_programs.py", "plain", *arguments])
    return test_programs.main()


def programs(checkout: Path) -> list[str]:
    return [name for name in ("one", "two", "three", "part") if (checkout / "build/plain" / name).exists()]


def test_a_slice_is_built_and_run(checkout, monkeypatch, capfd):
    assert done(monkeypatch, "--slice", "1/2") == 0
    assert "0 tests failed out of 2" in capfd.readouterr().out
    assert programs(checkout) == ["one", "three"]


def test_a_slice_may_be_built_alone_with_what_its_tests_need(checkout, monkeypatch, capfd):
    assert done(monkeypatch, "--slice", "4/4", "--build-only") == 0
    assert "tests" not in capfd.readouterr().out
    assert programs(checkout) == ["two", "part"]


def test_other_targets_are_built_where_they_are_wanted(checkout, monkeypatch):
    assert done(monkeypatch, "--slice", "1/4", "--build-only", "--also", "part", "three") == 0
    assert programs(checkout) == ["one", "three", "part"]


def test_a_test_that_has_come_since_the_last_time_is_one_of_them(checkout, monkeypatch, capfd):
    assert done(monkeypatch, "--build-only") == 0
    text = (checkout / "CMakeLists.txt").read_text()
    (checkout / "CMakeLists.txt").write_text(text.replace("name one two", "name one zero two"))
    assert done(monkeypatch) == 0
    assert "0 tests failed out of 5" in capfd.readouterr().out


def test_a_failure_is_the_status(checkout, monkeypatch, capfd):
    (checkout / "main.c").write_text("int main(void) { return 1; }\n")
    assert done(monkeypatch) == 8
    assert "4 tests failed out of 4" in capfd.readouterr().out
    (checkout / "main.c").write_text("no C\n")
    assert done(monkeypatch) not in (0, 8)


def test_a_wrong_slice_is_refused():
    tool = Path(test_programs.__file__)
    refused = subprocess.run([tool, "asan", "--slice", "3/2"], capture_output=True, text=True)
    assert refused.returncode == 2
    assert "expected K/N" in refused.stderr
