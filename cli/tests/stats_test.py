# SPDX-License-Identifier: Apache-2.0
import json

from tombolo import stats
from tombolo.stats import Stats


def line(rank, served, forwarded, **reasons):
    counters = {"rank": str(rank), "windows_served": served, "windows_forwarded": forwarded}
    told = {"windows_forwarded": reasons} if reasons else {}
    return f"tombolo: stats {json.dumps(counters | {'reasons': told})}\n"


def test_each_process_of_a_job_is_read_and_all_are_summed():
    stderr = (
        line(0, 2, 1, two_hosts=1)
        + "noise windows_served=7\n"
        + line(1, 3, 0)
        + "[1] "
        + line(2, 0, 2, two_hosts=1, threads=1)
    )
    assert stats.parse(stderr) == [
        Stats(2, 1, ("two_hosts",)),
        Stats(3, 0),
        Stats(0, 2, ("two_hosts", "threads")),
    ]
    assert stats.total(stderr) == Stats(5, 3, ("two_hosts", "threads"))


def test_a_job_that_tells_nothing_has_no_windows():
    assert stats.total("tombolo: something else\n") == Stats(0, 0, ())
    assert stats.total("tombolo: stats rank=0 windows_served=1\n") == Stats(0, 0, ())


def test_a_line_that_was_cut_off_is_left_out():
    whole = line(0, 2, 0)
    assert stats.parse(whole[: len(whole) // 2] + "}\n" + whole) == [Stats(2, 0)]
