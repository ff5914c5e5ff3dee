# SPDX-License-Identifier: Apache-2.0
import json

import pytest
from tombolo import libraries, mpis, paths, starvation
from tombolo.app import made
from tombolo.commands import bench
from typer.testing import CliRunner

WAIT = {"entries_median": 3, "entries_p99": 9, "entries_max": 17408400, "median": 2.5, "max": 1200}
QUARTILES = {"q1": 0.05, "median": 0.1, "q3": 0.2, "iqr_by_median": 1.5}


FAMILIES = [
    starvation.Family("best-effort", "none", reader_bias=True),
    starvation.Family("fifo", "arrival", reader_bias=False),
]


def test_a_scheme_is_chosen_by_the_environment_and_a_stock_mpi_is_left_alone(monkeypatch):
    monkeypatch.setattr(starvation, "families", lambda: FAMILIES)
    mpich = mpis.Mpi("mpich", paths.home(), None, None)
    *ours, stock = starvation.contestants(mpich, [mpich])
    assert [(e.label, e.locks) for e in ours] == [
        ("Tombolo, best effort without back-off", "best-effort"),
        ("Tombolo, best effort", "best-effort"),
        ("Tombolo, best effort with reader bias", "best-effort"),
        ("Tombolo, fifo", "fifo"),
    ]
    assert {e.environment()["TOMBOLO_PASSIVE_SYNC"] for e in ours} == {"best-effort", "fifo"}
    assert ours[0].environment()["TOMBOLO_BACKOFF"] == "off"
    assert [e.environment()["TOMBOLO_READER_BIAS"] for e in ours].count("on") == 1
    assert stock.environment() == {}


def test_cells_show_counts_whole_and_times_short():
    assert bench.joined(WAIT, "entries_median", "entries_max", "max") == "3, 17,408,400, 1,200"
    assert bench.quartiles(QUARTILES) == "0.050, 0.100, 0.200 (1.50)"
    assert bench.quartiles(None) == ""


def test_a_short_run_bounds_the_readers_that_pass_a_preferred_writer(monkeypatch, tmp_path):
    if mpis.find("mpich") is None or libraries.find("mpich") is None:
        pytest.skip("needs MPICH and the libraries: make env native")
    monkeypatch.setattr(paths, "results", lambda: tmp_path)
    command = ["bench", "starvation", "--no-stock", "-n", "4", "--rounds", "20"]
    told = CliRunner().invoke(made(), [*command, "--samples", "50", "--budget", "2"])
    assert told.exit_code == 0, told.output
    (path,) = tmp_path.glob("starvation-4-*.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    listed = starvation.families()
    assert {"best-effort", "writer-preference", "fifo"} <= {family.name for family in listed}
    assert len(rows) == 4 * sum(len(starvation.schemes(family)) for family in listed)
    entries = {r["contestant"]: r["entries_median"] for r in rows if r["row"] == "writer_wait"}
    # Each of the three readers once, and as much again for entries that the time stamps miss.
    for family in listed:
        assert family.order == "none" or entries[f"Tombolo, {family.label}"] <= 6, family
