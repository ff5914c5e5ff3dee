# SPDX-License-Identifier: Apache-2.0
"""An experiment on the simulated chip is one folder: a copy of the tree gets one more, and nothing else,
and both `tombolo-scc` and the command know it.

Only the new folder and the list are compiled; the rest of the program comes from the release build.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
PROGRAM = "experiments/tombolo-scc"
FOLDERS = "base;machine;host;simulator;backends;sync;windows;baselines;experiments"
MODEL, NAME = "dht", "added-example"  # the smallest experiment that needs no other, and its copy
ORDER = {"60": "65"}  # behind its model
OBJECTS = [f"experiments/CMakeFiles/tombolo_experiments.dir/{source}.cpp.o"
           for source in ("added_example/added_example", "list")]  # fmt: skip


def copy_tree(to: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)


def add_experiment(tree: Path) -> None:
    """The model's folder again, but for its tests, under another name and with another order."""
    word = NAME.replace("-", "_")
    new = tree / "experiments" / word
    new.mkdir()
    for path in (tree / "experiments" / MODEL).iterdir():
        if path.stem.endswith("_test"):
            continue
        text = re.sub(rf"\b{MODEL}(?=\b|_)", word, path.read_text()).replace(f'"{word}"', f'"{NAME}"')
        text = re.sub(r"^order = (\d+)", lambda m: f"order = {ORDER[m[1]]}", text, flags=re.MULTILINE)
        stem = NAME if path.suffix == ".toml" else word
        (new / (stem + path.suffix)).write_text(text)


def link(objects: list[Path], program: Path) -> None:
    """The release build's program, with these objects before those of its libraries."""
    told = subprocess.run(
        ["ninja", "-C", str(BUILD), "-t", "commands", "-s", PROGRAM], check=True, capture_output=True, text=True
    )
    command = [line for line in told.stdout.splitlines() if f"-o {PROGRAM} " in line][-1]
    names = " ".join(map(str, objects))
    program.parent.mkdir()
    command = command.replace(f"-o {PROGRAM} ", f"{names} -o {program} ")
    subprocess.run(command, cwd=BUILD, shell=True, check=True)


def lines(program: Path, *arguments: str) -> list[dict]:
    told = subprocess.run([program, *arguments], check=True, capture_output=True, text=True)
    return [json.loads(line) for line in told.stdout.splitlines()]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The copy, with its own tombolo-scc in lib/."""
    if not (BUILD / PROGRAM).exists():
        pytest.skip("not built: make build")
    tree = tmp_path_factory.mktemp("tree")
    copy_tree(tree)
    add_experiment(tree)
    build = tree / "build" / "added"
    subprocess.run(
        ["cmake", "-G", "Ninja", "-S", tree, "-B", build, "-DCMAKE_BUILD_TYPE=Plain",
         "-DTOMBOLO_TESTS=OFF", f"-DTOMBOLO_ONLY={FOLDERS}"],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    subprocess.run(["ninja", "-C", build, *OBJECTS], check=True, stdout=subprocess.DEVNULL)
    link([build / each for each in OBJECTS], tree / "lib" / "tombolo-scc")
    return tree


def test_the_program_lists_and_runs_it(tree: Path) -> None:
    before = [line["experiment"] for line in lines(BUILD / PROGRAM, "list")]
    after = [line["experiment"] for line in lines(tree / "lib/tombolo-scc", "list")]
    expected = before.copy()
    expected.insert(before.index(MODEL) + 1, NAME)
    assert after == expected

    def rows(program: Path, experiment: str) -> list[tuple]:
        told = lines(program, "run", experiment, "--quick", "--point", "mcs-wp-0-32")
        return [(line["series"], line["x"], line["value"]) for line in told if "series" in line]

    added = rows(tree / "lib/tombolo-scc", NAME)
    assert added and added == rows(BUILD / PROGRAM, MODEL)


def test_the_command_lists_it(tree: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(tree / "cli"), "TOMBOLO_LIB_DIR": str(tree / "lib"), "COLUMNS": "200"}
    told = subprocess.run(
        [sys.executable, "-m", "tombolo", "scc", "list"], cwd=tree, env=env, check=True, capture_output=True, text=True
    )
    names = re.findall(r"^│ ([a-z-]+) +│", told.stdout, re.MULTILINE)
    assert names[names.index(MODEL) + 1] == NAME
    # Its papers, from its file, and its points, from the program.
    assert re.search(rf"│ {NAME} .*Table 3 +│ +\d+ │ +\d+ │", told.stdout), told.stdout
