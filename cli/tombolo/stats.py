# SPDX-License-Identifier: Apache-2.0
"""The counters that the library prints with TOMBOLO_STATS=json: a line for each process, on stderr.

tombolo: stats {"rank": "0", "windows_served": 2, "windows_forwarded": 1, "reasons":
                {"windows_forwarded": {"two hosts": 1}}}
"""

import json
import re
from typing import NamedTuple

PREFIX = "tombolo: stats"
FORWARDED = "windows_forwarded"


class Stats(NamedTuple):
    """Counts of a process, or of all processes of a job."""

    served: int = 0  # windows
    forwarded: int = 0  # windows that went to the host MPI
    reasons: tuple[str, ...] = ()  # why, each once
    processors: int = 0  # that the processes of the job have on this host together


def parse(stderr: str) -> list[Stats]:
    """The counts of each process that has a line in the output of a job."""
    found = []
    for told in re.findall(rf"{PREFIX} (\{{.*\}})", stderr):
        try:
            counters = json.loads(told)
        except ValueError:  # cut off, or mixed with the output of another process
            continue
        reasons = tuple(counters.get("reasons", {}).get(FORWARDED, {}))
        found.append(
            Stats(
                counters.get("windows_served", 0),
                counters.get(FORWARDED, 0),
                reasons,
                int(counters.get("processors", 0)),
            )
        )
    return found


def total(stderr: str) -> Stats:
    """The sum over the processes."""
    each = parse(stderr)
    reasons = dict.fromkeys(reason for one in each for reason in one.reasons)
    served, forwarded = sum(one.served for one in each), sum(one.forwarded for one in each)
    return Stats(served, forwarded, tuple(reasons))
