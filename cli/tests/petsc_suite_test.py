# SPDX-License-Identifier: Apache-2.0
"""How PETSc's star forests are run and judged; with PETSc itself where it is installed."""

import json
import stat
from pathlib import Path

import pytest
import typer
from tombolo import libraries, mpis
from tombolo.commands import forests
from tombolo.errors import UserError
from tombolo.mpis import Mpi
from tombolo.processes import Outcome
from tombolo.suite import petsc
from tombolo.suite.petsc import Campaign, Cell, Forest, Petsc
from tombolo.suite.runner import Setting

STOCK, COHERENT, STALE = Setting("stock"), Setting("coherent"), Setting("stale", 1)
FENCE = Forest("shared", "fence")
FINE, DEAD, LATE = Outcome(0, "", "", 1), Outcome(68, "", "", 1), Outcome(None, "", "", 1)


def line(name: str, wrong: int = 0) -> dict:
    return {"operation": name, "wrong": wrong, "median_us": 5.0}


def test_an_operation_is_judged_by_its_values_and_by_the_end_of_the_processes():
    assert petsc.judged(line("broadcast"), FINE) == "right"
    assert petsc.judged(line("broadcast", 3), FINE) == "3 wrong"
    assert petsc.judged(None, DEAD) == "exit 68"
    assert petsc.judged(None, LATE) == "time limit"
    assert petsc.judged(line("broadcast"), DEAD) == "right"
    assert petsc.judged(line("fetch_and_add"), DEAD) == "exit 68"


def test_one_failure_in_several_turns_is_a_failure():
    cell = Cell(["right", "2 wrong", "right"], [5.0, 7.0])
    assert (cell.right, cell.word, cell.time_us) == (False, "2 wrong", None)
    assert Cell(["right", "right", "right"], [9.0, 5.0, 7.0]).time_us == 7.0
    assert not Cell().right


class Noted(Campaign):
    """With the records that it keeps, and the folder of its launcher."""

    def __init__(self, folder: Path, mpi: Mpi) -> None:
        self.folder = folder
        self.kept: list[dict] = []
        super().__init__(Petsc(Path("python3"), folder), mpi, 10, self.kept.append)


@pytest.fixture
def campaign(tmp_path: Path, monkeypatch) -> Noted:
    """With a launcher that prints the file `told` and notes each start, in place of MPI and PETSc."""
    launcher = tmp_path / "mpirun"
    launcher.write_text(
        f'#!/bin/bash\ncd {tmp_path}\necho "${{@: -6}}" >> started\n[ -f refused ] && cat refused >&2\ncat told\n'
    )
    launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "told").write_text("\n".join(json.dumps(line(name)) for name in petsc.OPERATIONS))
    monkeypatch.setattr(libraries, "need", lambda abi: tmp_path / "library.so")
    return Noted(tmp_path, Mpi("openmpi-apt", launcher, None, None))


def test_settings_have_their_turns_and_stale_has_one(campaign):
    assert campaign.measure(FENCE, 2, [STOCK, COHERENT, STALE], 3)
    assert [len(campaign.cells[FENCE, "reduction", 2, s].words) for s in (STOCK, COHERENT, STALE)] == [3, 3, 1]
    started = (campaign.folder / "started").read_text().splitlines()
    assert started == ["-sf_type window -sf_window_sync fence -sf_window_flavor shared"] * 7
    assert len(campaign.kept) == 7 * len(petsc.OPERATIONS)


def test_parts_of_shared_windows_lie_apart_where_memory_is_not_coherent(campaign):
    campaign.folder.joinpath("mpirun").write_text(f'#!/bin/bash\necho started "$@" >> {campaign.folder}/started\n')
    for forest in (FENCE, Forest("create", "fence")):
        campaign.measure(forest, 2, [STOCK, COHERENT, STALE], 1)
    started = (campaign.folder / "started").read_text().splitlines()
    assert ["TOMBOLO_SHARED_NONCONTIG=on" in words for words in started] == [False, False, True] + 3 * [False]


def test_a_setting_that_fails_has_no_further_turn(campaign):
    (campaign.folder / "told").write_text(json.dumps(line("broadcast", 1)))
    assert campaign.measure(FENCE, 2, [COHERENT], 3)
    assert campaign.cells[FENCE, "broadcast", 2, COHERENT].words == ["1 wrong"]


def test_windows_that_this_petsc_does_not_make_are_left_out(campaign):
    (campaign.folder / "refused").write_text("[0] No support for flavor DYNAMIC\n")
    dynamic = Forest("dynamic", "lock")
    assert not campaign.measure(dynamic, 2, [STOCK, COHERENT], 3)
    assert campaign.not_offered == [dynamic]
    assert not any(cell.words for cell in campaign.cells.values())


@pytest.mark.parametrize(
    ("stock", "ours", "failed"),
    [("right", "right", 0), ("right", "1 wrong", 1), ("time limit", "1 wrong", 0), ("time limit", "right", 0)],
)
def test_a_failure_counts_where_the_stock_mpi_is_right(campaign, capsys, stock, ours, failed):
    campaign.cells[FENCE, "broadcast", 2, STOCK] = Cell([stock], [5.0])
    campaign.cells[FENCE, "broadcast", 2, COHERENT] = Cell([ours], [6.0])
    status = 0
    try:
        forests.finish(campaign, "here")
    except typer.Exit as ended:
        status = ended.exit_code
    told = capsys.readouterr().out
    assert status == failed
    assert f"{int(ours == 'right')} passed, {failed} failed" in told
    assert ("slower" in told) == (stock == ours == "right")


def test_another_mpi_than_that_of_petsc_is_refused():
    with pytest.raises(UserError, match="openmpi-apt"):
        forests.check_mpi("openmpi")


def test_petsc_is_asked_for_where_it_is_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(petsc, "INSTALLED", tmp_path)
    monkeypatch.delenv("PETSC_DIR", raising=False)
    with pytest.raises(UserError, match="apt-get install python3-petsc4py"):
        petsc.need()


@pytest.mark.parametrize("machine", petsc.MACHINES)
@pytest.mark.parametrize("sync", petsc.SYNCS)
@pytest.mark.parametrize("flavor", ["create", "shared"])
def test_star_forests_are_right(flavor, sync, machine, monkeypatch):
    mpi, library = mpis.find(petsc.MPI), petsc.find()
    if mpi is None or library is None:
        pytest.skip("PETSc is not installed: make petsc")
    if libraries.find(mpi.kind) is None:
        pytest.skip("the libraries are not built: make native")
    monkeypatch.setattr(petsc, "EXCHANGES", 5)
    monkeypatch.setattr(petsc, "EXCHANGES_ON_STALE", 5)
    campaign, setting = Campaign(library, mpi, 60, lambda record: None), Setting(machine)
    forest = Forest(flavor, sync)
    campaign.measure(forest, 3, [setting], 1)
    words = [campaign.cells[forest, name, 3, setting].word for name in petsc.OPERATIONS]
    assert words == ["right"] * 3, campaign.complaints
    assert campaign.windows.served > 0 and campaign.windows.forwarded == 0
