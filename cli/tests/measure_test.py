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
ROW = Target("fence", 2, "fence")


def line(row: str, median: float) -> str:
    return f'{{"row":"{row}","unit":"us","median":{median},"q1":{median},"q3":{median},"samples":9,"mean":{median}}}\n'


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
    assert len({(row.id, row.ranks, row.machine, row.loaded) for row in rows}) == len(rows)
    assert {row.ranks for row in rows} == {2, 8}


def test_the_rows_of_the_targets_are_rows_of_the_program():
    for row in measure.targets():
        text = (Path(__file__).parents[2] / "bench" / f"{row.program}.c").read_text()
        assert f'"{row.name}"' in text


def test_rows_are_picked_by_ranks_machine_and_pattern():
    rows = measure.targets()
    picked = measure.pick(rows, 8, ["coherent"], "fence")
    assert [row.title for row in picked] == ["8 ranks: fence"]
    picked = measure.pick(rows, 8, ["coherent"], "fence", loaded=True)
    assert [row.title for row in picked] == ["8 ranks: fence, busy loops beside"]


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
    assert bench.best(campaign, ROW, [STOCK, other]) == 0.135
    assert bench.ratio(campaign, ROW, OURS, [STOCK, other]) == pytest.approx(0.13 / 0.09)
    assert bench.ratio(campaign, ROW, OURS, [STOCK]) == pytest.approx(0.26 / 0.09)
    assert bench.shortfalls(campaign, ROW, entries) == []
    assert bench.ratio(campaign, ROW, OURS, []) is None


def test_each_of_ours_is_compared_with_the_best_stock_mpi_and_with_its_own():
    """Our run in front of one MPI does not stand for that in front of the other."""
    other, ours_there = Contestant(OPENMPI, yields=False), Contestant(OPENMPI, "coherent")
    entries = [STOCK, OURS, other, ours_there]
    campaign = campaign_of({STOCK: [1.0], OURS: [0.5], other: [0.25], ours_there: [0.2]})
    assert bench.ratio_text(campaign, ROW, OURS, entries) == "[red]0.50[/], 2.00"
    assert bench.ratio_text(campaign, ROW, ours_there, entries) == "1.25, 1.25"
    said = bench.shortfalls(campaign, ROW, entries)
    assert len(said) == 1 and said[0].startswith(f"fence, {OURS.label}: behind the best stock MPI")
    campaign = campaign_of({STOCK: [1.0], OURS: [2.0], other: [4.0], ours_there: [3.0]})
    said = bench.shortfalls(campaign, ROW, entries)
    assert ["best" in line for line in said] == [True, False, True]
    assert "its own stock MPI" in said[1] and OURS.label in said[1]


def test_ours_runs_in_front_of_both_mpis_but_not_of_the_distributions_older_ones():
    older = Mpi("mpich-apt", Path("/a/mpiexec"), Path("/a/mpicc"), None)
    assert bench.fronted([MPICH, OPENMPI, older]) == [MPICH, OPENMPI]
    assert bench.fronted([older]) == [older]


def test_on_a_loaded_host_the_operations_in_a_second_count_too():
    row = Target("fence", 2, "fence", loaded=True)
    campaign = campaign_of({STOCK: [4.0], OURS: [2.0]})
    for entry, per_s in ((STOCK, 3000.0), (OURS, 1500.0)):
        campaign.cells[entry, row.id].rounds[0] = Sample(4, 4, 4, 9, 4, per_s=per_s)
    campaign.cells[OURS, row.id].rounds[0] = Sample(2, 2, 2, 9, 2, per_s=1500.0)
    entries = [STOCK, OURS]
    assert bench.cell_text(campaign, OURS, row).endswith("1,500 per s")
    assert bench.ratio_text(campaign, row, OURS, entries) == "2.00, 2.00\n[red]0.50[/], [red]0.50[/]"
    assert "fewer in a second than the best stock MPI" in bench.shortfalls(campaign, row, entries)[0]


def test_a_transfer_is_judged_by_the_memcpy_beside_it():
    row = Target("fence", 2, "put 1 MiB", times_memcpy=1.05)
    campaign = campaign_of({OURS: [2.0]})
    for by_memcpy, behind in ((1.04, []), (1.06, [f"put 1 MiB, {OURS.label}: 1.06 times a memcpy, the aim is 1.05"])):
        campaign.cells[OURS, row.id].rounds[0] = Sample(2, 2, 2, 9, 2, by_memcpy=by_memcpy)
        assert bench.shortfalls(campaign, row, [OURS]) == behind


def test_a_row_that_misses_its_target_is_said_so():
    row = Target("fence", 2, "fence", target=0.2)
    entries = [STOCK, OURS]
    assert bench.shortfalls(campaign_with(0.3, 0.2), row, entries) == []
    said = bench.shortfalls(campaign_with(0.3, 0.25), row, entries)
    assert said == [f"fence, {OURS.label}: 0.250, the target is 0.200"]


def test_a_row_on_flushed_has_its_target_alone():
    ours = Contestant(MPICH, "flushed")
    row = Target("fence", 2, "fence", machine="flushed", target=0.3)
    for time, said in ((0.4, [f"fence, {ours.label}: 0.400, the target is 0.300"]), (0.3, [])):
        campaign = campaign_of({STOCK: [0.1], ours: [time]})
        assert bench.shortfalls(campaign, row, [STOCK, ours]) == said


def test_all_rows_are_measured_in_one_run():
    assert bench.conditions(3, True, False) == [(3, True)]
    conditions = bench.conditions(2, False, True)
    rows = measure.targets()
    assert {(row.ranks, row.loaded) for row in rows} == set(conditions)
    assert len(conditions) == 4 and conditions[0] == (2, False)


def test_ours_takes_its_turn_right_after_its_host(monkeypatch):
    monkeypatch.setattr(measure.host, "cores", lambda: 2)
    entries = measure.contestants([MPICH, OPENMPI], [MPICH], ["coherent"], 2)
    assert [e.stock for e in entries] == [True, False, True]
    assert len(measure.contestants([MPICH], [MPICH], ["coherent"], 8)) == 3


def test_a_row_behind_the_stock_mpi_is_said_so():
    assert "behind" in bench.shortfalls(campaign_with(0.3, 0.4), ROW, [STOCK, OURS])[0]
    assert bench.shortfalls(campaign_with(0.4, 0.3), ROW, [STOCK, OURS]) == []
    absent = campaign_of({STOCK: [0.4]})
    assert bench.shortfalls(absent, ROW, [STOCK, OURS]) == [f"fence, {OURS.label}: no measurement"]


@pytest.fixture
def runs(monkeypatch):
    """Replaces the runs by prepared outcomes; returns the commands that were run."""
    commands, outcomes = [], []
    monkeypatch.setattr(compile, "benchmark", lambda mpi, name: Path("/b") / name)
    monkeypatch.setattr(measure, "in_order", lambda names, program: names)

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


def test_each_row_runs_in_its_program(runs):
    commands, outcomes = runs
    outcomes += [Outcome(0, line("a", 1), "", 1), Outcome(0, line("big", 2), "", 1)]
    campaign = Campaign(2, [], lambda record: None, print, {"big": "transfers"})
    campaign.round(1, STOCK, [("a", "allocate"), ("big", "allocate")])
    assert [next(w for w in argv if w.startswith("/b/")) for argv in commands] == [
        "/b/one_sided", "/b/transfers",
    ]  # fmt: skip


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
    assert "mean" not in bench.shortfalls(campaign, ROW, [STOCK, OURS])[0]
    row[0] = Sample(1, 0.3, 15_997, 9, 5_606)
    said = bench.shortfalls(campaign, ROW, [STOCK, OURS])[0]
    assert said.startswith(
        f"fence, {OURS.label}: behind the best stock MPI, 6 to 1, ratio in the same round 0.17; in the mean 5,606 ("
    )
