# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest
from tombolo import compile, measure, processes
from tombolo.commands import bench
from tombolo.measure import Campaign, Cell, Contestant, Sample, Target
from tombolo.mpis import Mpi
from tombolo.processes import Outcome

MPICH = Mpi("mpich", Path("/m/mpiexec"), Path("/m/mpicc"), Path("/m"))
OPENMPI = Mpi("openmpi", Path("/o/mpirun"), Path("/o/mpicc"), Path("/o"))
STOCK, OURS = Contestant(MPICH, yields=False), Contestant(MPICH, "coherent")
ROW = Target("fence", 2, "fence", target=0.2)


def line(row: str, median: float) -> str:
    return (
        f'{{"row":"{row}","unit":"us","median":{median},"q1":{median},"q3":{median},'
        f'"samples":9,"mean":{median}}}\n'
    )


def campaign_with(stock: float, ours: float) -> Campaign:
    return campaign_of({STOCK: [stock], OURS: [ours]})


def campaign_of(medians: dict[Contestant, list[float]]) -> Campaign:
    campaign = Campaign(2, [], lambda record: None, lambda text: None)
    for entry, rounds in medians.items():
        for value in rounds:
            campaign.cells[entry, ROW.id].rounds.append(Sample(value, value, value, 9, value))
    return campaign


def test_the_targets_are_well_formed_and_named_once():
    rows = measure.targets()
    assert len({(row.id, row.ranks, row.machine) for row in rows}) == len(rows)
    assert {row.ranks for row in rows} == {2, 8}


def test_the_rows_of_the_targets_are_rows_of_the_program():
    text = (Path(__file__).parents[2] / "bench" / "one_sided.c").read_text()
    for row in measure.targets():
        assert f'"{row.name}"' in text


def test_rows_are_picked_by_ranks_machine_and_pattern():
    rows = measure.targets()
    picked = measure.pick(rows, 8, ["coherent"], "fence")
    assert [row.title for row in picked] == ["8 ranks: fence"]


def test_the_median_is_over_rounds_and_the_spread_over_all():
    cell = Cell([Sample(1, 0.5, 1.5, 9, 1), Sample(3, 2, 4, 9, 3), Sample(2, 1, 9, 9, 5)])
    assert (cell.median, cell.low, cell.high, cell.mean) == (2, 0.5, 9, 3)


def test_values_of_the_same_round_are_compared():
    # The host becomes slow between two turns of the third round: the medians come from both paces.
    other = Contestant(OPENMPI, yields=False)
    campaign = campaign_of(
        {
            STOCK: [0.26, 0.26, 0.25, 0.82, 0.88],
            OURS: [0.09, 0.09, 0.27, 0.30, 0.29],
            other: [0.13, 0.13, 0.14, 0.40],  # broke in the last round
        }
    )
    entries = [STOCK, OURS, other]
    assert bench.best(campaign, ROW, entries) == (0.135, 0.27)
    assert bench.ratio(campaign, ROW, entries) == pytest.approx(0.13 / 0.09)
    assert bench.shortfall(campaign, ROW, entries) is None
    assert bench.ratio(campaign, ROW, [OURS]) is None


def test_ours_takes_its_turn_right_after_its_host(monkeypatch):
    monkeypatch.setattr(measure.host, "cores", lambda: 2)
    entries = measure.contestants([MPICH, OPENMPI], [MPICH], ["coherent"], 2)
    assert [e.stock for e in entries] == [True, False, True]
    assert len(measure.contestants([MPICH], [MPICH], ["coherent"], 8)) == 3


def test_a_row_behind_the_stock_mpi_is_said_so():
    assert "behind" in bench.shortfall(campaign_with(0.3, 0.4), ROW, [STOCK, OURS])
    assert bench.shortfall(campaign_with(0.4, 0.3), ROW, [STOCK, OURS]) is None


@pytest.fixture
def runs(monkeypatch):
    """Replaces the runs by prepared outcomes; returns the commands that were run."""
    commands, outcomes = [], []
    monkeypatch.setattr(compile, "benchmark", lambda mpi, name: Path("/b/one_sided"))
    monkeypatch.setattr(measure, "in_order", lambda names: names)

    def run(job, limit, folder=None):
        commands.append(job.argv)
        return outcomes.pop(0)

    monkeypatch.setattr(processes, "run", run)
    return commands, outcomes


def test_a_row_that_crashes_is_left_out_and_the_others_are_measured(runs):
    commands, outcomes = runs
    outcomes += [
        Outcome(139, line("a", 1), "segmentation fault", 1),
        Outcome(0, line("c", 3), "", 1),
        Outcome(0, line("a", 1) + line("c", 3), "", 1),
    ]
    records, said = [], []
    campaign = Campaign(2, [], records.append, said.append)
    rows = [("a", "allocate"), ("b", "allocate"), ("c", "allocate")]
    campaign.round(1, STOCK, rows)
    campaign.round(2, STOCK, rows)
    assert "^(c)$" in commands[1]
    assert "^(a|c)$" in commands[2]
    assert campaign.broken == {(STOCK, ("b", "allocate"))}
    assert len(campaign.cells[STOCK, ("a", "allocate")].rounds) == 2
    assert "in b (allocate): segmentation fault" in said[0]


def test_noise_among_the_output_is_skipped():
    assert [r["row"] for r in measure.parse("hello\n{broken\n" + line("a", 1))] == ["a"]


def test_a_plot_is_drawn_in_both_formats(tmp_path):
    from tombolo import plot

    for suffix in ("png", "svg"):
        path = tmp_path / f"a.{suffix}"
        plot.medians(campaign_with(0.4, 0.3), [ROW], [STOCK, OURS], path, "2 ranks")
        assert path.stat().st_size > 1000


def test_the_means_are_said_where_samples_are_of_two_kinds():
    campaign = campaign_with(1, 6)
    row = campaign.cells[STOCK, ROW.id].rounds
    assert "mean" not in bench.shortfall(campaign, ROW, [STOCK, OURS])
    row[0] = Sample(1, 0.3, 15_997, 9, 5_606)
    said = bench.shortfall(campaign, ROW, [STOCK, OURS])
    assert said.startswith("fence: behind the best stock MPI, 6 to 1, ratio in the same round 0.17; in the mean 5,606 (")
