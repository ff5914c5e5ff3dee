# SPDX-License-Identifier: Apache-2.0
import os
from pathlib import Path

import pytest
from rich.table import Table
from tombolo import compile, processes, records
from tombolo.commands import demo
from tombolo.commands.demo import SITUATIONS, Said, Situation, Tally
from tombolo.measure import Campaign, Contestant, Sample
from tombolo.mpis import Mpi
from tombolo.processes import Outcome

MPICH = Mpi("mpich", Path("/m/mpiexec"), Path("/m/mpicc"), Path("/m"))
STOCK, OURS = Contestant(MPICH, yields=False), Contestant(MPICH, "coherent")
ROW = ("fence", "allocate", "fence, all ranks")
LOST = (
    "tombolo: stale: window made at u.c:71 of 2 processes:\n"
    "tombolo:   lost update: 481 bytes that rank 1 at u.c:44 wrote were overwritten with old values when "
    "rank 0 at u.c:60 wrote back its cache line; 30 times; bytes 8 to 58 of rank 0's memory\n"
    "tombolo:   lost update: 10 bytes that rank 1 at u.c:44 wrote were overwritten with old values\n"
    "tombolo:   note, no mistake: 7 bytes that rank 1 wrote\n"
)
RIGHT = Outcome(0, "RESULT ok ranks=2 values=256 wrong=0 seconds=0.1\n", "", 1)
WRONG = Outcome(1, "RESULT WRONG ranks=2 values=256 wrong=128 seconds=0.1\n", LOST, 1)
SILENT = Outcome(1, WRONG.stdout, "", 1)  # wrong, and the machine names no bytes


def sample(median: float, mean: float) -> Sample:
    return Sample(median, median, median, 9, mean)


def shown(stock: Sample | None, ours: Sample | None, mean: bool = False) -> tuple[list[str], Tally]:
    campaign = Campaign(2, [], lambda record: None, lambda text: None)
    for entry, value in ((STOCK, stock), (OURS, ours)):
        if value:
            campaign.cells[entry, ROW[:2]].rounds.append(value)
    tally = Tally()
    situation = Situation("a title", (ROW,), mean=mean)
    return demo.measured_row(situation, ROW, MPICH, campaign, [STOCK, OURS], tally), tally


def test_every_row_is_a_row_of_the_benchmark():
    sources = (Path(__file__).parents[2] / "bench").glob("one_sided*.[ch]")
    text = "".join(source.read_text() for source in sources)
    for situation in SITUATIONS:
        for name, flavor, _ in situation.rows:
            assert f'"{name}"' in text and f'"{flavor}"' in text


def test_the_ratio_is_of_stock_to_tombolo():
    cells, tally = shown(sample(600, 1), sample(2, 1))
    assert [cells[0], *cells[2:]] == ["  fence, all ranks", "600 us", "2 us", "300"]
    assert (tally.passed, tally.failures, tally.slower) == (1, [], [])


def test_a_slower_row_passes_is_marked_and_named():
    cells, tally = shown(sample(1, 1), sample(4, 4))
    assert cells[4] == "[yellow]0.25[/]"
    assert tally.passed == 1
    assert "fence, all ranks" in tally.slower[0]


def test_with_more_ranks_than_cores_the_mean_counts():
    cells, _ = shown(sample(1, 50), sample(1, 5), mean=True)
    assert cells[2:] == ["50 us", "5 us", "10"]


def test_a_row_fails_if_tombolo_breaks_and_not_if_the_stock_mpi_does():
    cells, tally = shown(sample(1, 1), None)
    assert cells[3:] == ["breaks", ""]
    assert (tally.passed, len(tally.failures)) == (0, 1)
    cells, tally = shown(None, sample(1, 1))
    assert cells[2] == "breaks"
    assert (tally.passed, len(tally.failures)) == (1, 0)


def test_a_row_that_broke_in_a_later_round_has_no_time():
    campaign = Campaign(2, [], lambda record: None, lambda text: None)
    campaign.cells[OURS, ROW[:2]].rounds.append(sample(1, 1))
    campaign.broken.add((OURS, ROW[:2]))
    assert demo.times(campaign, [STOCK, OURS], ROW[:2], False) == (None, None)


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(31577.4, "31,577"), (22, "22"), (1.66, "1.7"), (1, "1.0"), (0.333, "[yellow]0.33[/]")],
)
def test_ratios_have_the_digits_that_count(ratio, text):
    assert demo.ratio_text(ratio) == text


def test_stock_and_tombolo_have_their_turns_in_turn(monkeypatch):
    turns = []
    monkeypatch.setattr(Campaign, "round", lambda self, n, entry, rows: turns.append((n, entry)))
    situation = Situation("a title", (ROW,), ranks=10_000)
    demo.measured(situation, MPICH, 2, records_to([]))
    told = Contestant(MPICH, yields=True)  # more ranks than cores
    assert turns == [(1, told), (1, OURS), (2, told), (2, OURS)]


def test_a_mistake_is_caught_by_a_wrong_result_and_named_bytes():
    said = demo.listen(WRONG)
    assert said.caught and not said.right
    assert (said.values, said.losses) == ("128 of 256 wrong", "491 bytes lost")
    assert said.loss.startswith("lost update: 481 bytes that rank 1 at u.c:44 wrote")
    assert not demo.listen(SILENT).caught
    assert demo.listen(RIGHT) == Said("ok", "0 of 256 wrong")
    assert not demo.listen(Outcome(0, RIGHT.stdout, LOST, 1)).right


def records_to(kept: list) -> records.Writer:
    class Keeper(records.Writer):
        def __init__(self) -> None:
            pass

        def write(self, record: dict) -> None:
            kept.append(record)

    return Keeper()


@pytest.mark.parametrize(
    ("outcomes", "passed"),
    [
        ((RIGHT, WRONG, RIGHT), 3),
        ((RIGHT, RIGHT, RIGHT), 2),  # stale did not notice
        ((RIGHT, SILENT, RIGHT), 2),
        ((WRONG, WRONG, RIGHT), 2),  # wrong on coherent memory
        ((RIGHT, WRONG, WRONG), 2),  # wrong with the lock
    ],
)
def test_the_mistake_must_be_seen_on_stale_only(monkeypatch, outcomes, passed):
    left, commands, kept = list(outcomes), [], []
    monkeypatch.setattr(compile, "example", lambda mpi, name: Path("/b") / name)
    monkeypatch.setattr(demo, "job", lambda mpi, n, command, choice: (command, choice))
    monkeypatch.setattr(processes, "run", lambda made, limit: commands.append(made) or left.pop(0))
    tally = Tally()
    demo.mistake_rows(Table(*"abcde"), MPICH, 9, records_to(kept), tally)
    assert (tally.passed, len(tally.failures)) == (passed, 3 - passed)
    assert [choice and choice.machine for _, choice in commands] == [None, "stale", "stale"]
    assert [command[1:] for command, _ in commands] == [[], [], ["--fixed"]]
    assert len(kept) == 3


def test_the_example_with_the_mistake_must_be_wrong_on_stale_and_right_elsewhere():
    assert demo.as_expected(demo.MISTAKE, "stale", 2, WRONG) == (True, "mistake caught")
    assert not demo.as_expected(demo.MISTAKE, "stale", 2, RIGHT)[0]
    assert demo.as_expected(demo.MISTAKE, "coherent", 2, RIGHT)[0]
    assert not demo.as_expected(demo.MISTAKE, "coherent", 2, WRONG)[0]
    assert demo.as_expected(demo.MISTAKE, "stale", 1, RIGHT)[0]  # a rank alone loses nothing
    assert not demo.as_expected("work_queue", "stale", 2, WRONG)[0]


def test_the_example_with_the_mistake_is_there():
    assert demo.MISTAKE in compile.examples()


def test_cores_are_given_back():
    before = os.sched_getaffinity(0)
    with pytest.raises(ValueError), demo.on_cores(1) as cores:
        assert cores == len(os.sched_getaffinity(0)) == 1
        raise ValueError
    assert os.sched_getaffinity(0) == before
