# SPDX-License-Identifier: Apache-2.0
"""Programs that tombolo-cc has compiled, whose threads run in processes: beside the same under Pthreads."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from dsm_pthreads_test import CHECKS, installed, ours, run
from store_instrumentation_test import plugin
from tombolo import compilers, dsm, dsm_atomics, libraries, paths
from tombolo.errors import UserError

__all__ = ["plugin"]  # a fixture

MACHINES = ["coherent", "flushed", "stale"]


@pytest.fixture(scope="module", autouse=True)
def built(plugin):
    """All that is built on demand, before any test has a time limit."""
    libraries.need_program("libtombolo_pthread.so")
    libraries.need_program(dsm.LIBRARY)
    libraries.need_program(dsm.LAUNCHER)


def rebuilt(name: str, stores: str = "static", *options: str) -> Path:
    source = next(CHECKS.glob(f"{name}.c*"))
    program = paths.home() / "build" / "dsm-checks" / f"{name}-{stores}-{len(options)}"
    return compiled(source, program, f"--tombolo-stores={stores}", *options)


def compiled(source: Path, program: Path, *options: str) -> Path:
    program.parent.mkdir(parents=True, exist_ok=True)
    made = program.with_name(f"{program.name}.{os.getpid()}")
    arguments = ["-O2", "-g", "-pthread", *options, str(source), "-o", str(made)]
    if source.suffix == ".cpp":
        command = compilers.command_line("clang++", ["-std=c++20", *arguments])
    else:
        command = compilers.command_line("clang", arguments)
    subprocess.run(command, check=True)
    made.rename(program)
    return program


def stats(text: str) -> list[dict]:
    lines = [line.partition("stats ")[2] for line in text.splitlines()]
    return [json.loads(line) for line in lines if line]


def total(lines: list[dict], name: str) -> int:
    return sum(line[name] for line in lines)


# --- Stores and atomic operations ----------------------------------------------------------------


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("stores", compilers.VARIANTS)
@pytest.mark.parametrize(
    ("name", "rounds"), [("spans_check", 60), ("atomics_check", 60), ("mutexes_check", 60), ("others_check", 10)]
)
def test_rebuilt_programs_answer_as_under_pthreads(name, rounds, stores, machine):
    command = [rebuilt(name, stores), 3, rounds]
    expected = run(command)
    outcome = ours(command, transport="window", machine=machine)
    assert (outcome.stdout, outcome.stderr) == (expected.stdout, expected.stderr)
    assert outcome.returncode == expected.returncode == 0


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_atomic_operations_are_those_of_all_threads(threads):
    command = [rebuilt("atomics_check"), threads, 200]
    assert ours(command, transport="window").stdout == run(command).stdout
    assert ours(command, transport="map").stdout == run(command).stdout


def test_a_small_cache_serves_atomic_operations():
    command = [rebuilt("atomics_check"), 3, 40]
    assert ours(command, transport="window", cache="1MiB").stdout == run(command).stdout


@pytest.mark.parametrize("machine", MACHINES)
def test_changes_in_spans_travel_with_the_lock(machine):
    """No turn fetches the page again; those of recorded stores open it without a fault."""
    told = {}
    for stores in ("static", "full", "page"):
        outcome = ours([rebuilt("spans_check", stores), 2, 200], transport="window", machine=machine, stats="json")
        told[stores] = stats(outcome.stderr)
        assert len(told[stores]) == 3, outcome.stderr  # the first thread waits
    for stores in told:
        assert total(told[stores], "dsm_update_bytes") >= 400 * 20
        assert total(told[stores], "dsm_fetches") < 100
        assert total(told[stores], "dsm_write_faults") < 100
    for stores in ("static", "full"):
        assert total(told[stores], "dsm_write_faults") < total(told["page"], "dsm_write_faults")


@pytest.mark.parametrize("machine", MACHINES)
def test_changes_before_a_post_travel_with_the_semaphore(machine):
    command = [rebuilt("spans_check", "page"), 2, 200, "semaphores"]
    outcome = ours(command, transport="window", machine=machine, stats="json")
    assert outcome.stdout == run(command).stdout
    told = stats(outcome.stderr)
    assert len(told) == 3, outcome.stderr
    assert total(told, "dsm_update_bytes") >= 400 * 20
    assert total(told, "dsm_fetches") < 100
    assert total(told, "dsm_write_faults") < 100


@pytest.mark.parametrize("machine", MACHINES)
def test_an_atomic_operation_moves_no_page(machine):
    """Those of several threads on several addresses of the same pages."""
    command = [rebuilt("atomics_check"), 2, 2000, "counts"]
    outcome = ours(command, transport="window", machine=machine, stats="json")
    assert outcome.stdout == run(command).stdout
    told = stats(outcome.stderr)
    assert total(told, "dsm_atomics") > 20000
    assert total(told, "dsm_fetches") < 200


DSM = r"""
#include <stdatomic.h>
#include <stdio.h>
#include <tombolo/dsm.h>

int main(void) {
  tombolo_dsm_init();
  struct { atomic_long atomic; _Atomic double real; long plain[500]; }* const shared =
      tombolo_dsm_malloc(sizeof *shared);
  atomic_long own = 1;
  tombolo_dsm_mutex_t mutex = tombolo_dsm_mutex_create();
  tombolo_dsm_barrier_wait();
  for (int i = 0; i < 300; ++i) {
    atomic_fetch_add(&shared->atomic, 2);
    shared->real += 0.5;
    own += 1;
    if (tombolo_dsm_mutex_trylock(mutex) == 0) tombolo_dsm_mutex_lock(mutex);
    shared->plain[0] += 1;
    tombolo_dsm_mutex_unlock(mutex);
  }
  tombolo_dsm_barrier_wait();
  if (tombolo_dsm_thread() == 0)
    printf("%ld %g %ld %ld\n", shared->atomic, shared->real, own, shared->plain[0]);
  tombolo_dsm_finalize();
  return 0;
}
"""


@pytest.mark.parametrize("how", [("map", "coherent"), *(("window", machine) for machine in MACHINES)])
def test_programs_of_dsm_h_may_be_rebuilt(how, tmp_path):
    source = tmp_path / "shared.c"
    source.write_text(DSM)
    program = compiled(source, tmp_path / "shared", *dsm.flags())
    choice = dsm.Choice(transport=how[0], machine=how[1], stats="json")
    done = run(dsm.command(3, [str(program)]), dsm.environment(choice))
    assert done.stdout == "1800 450 301 900\n", done.stderr
    if how[0] == "window":
        assert total(stats(done.stderr), "dsm_update_bytes") >= 900 * 8
        assert total(stats(done.stderr), "dsm_atomics") >= 1800


# --- Counts at the end ---------------------------------------------------------------------


def test_each_process_tells_its_counts_and_all_their_hottest_pages():
    outcome = ours([rebuilt("spans_check", "page"), 2, 100], transport="window", machine="stale", stats="text")
    lines = outcome.stderr.splitlines()
    told = [line for line in lines if line.startswith("tombolo: stats ")]
    assert [line.split()[2] for line in told] == ["rank=0", "rank=1", "rank=2"]
    assert all(" machine=stale transport=window protocol=release dsm_read_faults=" in line for line in told)
    pages = [line for line in lines if line.startswith("tombolo: page ")]
    assert 1 <= len(pages) <= 10
    assert re.search(r" threads=(0,)?1,2 ", pages[0]), pages[0]
    assert "spans_check.c:" in "".join(pages)
    assert len(told) + len(pages) == len(lines)


def test_the_same_as_json():
    outcome = ours([rebuilt("spans_check", "page"), 2, 100], transport="window", stats="json")
    told = stats(outcome.stderr)
    assert [line["rank"] for line in told] == ["0", "1", "2"]
    assert told[0]["hottest_pages"][0]["faults"] > 5
    assert "hottest_pages" not in told[1]
    for line in told[1:]:
        assert line["dsm_read_faults"] > 0 and line["dsm_diffs"] > 0 and line["dsm_lock_waits"] >= 100


def test_threads_that_never_end_are_counted():
    outcome = ours([compiled_check("ends_check"), "never joined"], transport="window", stats="json")
    assert outcome.returncode == 5
    assert [line["rank"] for line in stats(outcome.stderr)][:1] == ["0"]


def test_nothing_is_told_unless_it_is_wanted():
    assert ours([rebuilt("spans_check"), 2, 5], transport="window").stderr == ""


# --- Atomic instructions of programs that are not rebuilt ----------------------------------------


def compiled_check(name: str, *options: str) -> Path:
    import dsm_pthreads_test

    return dsm_pthreads_test.compiled(name, *options)


COUNTER = """
#include <pthread.h>
static int counter, done; static long together;
__attribute__((noinline)) void count_up(void) { __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED); }
__attribute__((noinline)) int take(int* lock) { return __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE); }
static void* thread(void* p) { count_up(); __sync_synchronize(); return p; }
int main(void) { pthread_t t; pthread_create(&t, 0, thread, 0); pthread_join(t, 0); return take(&done); }
"""
FENCE = """
#include <pthread.h>
static void* thread(void* p) { __atomic_thread_fence(__ATOMIC_SEQ_CST); return p; }
int main(void) { pthread_t t; pthread_create(&t, 0, thread, 0); return pthread_join(t, 0); }
"""


def plain(tmp_path: Path, text: str, *options: str) -> Path:
    (tmp_path / "plain.c").write_text(text)
    program = tmp_path / "plain"
    subprocess.run(["cc", "-O1", "-pthread", tmp_path / "plain.c", *options, "-o", program], check=True)
    return program


def test_atomic_instructions_are_refused_by_name(tmp_path):
    with pytest.raises(UserError) as refused:
        dsm_atomics.check(plain(tmp_path, COUNTER))
    text = str(refused.value)
    assert "count_up (plain+0x" in text and "take (plain+0x" in text
    for way in ("./tombolo dsm cc", "--transport map", "--atomic-instructions ignore"):
        assert way in text


def test_those_of_its_libraries_are_refused_too(tmp_path):
    (tmp_path / "part.c").write_text("int part(int* at) { return __atomic_add_fetch(at, 1, 5); }\n")
    library = tmp_path / "libpart.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", tmp_path / "part.c", "-o", library], check=True)
    program = plain(
        tmp_path, "int part(int*); int main(void) { int a = -1; return part(&a); }", library, f"-Wl,-rpath,{tmp_path}"
    )
    with pytest.raises(UserError, match=r"part \(libpart.so\+0x"):
        dsm_atomics.check(program)


def test_places_without_names_are_refused_by_address(tmp_path):
    program = plain(tmp_path, COUNTER, "-s")
    with pytest.raises(UserError, match=r"atomic instructions: plain\+0x[0-9a-f]+, plain\+0x"):
        dsm_atomics.check(program)


def test_a_program_that_is_made_anew_is_looked_at_anew(tmp_path):
    with pytest.raises(UserError):
        dsm_atomics.check(plain(tmp_path, COUNTER))
    dsm_atomics.check(plain(tmp_path, FENCE))


@pytest.mark.parametrize("options", [(), ("-s",)])
def test_rebuilt_programs_are_not_refused(options):
    dsm_atomics.check(rebuilt("atomics_check", "static", *options))


def test_the_command_refuses_and_may_be_told_to_ignore(tmp_path):
    program = plain(tmp_path, COUNTER)
    command = [paths.checkout() / "tombolo", "dsm", "run", "--transport", "window"]
    refused = run([*command, program])
    assert refused.returncode != 0 and "count_up" in refused.stderr
    assert run([*command, "--atomic-instructions", "ignore", program]).returncode == 0
    assert run([*command[:-2], "--transport", "map", program]).returncode == 0
    assert "there are refuse and ignore" in run([*command, "--atomic-instructions", "all", program]).stderr


@pytest.mark.parametrize("program", ["pigz", "pbzip2", "xz", "zstd"])
def test_programs_that_synchronize_by_pthreads_are_not_refused(program):
    dsm_atomics.check(installed(program))
