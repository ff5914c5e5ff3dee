# SPDX-License-Identifier: Apache-2.0
"""The library's output with TOMBOLO_STATS=1: one line for each process, on stderr.

    tombolo: stats rank=0 machine=stale windows_served=2 windows_forwarded=1 reason=two hosts
"""

import re
from typing import NamedTuple

PREFIX = "tombolo: stats"
NO_REASON = ("", "none", "-")


class Stats(NamedTuple):
    """Counts of a process, or of all processes of a job."""

    served: int = 0  # windows
    forwarded: int = 0  # windows that went to the host MPI
    reasons: tuple[str, ...] = ()  # why, each once


def parse(stderr: str) -> list[Stats]:
    """The counts of each process that has a line in the output of a job."""
    found = []
    for told in re.findall(rf"{PREFIX}\b(.*)", stderr):
        before, _, rest = told.partition("reason=")
        fields = dict(re.findall(r"(\w+)=(\S+)", before))
        reason = rest.strip()
        found.append(
            Stats(
                int(fields.get("windows_served", 0)),
                int(fields.get("windows_forwarded", 0)),
                () if reason in NO_REASON else (reason,),
            )
        )
    return found


def total(stderr: str) -> Stats:
    """The sum over the processes."""
    each = parse(stderr)
    reasons = dict.fromkeys(reason for one in each for reason in one.reasons)
    served, forwarded = sum(one.served for one in each), sum(one.forwarded for one in each)
    return Stats(served, forwarded, tuple(reasons))
