#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what a formatter does not: each rule is one function below, with a test of its own.

    tools/tidy.py [ROOT]      prints `file:line: sentence` for each break; exit status 1

Looks at the files that git tracks or would track.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

CODE = {".h", ".hpp", ".c", ".cpp", ".inc", ".py", ".sh", ".f90", ".toml"}
TEXT = CODE | {".md", ".txt", ".json", ".cmake", ".yml", ".yaml"}
NAMED = {"Makefile", "CMakeLists.txt", "tombolo", "run", ".clang-tidy"}
MOST_LINES = 800
LICENSE = "SPDX-License-Identifier: Apache-2.0"
LICENSE_WITHIN = 3  # a script's first line names its interpreter
BANNED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b")
ONE_PERSONS = re.compile(r"(?<![\w./-])/(?:work|home|root|Users)/\w")
DOWNLOAD = re.compile(r"\b(?:curl|wget)\b.*https?://|index" + "-url")


def lines_at_most(path: Path, text: str) -> Iterator[str]:
    count = text.count("\n")
    if path.suffix in CODE and count > MOST_LINES:
        yield f"{path}: {count} lines; {MOST_LINES} at most: split it"


def license_line(path: Path, text: str) -> Iterator[str]:
    head = text.splitlines()[:LICENSE_WITHIN]
    if path.suffix in CODE and text.strip() and not any(LICENSE in line for line in head):
        yield f"{path}:1: no line `{LICENSE}`"


def no_banned_words(path: Path, text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        if match := BANNED.search(line):
            yield f"{path}:{number}: {match[1]}: finish it, or write down the gap and its reason"


def no_tabs(path: Path, text: str) -> Iterator[str]:
    if path.name == "Makefile":
        return
    for number, line in enumerate(text.splitlines(), 1):
        if "\t" in line:
            yield f"{path}:{number}: a tab"


def no_trailing_blanks(path: Path, text: str) -> Iterator[str]:
    if path.suffix == ".md":  # two of them are a line break there
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line != line.rstrip():
            yield f"{path}:{number}: blanks at the end of the line"


def one_newline_at_the_end(path: Path, text: str) -> Iterator[str]:
    if text and (not text.endswith("\n") or text.endswith("\n\n")):
        yield f"{path}: ends with one newline, no more, no fewer"


def no_place_of_one_person(path: Path, text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        if ONE_PERSONS.search(line):
            yield f"{path}:{number}: a path of one machine"
        if DOWNLOAD.search(line):
            yield f"{path}:{number}: a download address: use apt or pip as the host has them set up"


RULES = (
    lines_at_most,
    license_line,
    no_banned_words,
    no_tabs,
    no_trailing_blanks,
    one_newline_at_the_end,
    no_place_of_one_person,
)


def check_file(path: Path, text: str) -> list[str]:
    return [problem for rule in RULES for problem in rule(path, text)]


def files(root: Path) -> list[Path]:
    """Relative paths of the text files that git tracks or would track."""
    told = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    )
    names = [Path(name) for name in told.stdout.split("\0") if name]
    return [p for p in names if (p.suffix in TEXT or p.name in NAMED) and (root / p).is_file()]


def check(root: Path) -> list[str]:
    return [p for path in files(root) for p in check_file(path, (root / path).read_text())]


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    problems = check(root)
    print("\n".join(problems) or f"tidy: {len(files(root))} files, nothing to say")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
