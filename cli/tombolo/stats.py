# SPDX-License-Identifier: Apache-2.0
"""What the library prints with TOMBOLO_STATS=1: one line for each process, on stderr.

    tombolo: stats rank=0 machine=stale windows_served=2 windows_forwarded=1 reason=two hosts
"""

import re
from typing import NamedTuple

PREFIX = "tombolo: stats"
NO_REASON = ("", "none", "-")


class Stats(NamedTuple):
    """Of all processes of a job."""

    served: int = 0  # windows
    forwarded: int = 0  # windows that went to the host MPI
    reasons: tuple[str, ...] = ()  # why, each once


def parse(stderr: str) -> Stats:
    """The sum of the lines among what a job printed."""
    served = forwarded = 0
    reasons: dict[str, None] = {}
    for told in re.findall(rf"{PREFIX}\b(.*)", stderr):
        before, _, reason = told.partition("reason=")
        fields = dict(re.findall(r"(\w+)=(\S+)", before))
        served += int(fields.get("windows_served", 0))
        forwarded += int(fields.get("windows_forwarded", 0))
        if reason.strip() not in NO_REASON:
            reasons[reason.strip()] = None
    return Stats(served, forwarded, tuple(reasons))
