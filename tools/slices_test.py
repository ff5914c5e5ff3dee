# SPDX-License-Identifier: Apache-2.0
"""Slices of a long check: each item is in one of them, and a year has all."""

import pytest
from slices import slice_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1/4", (0, 4)), ("4/4", (3, 4)), ("day/20", (6, 20)), ("day/1", (0, 1)),
     *((wrong, None) for wrong in ("0/4", "5/4", "1/0", "day", "day/0", "/4", "1/4x"))],
)  # fmt: skip
def test_a_slice_is_a_number_or_that_of_the_day(text, expected):
    assert slice_of(text, 326) == expected


def test_each_item_is_in_the_slice_of_some_day():
    firsts = set()
    for day in range(1, 366):
        match slice_of("day/20", day):
            case first, 20:
                firsts.add(first)
    assert firsts == set(range(20))
