# SPDX-License-Identifier: Apache-2.0
import json

import pytest
from tombolo import libraries, mpis, paths
from tombolo.app import made
from typer.testing import CliRunner


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Measures one row in a moment under MPICH; returns the samples."""
    if mpis.find("mpich") is None or libraries.find("mpich") is None:
        pytest.skip("needs MPICH and the libraries: make env native")
    monkeypatch.setattr(paths, "results", lambda: tmp_path)

    def measured(row: str, *options: str) -> list[dict]:
        command = ["bench", "one-sided", "--mpi", "mpich", "--rounds", "1", "--budget", "0.05"]
        told = CliRunner().invoke(made(), [*command, "--rows", f"^{row}$", *options])
        assert told.exit_code == 0, told.output
        (path,) = tmp_path.glob("one-sided-2-*.jsonl")
        context, *samples = map(json.loads, path.read_text().splitlines())
        samples = [s for s in samples if s["flavor"] == "allocate"]
        assert [s["row"] for s in samples] == [row, row]  # stock and ours
        return [context, *samples]

    return measured


def test_beside_busy_loops_operations_are_counted_over_the_whole_budget(run):
    context, *samples = run("lock_put_8_unlock", "--loaded", "--samples", "1", "--budget", "0.3")
    assert context["busy_loops"] > 0
    for sample in samples:
        assert sample["samples"] == 1 and sample["operations"] > 1 and sample["per_s"] > 0


def test_a_batch_is_told_and_counted(run):
    _, *samples = run("lock_put_8_unlock", "--batch", "50", "--samples", "1")
    assert [(s["batch"], s["samples"], s["operations"]) for s in samples] == [(50, 1, 50)] * 2


def test_a_large_transfer_has_a_memcpy_beside_it(run):
    _, *samples = run("get_64k_fresh", "--samples", "20")
    for sample in samples:
        assert sample["memcpy"] > 0 and sample["by_memcpy"] > 0
