# SPDX-License-Identifier: Apache-2.0
"""The text of C++ sources, as the tools of broken twins look at it."""

import re


def blank_comments(text):
    """The text with comments and string literals as spaces, of the same length."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def closing(text, opening):
    """The position behind the parenthesis that closes the one at `opening`."""
    depth = 0
    for at in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at + 1
    raise ValueError("unbalanced parentheses")


def line_at(text, position):
    """The line that `position` is in."""
    end = text.find("\n", position)
    return text[text.rfind("\n", 0, position) + 1 : end if end >= 0 else len(text)]
