# SPDX-License-Identifier: Apache-2.0
"""Each unit of the product is checked by clang-tidy, together with others where their names allow it."""

import subprocess
from pathlib import Path

import check_tidy
import pytest

DIAGNOSTIC = "a.cpp:1:1: error: redefinition of 'a' [clang-diagnostic-error]\n"


def test_a_name_tells_whether_a_unit_is_of_the_product():
    assert check_tidy.of_product("mpi/windows/team.cpp")
    assert check_tidy.of_product("mpi/intercept/synchronization/win_test.cpp")
    assert not any(check_tidy.of_product(f"mpi/windows/a_{kind}.cpp") for kind in ("test", "bench", "check"))


def test_every_room_with_units_of_the_product_is_checked():
    listing = ["git", "ls-files", "--", "*/*.cpp"]
    names = subprocess.run(listing, cwd=check_tidy.ROOT, capture_output=True, text=True, check=True).stdout.split()
    rooms = {name.split("/")[0] for name in names if check_tidy.of_product(name)}
    assert rooms - {"examples"} == set(check_tidy.FOLDERS)


def test_units_that_are_left_out_are_there():
    assert all((check_tidy.ROOT / name).is_file() for name in check_tidy.NOT_PARSED)
    assert not {check_tidy.ROOT / name for name in check_tidy.NOT_PARSED} & {*check_tidy.own_sources()}


def test_groups_have_one_folder_and_the_same_options_and_are_not_long():
    files = [check_tidy.ROOT / "host" / f"{i}.cpp" for i in range(check_tidy.AT_A_TIME + 2)]
    other = check_tidy.ROOT / "mpi" / "a.cpp"
    flags: dict[Path, tuple[str, ...]] = {files[0]: ("-DA",)}
    groups = check_tidy.groups_of([*files, other], flags)
    assert sorted(map(len, groups)) == [1, 1, 1, check_tidy.AT_A_TIME]
    assert sorted(file for group in groups for file in group) == sorted([*files, other])


@pytest.fixture
def checked(monkeypatch) -> list[list[str]]:
    """The units that are checked together: a and c cannot be in one, and b has a finding."""
    units: list[list[str]] = []

    def tidy(source: Path, _flags: tuple[str, ...], *checks: str) -> tuple[int, str]:
        text = source.read_text() if source.is_file() else ""
        names = [name for name in "abcd" if f"{name}.cpp" in text] or [source.stem]
        if {"a", "c"} <= set(names):
            return 1, DIAGNOSTIC
        if check_tidy.PARSER_ALONE in checks:
            return 0, ""
        units.append(names)
        return (1, "b.cpp:1:1: error: [bugprone-x]\n") if "b" in names else (0, "")

    monkeypatch.setattr(check_tidy, "tidy", tidy)
    return units


def test_units_whose_names_conflict_are_checked_by_halves(checked, tmp_path):
    group = [check_tidy.ROOT / f"{name}.cpp" for name in "abcd"]
    assert check_tidy.check(group, (), tmp_path) == (1, "b.cpp:1:1: error: [bugprone-x]\n")
    assert checked == [["a", "b"], ["c", "d"]]


def test_units_without_a_conflict_are_checked_once(checked, tmp_path):
    group = [check_tidy.ROOT / f"{name}.cpp" for name in "cd"]
    assert check_tidy.check(group, (), tmp_path) == (0, "")
    assert checked == [["c", "d"]]
