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


LONG = "// " + "word " * 18 + "until\n"  # 98 columns


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (LONG + "// then a\n//    whole number\n", "2: `then a` has lost"),
        ("//   AB1 " + "word " * 17 + "long\n//   as\n//       on\n", "2: `as` has lost"),
        ("// " + "w" * 98 + "\n", "1: a comment of 101 columns"),
        ("int a;  // " + "w" * 95 + "\n", ""),  # the formatter's business
        ("// how:\n// run\n//   --option\n", ""),  # the line before had room for it
        (LONG + "// then a\n// whole number\n", ""),
        (LONG + "// then a line\n//   a list\n", ""),
    ],
)
def test_broken_comments_are_found(text, says):
    found = list(tidy.whole_comments(Path("base/a.h"), text))
    assert len(found) == bool(says)
    assert says in "".join(found)


@pytest.mark.parametrize(
    "line",
    [
        "// Nobody waits.",
        "// the lock of somebody",
        "int a;  // who waits holds nothing",
        "// it holds, but who waits has none",
        "// What a loop uses again.",
        "// removed: what is old",
        "# cut down to what is there",
        '"""What is wrong."""',
    ],
)
def test_riddles_are_found(line):
    name = "base/a.py" if line.startswith(("#", '"')) else "base/a.h"
    assert len(list(tidy.no_riddles(Path(name), line + "\n"))) == 1


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("// Nobody waits.\n// The next line.\n", ["1"]),
        ("// it says\n// what happens\n", []),  # one sentence
        ("// it says\nint a;\n// what happens\n", ["3"]),
    ],
)
def test_a_sentence_may_go_on_in_the_next_line(text, lines):
    found = tidy.no_riddles(Path("base/a.h"), text)
    assert [line.split(":")[1] for line in found] == lines


def test_riddles_are_found_in_markdown_but_not_in_its_code():
    text = "Whoever waits.\n\n```\nwhat\n```\n`what` and\nby who\n"
    found = list(tidy.no_riddles(Path("docs/a.md"), text))
    assert [line.split(":")[1] for line in found] == ["1", "7"]


@pytest.mark.parametrize(
    "text",
    [
        "// A core who waits, whose line, whatever happens.\n",
        "// The caller knows what it wants; the message explains\n// what to do.\n",
        "// What can happen?\n",
        'say("what is this");\n',
        "auto what = nobody();\n",
    ],
)
def test_plain_sentences_pass(text):
    assert list(tidy.no_riddles(Path("base/a.h"), text)) == []


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
