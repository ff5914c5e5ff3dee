# SPDX-License-Identifier: Apache-2.0
"""Checks the labels of invariants: each is defined once in the repository, and exists where named.

A file head defines a label in its first comment, `Invariants: AB1 text` or, on a later line, `AB2 text`.
Its letters belong to that file alone. Only the contract's rules, R1 to R6, have a single letter.
tools/tidy.py runs it.
"""

import re
from collections.abc import Mapping
from pathlib import Path

HEADS = {".h", ".hpp", ".cpp", ".c"}
REFERRING = HEADS | {".md", ".py", ".inc"}
CONTRACT = Path("machine/contract.h")
ELSEWHERE = r"(?! (?:of|in) \S+\.h\b| (?:to|and) [A-Z]{2}\d| \(see )"  # names a label of a.h
DEFINITION = re.compile(rf"^//(?: +Invariants: +| {{3,}}| *Invariants: +)([A-Z]{{1,3}})(\d){ELSEWHERE} +\S")
REFERENCE = re.compile(r"(?<![\w./-])([A-Z]{2,3})(\d)(?![\w./-]*\w)")


def definitions(text: str) -> list[tuple[int, str, str]]:
    """(line, letters, number) of each label that the first comment defines."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("//"):
            break
        if match := DEFINITION.match(line):
            found.append((number, match[1], match[2]))
    return found


def check(files: Mapping[Path, str]) -> list[str]:
    """Problems of these files."""
    problems = []
    owners: dict[str, Path] = {}
    labels: dict[str, str] = {}
    for path, text in files.items():
        if path.suffix not in HEADS or path == CONTRACT:
            continue
        for line, letters, digit in definitions(text):
            label = letters + digit
            if len(letters) == 1:
                problems.append(f"{path}:{line}: {label}: two letters that no other file has")
            elif owners.setdefault(letters, path) != path:
                problems.append(f"{path}:{line}: {label}: {owners[letters]} has these letters")
            elif label in labels:
                problems.append(f"{path}:{line}: {label} is defined twice")
            labels[label] = str(path)
    for path, text in files.items():
        if path.suffix in REFERRING:
            problems += unknown(path, text, owners, labels)
    return problems


def unknown(path: Path, text: str, owners: Mapping[str, Path], labels: Mapping[str, str]) -> list[str]:
    """Labels with a file's letters that this file does not define."""
    return [
        f"{path}:{number}: {match[0]}: {owners[match[1]]} has no such label"
        for number, line in enumerate(text.splitlines(), 1)
        for match in REFERENCE.finditer(line)
        if match[1] in owners and match[0] not in labels
    ]
