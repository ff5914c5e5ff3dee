# SPDX-License-Identifier: Apache-2.0
"""A part of a long check, so that CI makes another part of it each day."""

import datetime
import re

HELP = "the K-th of N slices; day/N: that of the day of the year"
EXPECTED = "expected K/N with 1 <= K <= N, or day/N"


def today() -> int:
    return datetime.datetime.now(datetime.UTC).timetuple().tm_yday


def slice_of(text: str, day_of_year: int) -> tuple[int, int] | None:
    """(the first item, one in so many), of K/N or day/N; None of anything else."""
    match = re.fullmatch(r"(\d+|day)/([1-9]\d*)", text)
    if not match:
        return None
    of = int(match[2])
    first = day_of_year % of if match[1] == "day" else int(match[1]) - 1
    return (first, of) if 0 <= first < of else None
