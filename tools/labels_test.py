# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import labels
import pytest

HEAD = "// SPDX\n// Purpose: a file.\n"
AB = HEAD + "// Invariants: AB1 it holds.\n//             AB2 so does this.\n#pragma once\n"


def problems(**files: str) -> list[str]:
    return labels.check({Path(name.replace("__", "/") + ".h"): text for name, text in files.items()})


def test_letters_of_their_own_pass():
    other = HEAD + "// Invariants:\n//   CD1 in a child AB1 and AB2 are void.\n"
    assert problems(a=AB, b=AB.replace("AB", "CD"), c=other.replace("CD1", "EF1")) == []


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (AB, "b.h:3: AB1: a.h has these letters"),
        (HEAD + "// Invariants: A1 short.\n", "b.h:3: A1: two letters"),
        (HEAD + "// see AB3\n", "b.h:3: AB3: a.h has no such label"),
        ("int a;  // AB0: none\n", "b.h:1: AB0: a.h has no such label"),
        (HEAD + "// Invariants: CD1 one.\n//             CD1 two.\n", "b.h:4: CD1 is defined twice"),
    ],
)
def test_each_break_is_found(other, says):
    assert says in problems(a=AB, b=other)[0]


def test_a_reference_defines_nothing():
    text = HEAD + "// Invariants: AB1 to AB2 of a.h, and\n//             AB1 of base/a.h, AB2 (see there).\n"
    assert problems(a=AB, b=text) == []


def test_only_the_first_comment_defines():
    assert labels.definitions("#pragma once\n// Invariants: AB1 late.\n") == []


def test_the_contract_has_one_letter():
    assert problems(machine__contract=HEAD + "//   R1  a rule\n") == []
