# SPDX-License-Identifier: Apache-2.0
"""Commands that hints advise: tried where that is harmless, else compared with their targets."""

import ast
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from tombolo import hints, libraries, mpis, paths
from tombolo.app import made
from tombolo.commands import doctor
from tombolo.hints import Hint
from typer.testing import CliRunner

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = sorted({command for hint in hints.ALL for command in hint.commands})
# How the commands begin that a sentence may advise.
ADVICE = re.compile(
    r"\b(?:make [a-z]|pip3? |apt(?:-get)? install|sysctl |mount |docker |sudo |cmake -|export [A-Z]"
    r"|tombolo (?:doctor|run|env|build|demo|bench|conformance|scc)\b)"
)
REST = re.compile(
    r"mount -t tmpfs tmpfs /dev/shm|mount -o remount,size=\d+G /dev/shm"
    r"|docker run --(?:shm-size=\d+g|cap-add=SYS_PTRACE)|sysctl kernel\.yama\.ptrace_scope=0"
    r"|sysctl vm\.(?:max_map_count=1048576|overcommit_memory=0)"
)


def requirements(pattern: str) -> set[str]:
    return {
        line.strip()
        for path in (ROOT / "requirements").glob(pattern)
        for line in path.read_text().splitlines()
        if line.strip() and not line.startswith("#")
    }


def make_has(target: str) -> bool:
    """Also checks that there is a rule: make takes a phony name without one for done."""
    if not re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE):
        return False
    asked = ["make", "--dry-run", target]
    return subprocess.run(asked, cwd=ROOT, capture_output=True).returncode == 0


def wheel_offers(variable: str) -> bool:
    """Whether pip's build takes it from the environment, off unless given, and CMake knows it."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]
    taken = build["cmake"]["define"].get(variable) == {"env": variable, "default": "OFF"}
    known = rf"^option\({variable} .* OFF\)$"
    return taken and bool(re.search(known, (ROOT / "cmake" / "install.cmake").read_text(), re.MULTILINE))


def works(command: str) -> bool:
    """Whether the command is of a known form and names existing things."""
    match shlex.split(command):
        case ["make", target]:
            return make_has(target)
        case ["pip", "install", "."]:
            return True
        case ["pip", "install", *needs]:
            return set(needs) <= requirements("*.txt")
        case [setting, "pip", "install", "."]:
            variable, _, value = setting.partition("=")
            return value == "1" and wheel_offers(variable)
        case ["apt-get", "install", *packages]:
            return set(packages) <= requirements("system-*.txt")
        case ["tombolo", *arguments]:
            return CliRunner().invoke(made(), [*arguments, "--help"]).exit_code == 0
    return REST.fullmatch(command) is not None


@pytest.mark.parametrize("command", COMMANDS)
def test_an_advised_command_works(command):
    assert works(command)


@pytest.mark.parametrize(
    "command",
    ["make systems", "pip install mpich==1.0", "apt-get install mpi", "tombolo scc figure",
     "tombolo scc figures --quik", "TOMBOLO_WITH_CSC=1 pip install .", "rm -r /dev/shm"],
)  # fmt: skip
def test_a_wrong_command_is_found(command):
    assert not works(command)


def sentences(path: Path) -> list[str]:
    """The string literals of a module that are no docstrings."""
    tree = ast.parse(path.read_text())
    documents = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and n not in documents]
    return [text.value for text in texts if isinstance(text.value, str)]


def test_no_other_module_advises_a_command():
    modules = [p for p in (ROOT / "cli/tombolo").rglob("*.py") if p.name != "hints.py"]
    found = {(p.name, text) for p in modules for text in sentences(p) if ADVICE.search(text)}
    assert not found


def test_a_hint_names_each_of_its_commands_as_one():
    for hint in hints.ALL:
        rest = str(hint)
        for command in hint.commands:
            assert command in hint
            rest = rest.replace(command, "")
        assert not ADVICE.search(rest), hint
    with_commands = Hint("a {} b", "make c")
    hints.ALL.remove(with_commands)
    assert (with_commands, with_commands.commands) == ("a make c b", ("make c",))


def test_each_mpi_has_a_hint():
    assert set(hints.MPIS) == set(hints.MPIS_OF_PACKAGE) == set(mpis.KEYS)


def test_the_tools_that_doctor_looks_for_come_with_the_packages_of_make_system(monkeypatch):
    packages = {"ninja": "ninja-build"}
    wanted = {packages.get(tool, tool) for tool in doctor.TOOLS}
    assert wanted <= requirements("system-*.txt")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    (row,) = [found for found in doctor.findings() if found.about == "build tools"]
    assert (row.state, row.hint) == ("partly", hints.TOOLS)


def test_the_hint_depends_on_where_the_command_comes_from(monkeypatch, tmp_path):
    monkeypatch.delenv("TOMBOLO_LIB_DIR", raising=False)
    assert (libraries.hint(), libraries.program_hint("tombolo-scc")) == (hints.LIBRARY, hints.EXPERIMENTS)
    monkeypatch.setattr(paths, "checkout", lambda: None)
    assert libraries.hint() == hints.LIBRARY_OF_PACKAGE
    assert libraries.program_hint("tombolo-scc") == hints.EXPERIMENTS_OF_PACKAGE
    monkeypatch.setenv("TOMBOLO_LIB_DIR", str(tmp_path))
    assert libraries.hint() == libraries.program_hint("tombolo-scc") == hints.NAMED_FOLDER
