# SPDX-License-Identifier: Apache-2.0
from tombolo import stats
from tombolo.stats import Stats


def test_each_process_of_a_job_is_read_and_all_are_summed():
    stderr = (
        "tombolo: stats rank=0 machine=stale windows_served=2 windows_forwarded=1 reason=two hosts\n"
        "noise windows_served=7\n"
        "tombolo: stats rank=1 windows_served=3 windows_forwarded=0 reason=none\n"
        "[1] tombolo: stats rank=2 windows_served=0 windows_forwarded=2 reason=two hosts \n"
        "tombolo: stats rank=3 windows_forwarded=1 reason=no memory, x=1\n"
    )
    assert stats.parse(stderr) == [
        Stats(2, 1, ("two hosts",)),
        Stats(3, 0),
        Stats(0, 2, ("two hosts",)),
        Stats(0, 1, ("no memory, x=1",)),
    ]
    assert stats.total(stderr) == Stats(5, 4, ("two hosts", "no memory, x=1"))


def test_a_job_that_tells_nothing_has_no_windows():
    assert stats.total("tombolo: something else\n") == Stats(0, 0, ())
    assert stats.parse("tombolo: stats\ntombolo: stats reason=-\n") == [Stats(), Stats()]
