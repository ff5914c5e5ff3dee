# SPDX-License-Identifier: Apache-2.0
"""`tombolo bench svp`: its rows, and how it judges."""

import json

import pytest
from tombolo import paths, svp_bench
from tombolo.app import app
from tombolo.svp_bench import Row
from typer.testing import CliRunner

BENCHMARKS = {"fib", "skynet", "tree T1", "tree T3", "queens", "matrices", "loop", "chain", "counter"}


def row(benchmark: str, workers: int = 1, **times: list[float]) -> Row:
    return Row(benchmark, workers, times, {name: 10 for name in times})


def test_a_quick_run_measures_all_and_writes_lines(monkeypatch, tmp_path):
    monkeypatch.setenv("TOMBOLO_RESULTS", str(tmp_path / "results"))
    out = tmp_path / "lines.json"
    done = CliRunner().invoke(app, ["bench", "svp", "--quick", "--workers", "2", "--json", str(out)])
    assert done.exit_code == 0, done.output
    told = [json.loads(line) for line in out.read_text().splitlines()]
    ours = {line["benchmark"] for line in told if line["runtime"] == "families"}
    assert ours == BENCHMARKS
    for line in told:
        assert line["workers"] == 2
        assert 0 < line["ns_per_task_low"] <= line["ns_per_task"] <= line["ns_per_task_high"]
        assert line["seconds"] > 0
    assert {path.suffix for path in (tmp_path / "results").iterdir()} == {".jsonl", ".png", ".svg"}
    for name in svp_bench.NOT_PACKAGED:
        assert f"{name}: not measured" in done.output


def test_ratios_are_of_medians_and_to_the_quickest_variant_of_ours():
    made = row("loop", families=[4.0, 2.0, 3.0], oneTBB=[6.0, 7.0, 5.0])
    made.samples["families, block"] = [2.0]
    assert made.time("families") == (3.0, 2.0, 4.0)
    assert made.ours() == "families, block"
    assert made.ratio("oneTBB") == 3.0


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (row("queens", families=[10.0], oneTBB=[9.0]), ""),
        (row("queens", families=[10.0], oneTBB=[8.0]), "another is 1.25 times as quick; 1.2 at most"),
        (row("loop", families=[10.0], oneTBB=[9.9]), "it is to be the quickest"),
        (row("fib", families=[9.0], oneTBB=[20.0]), "9 ns, above 8"),
        (row("fib", 2, families=[4.0], oneTBB=[20.0]), ""),
        (row("chain", families=[6.0]), ""),
        (row("TCP, 8 bytes", families=[14.0], MPI=[10.0]), ""),
        (row("TCP, 8 bytes", families=[16.0], MPI=[10.0]), "another is 1.60 times as quick; 1.5 at most"),
    ],
)
def test_a_goal_that_is_not_reached_is_told(made, sentence):
    assert (made.verdict() == "") == (sentence == "")
    assert sentence in made.verdict()


def test_a_run_time_that_is_not_here_is_named(monkeypatch):
    monkeypatch.setattr(svp_bench.libraries, "need_program", lambda name: paths.PACKAGE / name)
    monkeypatch.setattr(svp_bench.shutil, "which", lambda name: None)
    found, absent = svp_bench.contestants()
    assert [entry.name for entry in found] == ["families"]
    assert absent == [
        "Go: no go here (Debian: golang-go)",
        "Rayon: no cargo here (Debian: cargo)",
    ]
    told = svp_bench.absent_of([row("fib", families=[1.0])])
    assert "oneTBB: not measured (Debian: libtbb-dev, before the build)" in told
