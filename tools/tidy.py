#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that a formatter does not make: each rule is one function below, with a test of its own.

    tools/tidy.py [ROOT]      prints `file:line: sentence` for each break; exit status 1

Looks at the files that git tracks or would track.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import labels

CODE = {".h", ".hpp", ".c", ".cpp", ".inc", ".py", ".sh", ".f90", ".toml"}
TEXT = CODE | {".md", ".txt", ".json", ".cmake", ".yml", ".yaml"}
NAMED = {"Makefile", "CMakeLists.txt", "tombolo", "run", ".clang-tidy"}
MOST_LINES = 800
LICENSE = "SPDX-License-Identifier: Apache-2.0"
LICENSE_WITHIN = 3  # a script's first line names its interpreter
BANNED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b")
ONE_PERSONS = re.compile(r"(?<![\w./-])/(?:work|home|root|Users)/\w")
DOWNLOAD = re.compile(r"\b(?:curl|wget)\b.*https?://|index" + "-url")
COLUMNS = 100
ORPHAN_WORDS = 2
COMMENT = re.compile(r"^(\s*(?://|#))( +)(\S.*)$")
AFTER_SLASHES = re.compile(r"(?<!:)//+ (.*)$")
AFTER_HASH = re.compile(r"(?:^|\s)# (.*)$")
HASHES = {".py", ".sh", ".toml"}
PERSONS = r"nobody|somebody|whoever|anybody"
AFTER_THESE = r"^|[.:;(]\s|\b(?:and|as|but|by|if|of|or|since|so|than|that|to|when|where|while)\s"
RIDDLE = re.compile(rf"\b(?:{PERSONS}|what)\b|(?:{AFTER_THESE})who\b", re.IGNORECASE)
IDIOM = re.compile(
    r"\b(?:asks?|knows?|matter|says?|tells?)\s+(?:\w+\s+)?(?:what|who)\b"
    r"|\bwhat (?:if|to)\b"
    r"|\b(?:what|who)\b[^.;:]*\?",
    re.IGNORECASE,
)


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


def whole_comments(path: Path, text: str) -> Iterator[str]:
    """Finds comments that a formatter has broken: a word or two, then a line that lies deeper."""
    if path.suffix not in CODE:
        return
    lines = text.splitlines()
    comments = [COMMENT.match(line) for line in lines]
    for number, (line, comment) in enumerate(zip(lines, comments, strict=True), 1):
        if not comment:
            continue
        if len(line) > COLUMNS:
            yield f"{path}:{number}: a comment of {len(line)} columns; {COLUMNS} at most"
        before = comments[number - 2] if number > 1 else None
        after = comments[number] if number < len(lines) else None
        words = comment[3].split()
        if not before or not after or len(words) > ORPHAN_WORDS or len(after[2]) <= len(comment[2]):
            continue
        if len(before[0]) + 1 + len(words[0]) > COLUMNS:
            yield f"{path}:{number}: `{comment[3]}` has lost the line it belongs to"


def prose(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """(line, words) of Markdown outside code, and of comments and docstrings."""
    within = docstring_lines(text) if path.suffix == ".py" else set()
    block_of_code = False
    for number, line in enumerate(text.splitlines(), 1):
        words = ""
        if path.suffix == ".md":
            block_of_code ^= line.lstrip().startswith("```")
            words = "" if block_of_code else line
        elif number in within:
            words = line
        elif path.suffix in CODE:
            comment = (AFTER_HASH if path.suffix in HASHES else AFTER_SLASHES).search(line)
            words = comment[1] if comment else ""
        if words:
            yield number, re.sub(r"`[^`]*`", "`", words)


def docstring_lines(text: str) -> set[int]:
    try:
        tree = ast.parse(text)
    except SyntaxError:  # another tool's business
        return set()
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, holders) and ast.get_docstring(node) is not None:
            lines.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return lines


def no_riddles(path: Path, text: str) -> Iterator[str]:
    before, last = "", 0
    for number, line in prose(path, text):
        before = before if number == last + 1 else ""
        both = f"{before} {line.strip()}".lstrip()
        start = len(both) - len(line.strip())
        idioms = [range(*idiom.span()) for idiom in IDIOM.finditer(both)]
        for riddle in RIDDLE.finditer(both):
            word = riddle.end() - 1
            if word >= start and not any(word in idiom for idiom in idioms):
                name = riddle[0].split()[-1].strip("(.:;").lower()
                yield f"{path}:{number}: `{name}`: name the noun"
        before, last = line.strip(), number


RULES = (
    lines_at_most,
    license_line,
    no_banned_words,
    no_tabs,
    no_trailing_blanks,
    one_newline_at_the_end,
    no_place_of_one_person,
    whole_comments,
    no_riddles,
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
    texts = {path: (root / path).read_text() for path in files(root)}
    problems = [p for path, text in texts.items() for p in check_file(path, text)]
    return problems + labels.check(texts)


def main() -> int:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    problems = check(root)
    print("\n".join(problems) or f"tidy: {len(files(root))} files, nothing to say")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
