# SPDX-License-Identifier: Apache-2.0
import subprocess
from pathlib import Path

import pytest
import tidy

HEAD = f"// {tidy.LICENSE}\n"


def problems(name: str, text: str) -> list[str]:
    return tidy.check_file(Path(name), text)


def test_a_proper_file_passes():
    assert problems("base/a.h", HEAD + "int a();\n") == []


def test_the_license_may_follow_the_interpreter():
    assert problems("tools/a.sh", f"#!/usr/bin/env bash\n# {tidy.LICENSE}\n") == []


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.h", "int a();\n", "no line"),
        ("a.h", HEAD + "int a();\n" * tidy.MOST_LINES, "lines; 800 at most"),
        ("a.h", HEAD + "// TO" + "DO later\n", "finish it"),
        ("a.md", "FIX" + "ME\n", "finish it"),
        ("a.h", HEAD + "\tint a();\n", "a tab"),
        ("a.h", HEAD + "int a(); \n", "blanks"),
        ("a.h", HEAD + "int a();", "one newline"),
        ("a.h", HEAD + "\n\n", "one newline"),
        ("a.md", "see /ho" + "me/me/x\n", "a path of one machine"),
        ("a.sh", f"# {tidy.LICENSE}\ncurl ht" + "tps://x.org/y\n", "a download address"),
    ],
)
def test_each_rule_finds_its_break(name, text, says):
    found = problems(name, text)
    assert len(found) == 1
    assert says in found[0]


def test_a_makefile_may_hold_tabs():
    assert problems("Makefile", "a:\n\tb\n") == []


def test_a_path_within_the_repository_is_fine():
    assert problems("a.md", "docs/work/list and ../home/x\n") == []


def test_ignored_files_are_not_looked_at(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("build/\n")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "a.h").write_text("\t")
    (tmp_path / "b.h").write_text("\t")
    assert tidy.files(tmp_path) == [Path("b.h")]
