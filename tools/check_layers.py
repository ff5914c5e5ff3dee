#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every #include "..." points down: layers.txt lists the folders that each may include.

    tools/check_layers.py [ROOT]      prints `file:line: sentence` for each break; exit status 1

Includes are written from the root of the repository. Test programs and benchmarks (`*_test.cpp`,
`*_bench.cpp`) and their common parts (`test_*`, folders named `testing`) may include backends too:
an algorithm is tested on every machine, but never written for one.
"""

import re
import sys
from pathlib import Path

SOURCES = {".h", ".hpp", ".c", ".cc", ".cpp", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
FOR_TESTS = {"backends", "host"}


def read_layers(text: str) -> dict[str, set[str]]:
    """Folder -> the folders that it may include, itself among them."""
    layers = {}
    for line in text.splitlines():
        line = line.split("#", 1)[0].strip()
        if line:
            folder, _, below = line.partition(":")
            layers[folder.strip()] = {folder.strip(), *below.split()}
    return layers


def cycles(layers: dict[str, set[str]]) -> list[str]:
    """Folders that, step by step, may include themselves: then the file is not a list of layers."""
    found = []
    for start in layers:
        reached, todo = set(), list(layers[start] - {start})
        while todo:
            folder = todo.pop()
            if folder not in reached:
                reached.add(folder)
                todo += layers.get(folder, set()) - {folder}
        if start in reached:
            found.append(start)
    return found


def is_test(path: Path) -> bool:
    if path.stem.startswith("test_") or "testing" in path.parts:
        return True
    return path.stem.endswith(("_test", "_bench"))


def check_file(path: Path, text: str, layers: dict[str, set[str]], root: Path) -> list[str]:
    """The breaks in one file; `path` is relative to the root."""
    allowed = set(layers[path.parts[0]])
    if is_test(path):
        allowed |= FOR_TESTS
    problems = []
    for number, line in enumerate(text.splitlines(), 1):
        if not (match := INCLUDE.match(line)):
            continue
        included = match[1]
        folder = included.split("/", 1)[0]
        where = f"{path}:{number}"
        if not (root / included).is_file():
            problems.append(f'{where}: "{included}" is not a file seen from the repository root')
        elif folder not in allowed:
            problems.append(f'{where}: {path.parts[0]} may not include {folder} ("{included}")')
    return problems


def check(root: Path) -> list[str]:
    layers = read_layers((root / "layers.txt").read_text())
    problems = [f"layers.txt: {folder} may include itself in a circle" for folder in cycles(layers)]
    for folder in layers:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SOURCES and path.is_file():
                relative = path.relative_to(root)
                problems += check_file(relative, path.read_text(), layers, root)
    return problems


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    problems = check(root)
    print("\n".join(problems) or "layers: every include points down")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
