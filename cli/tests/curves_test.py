# SPDX-License-Identifier: Apache-2.0
import json
from pathlib import Path

import pytest
from tombolo import curves, host, libraries, mpis, paths
from tombolo.app import made
from tombolo.commands import bench_curves
from tombolo.errors import UserError
from tombolo.measure import Campaign, Contestant, Sample
from tombolo.mpis import Mpi
from typer.testing import CliRunner

MPICH = Mpi("mpich", Path("/m/mpiexec"), Path("/m/mpicc"), Path("/m"))
OPENMPI = Mpi("openmpi", Path("/o/mpirun"), Path("/o/mpicc"), Path("/o"))
FIRST, SECOND = Contestant(MPICH, yields=False), Contestant(OPENMPI, yields=False)
OURS = Contestant(MPICH, "coherent")
ENTRIES = [FIRST, OURS, SECOND]


def campaigns_of(times: dict[Contestant, dict[int, list[float]]]) -> dict[int, Campaign]:
    """By number of ranks. Only the means count."""
    campaigns = {n: Campaign(n, [], lambda record: None, lambda text: None) for n in (2, 8)}
    for entry, by_ranks in times.items():
        for ranks, means in by_ranks.items():
            cell = campaigns[ranks].cells[entry, ("fence", curves.FLAVOR)]
            cell.rounds += [Sample(0.001, 0.001, 0.001, 9, mean) for mean in means]
    return campaigns


def test_the_rows_are_rows_of_the_program():
    text = (Path(__file__).parents[2] / "bench/one_sided.c").read_text()
    assert all(f'{{"{name}"' in text for name in curves.ROWS)


def test_a_curve_is_of_the_median_of_the_means_and_grows_from_the_fewest_ranks_to_the_most():
    campaigns = campaigns_of({OURS: {2: [1, 2, 9], 8: [8, 5, 6]}})
    curve = curves.curve(campaigns, OURS, "fence")
    assert curve.times == {2: 2, 8: 6}
    assert curve.growth == 3
    assert curves.spread(campaigns[8], OURS, "fence") == (5, 8)
    assert curves.curve(campaigns_of({OURS: {2: [1]}}), OURS, "fence").growth is None


@pytest.mark.parametrize(
    "ours, says",
    [
        ({2: [1], 8: [6]}, None),
        ({2: [1], 8: [6.1]}, "grows 6.1 times, a stock MPI 6 times"),
        ({2: [3], 8: [6]}, "2 ranks: 3 us, the best stock MPI 2 us"),
        ({2: [2], 8: [13]}, "8 ranks: 13 us, the best stock MPI 12 us"),
    ],
)
def test_a_row_that_grows_faster_or_is_behind_is_told(ours, says):
    campaigns = campaigns_of({FIRST: {2: [2], 8: [12]}, SECOND: {2: [2.5], 8: [30]}, OURS: ours})
    sentence = curves.faster_growing(campaigns, OURS, ENTRIES, "fence")
    assert sentence is None if says is None else says in sentence


def test_ranks_with_a_processor_each_are_bound():
    assert "--pin" in bench_curves.arguments(host.cores(), 1)
    assert "--pin" not in bench_curves.arguments(host.cores() + 1, 1)


def table_of(output: str) -> str:
    return output[output.index("microseconds, mean") : output.index("└")]


def test_a_row_that_broke_stays_broken_in_kept_records(tmp_path):
    path = tmp_path / "kept.jsonl"
    sample = {"flavor": "allocate", "median": 1, "q1": 1, "q3": 1, "samples": 9, "mean": 2}
    lines = [
        {"kind": "context", "ranks": [8, 2], "cores": 8},
        {"kind": "sample", "contestant": "MPICH 5", "round": 1, "row": "fence", "ranks": 2, **sample},
        {"kind": "broken", "contestant": "Tombolo coherent (mpich)", "row": "put_8_flush"},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    campaigns, names, entries, context = curves.kept(path)
    assert list(campaigns) == [2, 8] and context["cores"] == 8
    assert [(entry.label, entry.stock) for entry in entries] == [
        ("MPICH 5", True),
        ("Tombolo coherent (mpich)", False),
    ]
    assert names == ["fence", "put_8_flush"]
    assert curves.curve(campaigns, entries[0], "fence").times == {2: 2}
    assert bench_curves.cell(campaigns[8], entries[1], "put_8_flush", None) == "breaks"


@pytest.mark.parametrize("text", ["", "{}\n", '{"ranks": [2], "cores": 2}\n{"kind": "sample"}\n'])
def test_a_file_of_something_else_is_refused_by_name(tmp_path, text):
    path = tmp_path / "other.jsonl"
    path.write_text(text)
    told = CliRunner().invoke(made(), ["bench", "curves", "--records", str(path)])
    assert told.exit_code != 0
    assert isinstance(told.exception, UserError) and "other.jsonl" in str(told.exception)


def test_curves_are_measured_told_and_drawn(monkeypatch, tmp_path):
    if mpis.find("mpich") is None or libraries.find("mpich") is None:
        pytest.skip("needs MPICH and the libraries: make env native")
    monkeypatch.setattr(paths, "results", lambda: tmp_path)
    command = ["bench", "curves", "--mpi", "mpich", "--rounds", "1", "--budget", "0.02"]
    told = CliRunner().invoke(made(), [*command, "-n", "3", "-n", "2", "--rows", "put_8_flush"])
    assert told.exit_code == 0, told.output
    (path,) = tmp_path.glob("curves-*.jsonl")
    context, *samples = map(json.loads, path.read_text().splitlines())
    assert context["ranks"] == [2, 3]
    assert {(s["row"], s["ranks"]) for s in samples} == {("put_8_flush", 2), ("put_8_flush", 3)}
    assert path.with_suffix(".png").stat().st_size > 5000
    again = CliRunner().invoke(made(), ["bench", "curves", "--records", str(path)])
    assert again.exit_code == 0, again.output
    assert table_of(again.output) == table_of(told.output)
    refused = CliRunner().invoke(made(), [*command, "--rows", "get"])
    assert refused.exit_code != 0
