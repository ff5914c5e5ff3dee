# SPDX-License-Identifier: Apache-2.0
"""The checks of Python find a mistake of each kind, in a small tree with the rules of this one."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import test_all

ROOT = Path(__file__).resolve().parent.parent
CHECKS = ("tools/check_python.sh", "tools/check_format.sh")
PRODUCT, TEST, TOOL = "cli/tombolo/one.py", "cli/tests/one_test.py", "tools/one.py"
HEAD = '"""A module."""\n\n'


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """A tree with the checks and a proper file in each folder of Python."""
    tree = tmp_path_factory.mktemp("tree")
    for name in ("pyproject.toml", *CHECKS):
        (tree / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    for name in (PRODUCT, TEST, TOOL, "mpi/python/one.py"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(HEAD + "NUMBER = 1\n")
    (tree / ".env").symlink_to(ROOT / ".env")
    subprocess.run(["git", "init", "-q", tree], check=True)
    return tree


def told(tree: Path, check: str) -> tuple[bool, str]:
    """Whether a check passes, and its output."""
    done = subprocess.run([tree / check], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    return done.returncode == 0, done.stdout


def passes(tree: Path) -> bool:
    return all(told(tree, check)[0] for check in CHECKS)


@pytest.mark.parametrize(
    ("check", "name", "text", "says"),
    [
        (CHECKS[0], TEST, "import os\n", "F401"),
        (CHECKS[0], TOOL, "import sys, os\n\nprint(sys, os)\n", "E401"),
        (CHECKS[0], TOOL, "print(unknown)\n", "F821"),
        (CHECKS[0], TOOL, "NUMBER: int = 'one'\n", "[assignment]"),
        (CHECKS[0], TOOL, "def one():\n    return 1 + 'one'\n", "[operator]"),
        (CHECKS[0], TEST, "from tombolo import one\n\none.other()\n", "[attr-defined]"),
        (CHECKS[0], PRODUCT, "def one(number):\n    return number\n", "[no-untyped-def]"),
        (CHECKS[0], PRODUCT, "NUMBER = 1  # type: ignore\n", "[unused-ignore]"),
        (CHECKS[0], PRODUCT, "NUMBER = 1  # noqa: F401\n", "RUF100"),
        (CHECKS[1], PRODUCT, "NUMBER  =  1\n", "one.py"),
        (CHECKS[1], TEST, f"NAMES = [{'1000, ' * 20}]\n", "one_test.py"),
    ],
)
def test_a_mistake_makes_a_check_fail(small, check, name, text, says):
    before = (small / name).read_text()
    (small / name).write_text(HEAD + text)
    try:
        passed, output = told(small, check)
    finally:
        (small / name).write_text(before)
    assert not passed and says in output, output


def test_the_small_tree_itself_passes(small):
    assert passes(small)


def test_the_formatter_rewrites_where_it_is_told_to(small):
    (small / TOOL).write_text(HEAD + "NUMBER  =  1\n")
    subprocess.run([small / CHECKS[1], "--fix"], check=True, stdout=subprocess.DEVNULL)
    assert (small / TOOL).read_text() == HEAD + "NUMBER = 1\n"
    assert passes(small)


def test_lint_and_the_run_of_all_tests_have_the_checks():
    commands = subprocess.run(["make", "-n", "lint"], cwd=ROOT, capture_output=True, text=True).stdout.splitlines()
    sections = [section.command for section in test_all.SECTIONS]
    for check in CHECKS:
        assert check in commands and check in sections


def test_every_program_in_python_is_seen_by_its_suffix():
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    programs = [ROOT / name for name in listed if os.access(ROOT / name, os.X_OK) and not name.endswith(".py")]
    hidden = [path for path in programs if b"python" in path.read_bytes()[:64].split(b"\n")[0]]
    assert hidden == []
