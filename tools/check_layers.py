#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every #include "..." points down, between the root's folders and within them.

    tools/check_layers.py [ROOT]      prints `file:line: sentence` for each break; exit status 1

layers.txt has a line for each folder of the root, a room, which lists the rooms that its files may
include, and a line for each folder within a room (`host/faults: host/memory`), which lists the folders
of the same room that its files may include. `host/.` stands for the files that lie in host/ itself. Every
folder with product files has a line, and no folder may include itself in a circle, at any depth. No folder
holds more than MOST_FILES files of the product. Modules of Python import each other in no circle either.

Includes are written from the root of the repository, also those of headers that the build makes of the table of
options. Test programs and benchmarks (`*_test.cpp`,
`*_bench.cpp`) and their common parts (`test_*`, folders named `testing`) may include backends too:
an algorithm is tested on every machine, but never written for one. Within their room they and the broken
twins (folders named `broken`) may include all folders.
"""

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import option_table

SOURCES = {".h", ".hpp", ".c", ".cc", ".cpp", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
FOR_TESTS = {"backends", "host"}
MOST_FILES = 30  # of the product in one folder
# Folders of Python modules, as the interpreter finds them.
PYTHON_PATHS = ("cli", "tools")


def read_layers(text: str) -> dict[str, set[str]]:
    """Folder -> the folders that it may include, itself among them."""
    layers = {}
    for line in text.splitlines():
        line = line.split("#", 1)[0].strip()
        if line:
            folder, _, below = line.partition(":")
            layers[folder.strip()] = {folder.strip(), *below.split()}
    return layers


def rooms_of(layers: Mapping[str, set[str]]) -> dict[str, dict[str, set[str]]]:
    """Room -> the lines of its folders."""
    rooms: dict[str, dict[str, set[str]]] = {}
    for folder, below in layers.items():
        if "/" in folder:
            rooms.setdefault(folder.split("/", 1)[0], {})[folder] = below
    return rooms


def folder_of(path: Path) -> str:
    """The folder of a file, as layers.txt names it."""
    return str(path.parent) if len(path.parts) > 2 else f"{path.parts[0]}/."


def cycles(graph: Mapping[str, set[str]]) -> list[str]:
    """Nodes that, step by step, lead to themselves: then the graph is no list of layers."""
    found = []
    for start in graph:
        reached, todo = set(), list(graph[start] - {start})
        while todo:
            node = todo.pop()
            if node not in reached:
                reached.add(node)
                todo += graph.get(node, set()) - {node}
        if start in reached:
            found.append(start)
    return found


def is_test(path: Path) -> bool:
    if path.stem.startswith("test_") or "testing" in path.parts:
        return True
    return path.stem.endswith(("_test", "_bench", "_check"))


def sees_its_room(path: Path) -> bool:
    """True for files that may include all folders of their room."""
    return is_test(path) or "broken" in path.parts


@cache
def made_headers(root: Path) -> frozenset[str]:
    """Those that the build writes from the table of options: each is seen as lying in the folder of its name."""
    table = root / "base/options.toml"
    return frozenset(option_table.header_names(tomllib.loads(table.read_text())) if table.is_file() else ())


def check_file(path: Path, text: str, layers: Mapping[str, set[str]], root: Path) -> list[str]:
    """The breaks in one file; `path` is relative to the root."""
    room = path.parts[0]
    outside = set(layers[room])
    if is_test(path):
        outside |= FOR_TESTS
    within = rooms_of(layers).get(room)
    folder = folder_of(path)
    problems = []
    for number, line in enumerate(text.splitlines(), 1):
        if not (match := INCLUDE.match(line)):
            continue
        included = Path(match[1])
        target, where = included.parts[0], f"{path}:{number}"
        if not (root / included).is_file() and match[1] not in made_headers(root):
            problems.append(f'{where}: "{included}" is not a file seen from the repository root')
        elif target not in outside:
            problems.append(f'{where}: {room} may not include {target} ("{included}")')
        elif target != room or within is None or folder not in within or sees_its_room(path):
            continue
        elif folder_of(included) not in within[folder]:
            problems.append(f'{where}: {folder} may not include {folder_of(included)} ("{included}")')
    return problems


def check_rooms(root: Path, layers: Mapping[str, set[str]]) -> list[str]:
    """Lines that are missing, name no folder, or form a circle."""
    problems = []
    rooms = rooms_of(layers)
    for room, folders in rooms.items():
        problems += [f"layers.txt: {folder} may include itself in a circle" for folder in cycles(folders)]
        for folder, below in folders.items():
            problems += [
                f"layers.txt: {folder} lists {other}, which has no line in {room}"
                for other in sorted(below - folders.keys())
            ]
    for room in (folder for folder in layers if "/" not in folder):
        product = [path.relative_to(root) for path in sources(root / room)]
        holding = Counter(folder_of(path) for path in product if not sees_its_room(path))
        problems += [
            f"{folder}: {count} files of the product; {MOST_FILES} at most: divide it"
            for folder, count in holding.items()
            if count > MOST_FILES
        ]
        if len(holding) > 1:
            problems += [
                f"layers.txt: {folder} has no line, and holds product files"
                for folder in sorted(holding.keys() - rooms.get(room, {}).keys())
            ]
    return problems


def sources(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.suffix in SOURCES and path.is_file():
            yield path


def modules(root: Path) -> dict[str, Path]:
    """Name as it is imported -> file."""
    found = {}
    for start in PYTHON_PATHS:
        for path in sorted((root / start).rglob("*.py")):
            relative = path.relative_to(root / start).with_suffix("")
            name = ".".join(relative.parts).removesuffix(".__init__")
            if "tests" not in relative.parts:
                found[name] = path
    return found


def imports(text: str, known: Mapping[str, Path]) -> set[str]:
    """The known modules that a module imports, also those within its functions."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            parts = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= parts & known.keys()
            if not parts <= known.keys():
                found.add(node.module)
    return found & known.keys()


def check_modules(root: Path) -> list[str]:
    known = modules(root)
    graph = {name: imports(path.read_text(), known) for name, path in known.items()}
    return [f"{known[name].relative_to(root)}: imports itself in a circle" for name in cycles(graph)]


def check(root: Path) -> list[str]:
    layers = read_layers((root / "layers.txt").read_text())
    outer = {folder: below for folder, below in layers.items() if "/" not in folder}
    problems = [f"layers.txt: {folder} may include itself in a circle" for folder in cycles(outer)]
    problems += check_rooms(root, layers)
    for room in outer:
        for path in sources(root / room):
            relative = path.relative_to(root)
            problems += check_file(relative, path.read_text(), layers, root)
    return problems + check_modules(root)


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    problems = check(root)
    print("\n".join(problems) or "layers: every include points down, and no module imports itself")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
