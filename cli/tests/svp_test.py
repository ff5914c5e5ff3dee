# SPDX-License-Identifier: Apache-2.0
"""Programs of families, compiled and started by the command."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from full_disk import expect_the_trace_of_before, full_disk
from tombolo import host, libraries, paths, svp
from tombolo.app import made
from typer.testing import CliRunner

__all__ = ["full_disk"]  # a fixture

COMMAND = [sys.executable, "-P", str(Path(svp.__file__).parent / "__main__.py")]

WORKERS = r"""
#include <cstdio>
#include <cstdlib>
#include "tombolo/svp.hpp"
namespace svp = tombolo::svp;

int main(int argc, char** argv) {
  unsigned workers = 0;
  std::size_t bytes = 0;
  auto family = svp::create([&] {
    workers = svp::Worker::here()->pool().size();
    bytes = svp::Worker::here()->pool().settings().stack_bytes;
  });
  family.sync().rethrow();
  if (argc > 2)
    std::printf("%zu KiB\n", bytes >> 10);
  else
    std::printf("%u workers\n", workers);
  return argc > 1 ? std::atoi(argv[1]) : 0;
}
"""


# Something for each row of the counts, and for most events of a trace.
EVENTS = r"""
#include <atomic>
#include <stdexcept>
#include "tombolo/svp.hpp"
namespace svp = tombolo::svp;

int main() {
  svp::LocalPlace place(2);
  svp::ExclusivePlace turn;
  auto all = svp::create(place, [&] {
    for (int i = 0; i < 10; ++i) {
      auto inlined = svp::create([] {});
      inlined.sync();
    }
    std::atomic<bool> begun{false};
    auto stolen = svp::create([&] { begun = true; });
    while (!begun) svp::checkpoint();
    stolen.sync();
    auto broken = svp::create({.start = 3, .limit = svp::unbounded}, [](svp::Index) { svp::break_family(7); });
    broken.sync();
    auto failed = svp::create({.limit = 10, .step = 2}, [](svp::Index) { throw std::runtime_error("x"); });
    failed.sync();
    auto endless = svp::create({.limit = svp::unbounded}, [](svp::Index) {});
    endless.kill();
    endless.sync();
    svp::Global<int> number;
    auto reader = svp::create([](svp::Global<int>& n) { n.read(); }, number);
    auto writer = svp::create([&] { number.write(1); });
    writer.sync();
    reader.sync();
    auto exclusive = svp::create(turn, [] {});
    exclusive.sync();
  });
  all.sync().rethrow();
  return 0;
}
"""


# Families at process 1 with an array of so many elements, and at the creator's place.
REMOTE = r"""
#include <cstdlib>
#include "tombolo/svp.hpp"
namespace svp = tombolo::svp;

void first(svp::InOutArray<long> array) { array[0] += 1; }
void nothing(svp::Index) {}

int main(int, char** argv) {
  return svp::run([argv](svp::Job& job) {
    svp::SharedArray<long> array(std::atol(argv[1]));
    for (int i = 0; i < 5; ++i) {
      auto there = svp::create(job.place(1), svp::remote<&first>, std::span<long>(array));
      there.sync().rethrow();
    }
    for (int i = 0; i < 3; ++i) {
      auto here = svp::create(job.place(0), {.limit = 2}, svp::remote<&nothing>);
      here.sync().rethrow();
    }
    return array[0] == 5 ? 0 : 1;
  });
}
"""


@pytest.fixture(scope="module", autouse=True)
def built():
    """The archive and the launcher, built before any test has a time limit."""
    libraries.need_program(svp.ARCHIVE)
    libraries.need_program(svp.LAUNCHER)


@pytest.fixture(scope="module")
def compile_cpp(tmp_path_factory):
    def compile_text(name: str, text: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        source, program = folder / f"{name}.cpp", folder / name
        source.write_text(text)
        options = ["-O1", "-Wall", "-Wextra", "-Werror"]
        subprocess.run(["c++", *options, source, "-o", program, *svp.flags()], check=True)
        return program

    return compile_text


@pytest.fixture(scope="module")
def workers(compile_cpp):
    return compile_cpp("workers", WORKERS)


@pytest.fixture(scope="module")
def events(compile_cpp):
    return compile_cpp("events", EVENTS)


@pytest.fixture(scope="module")
def remote(compile_cpp):
    return compile_cpp("remote", REMOTE)


def run(*words, **environment) -> subprocess.CompletedProcess:
    argv = [*COMMAND, "svp", "run", *map(str, words)]
    env = os.environ | environment
    return subprocess.run(argv, capture_output=True, text=True, env=env, timeout=120)


def told(*words) -> str:
    """The message of a command line that is refused."""
    result = CliRunner().invoke(made(), ["svp", *words])
    assert result.exception is not None
    return str(result.exception)


def test_a_program_has_the_workers_that_were_asked_for(workers):
    done = run("--workers", 3, workers)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3 workers\n", "")
    assert run(workers, TOMBOLO_SVP_WORKERS="1").stdout == "1 workers\n"
    assert run(workers).stdout == f"{host.cores()} workers\n"


def test_the_status_of_the_program_is_the_commands(workers):
    assert run(workers, "7").returncode == 7
    assert run("-n", 2, workers, "7").returncode == 7


@pytest.mark.parametrize("text", ["0", "many", "1025", "-1"])
def test_a_number_of_workers_that_is_none_ends_the_program(workers, text):
    done = run(workers, TOMBOLO_SVP_WORKERS=text)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"tombolo: TOMBOLO_SVP_WORKERS is '{text}'; it may be a number from 1 to 1024\n"


@pytest.mark.parametrize("text", ["15KiB", "none", "1025MiB", "256"])
def test_a_size_of_stacks_that_is_none_ends_the_program(workers, text):
    done = run(workers, TOMBOLO_SVP_STACK=text)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"tombolo: TOMBOLO_SVP_STACK is '{text}'; it may be a size from 16KiB to 1GiB, such as 512MiB\n"
    )


@pytest.mark.parametrize("kibibytes", [16, 1048576])
def test_stacks_have_the_size_that_was_asked_for(workers, kibibytes):
    assert run(workers, "0", "stack", TOMBOLO_SVP_STACK=f"{kibibytes}KiB").stdout == f"{kibibytes} KiB\n"


def test_several_processes_find_each_other(workers):
    done = run("-n", 3, "--workers", 2, workers)
    assert (done.returncode, done.stdout) == (0, "2 workers\n" * 3), done.stderr


def test_options_between_processes_need_several(workers):
    for option in (["--machine", "stale"], ["--seed", "3"]):
        assert f"{option[0]} has no effect here: one process" in told("run", *option, str(workers))
    assert "is not a machine" in told("run", "-n", "2", "--machine", "nowhere", str(workers))
    assert "no_program" in told("run", "no_program")


def test_show_prints_the_command_line(workers):
    result = CliRunner().invoke(made(), ["svp", "run", "--show", "-n", "4", str(workers), "-x"])
    assert result.stdout.split()[1:] == ["4", str(workers), "-x"]
    result = CliRunner().invoke(made(), ["svp", "run", "--show", str(workers), "-x"])
    assert result.stdout.split() == [str(workers), "-x"]


def test_the_examples_compile_with_the_flags_that_are_told(tmp_path):
    flags = CliRunner().invoke(made(), ["svp", "flags"]).stdout.split()
    for source in (paths.checkout() / "examples/svp").glob("*.cpp"):
        subprocess.run(
            ["c++", "-O1", f"-I{paths.checkout()}", source, "-o", tmp_path / source.stem, *flags], check=True
        )
        done = subprocess.run([tmp_path / source.stem], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr


def test_stats_count_families_by_how_they_ran(events):
    done = run(events, TOMBOLO_STATS="json")
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    counts = json.loads(line.removeprefix("tombolo: stats "))
    assert counts["rank"] == "0"
    assert counts["families_created"] == 18
    assert (counts["families_broken"], counts["families_failed"], counts["families_killed"]) == (1, 1, 1)
    # The first family was created outside, and one was stolen for certain.
    assert 0 < counts["families_inlined"] <= 16
    assert counts["tasks_stolen"] >= 1
    assert counts["tasks_delegated"] >= 1
    assert {"reads_blocked", "stacks_parked", "remote_creates", "remote_bytes"} <= counts.keys()
    done = run("--stats", events)
    assert "tombolo: stats rank=0 families_created=18 families_inlined=" in done.stderr
    assert run(events).stderr == ""


def remote_counts(remote: Path, elements: int, transport: str) -> list[dict]:
    """Of both processes, by rank."""
    done = run("-n", 2, remote, elements, TOMBOLO_STATS="json", TOMBOLO_SVP_TRANSPORT=transport)
    assert done.returncode == 0, done.stderr
    told = [json.loads(line.removeprefix("tombolo: stats ")) for line in done.stderr.splitlines()]
    told.sort(key=lambda counts: counts["rank"])
    return told


def test_stats_count_families_in_other_processes_and_bytes_of_messages(remote):
    by_address, other = remote_counts(remote, 1, "remap")
    assert (by_address["remote_creates"], other["remote_creates"]) == (5, 0)
    # The program itself, and those at its own place.
    assert by_address["families_created"] == 1 + 5 + 3
    assert by_address["families_inlined"] <= 3
    # No byte of the array, of one element or of 1 MiB.
    large = remote_counts(remote, 1 << 17, "remap")
    assert [each["remote_bytes"] for each in large] == [by_address["remote_bytes"], other["remote_bytes"]]
    few, many = remote_counts(remote, 1, "buffer"), remote_counts(remote, 1001, "buffer")
    for less, more in zip(few, many, strict=True):
        assert more["remote_bytes"] - less["remote_bytes"] == 5 * 1000 * 8


def is_number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def expect_events_of_a_viewer(trace: Path) -> None:
    """As Perfetto's importer of JSON demands ("Trace Event Format"): it drops other events."""
    whole = json.loads(trace.read_text())
    assert whole["displayTimeUnit"] in ("ms", "ns")
    named, used, flows = set(), set(), set()
    begun: dict[tuple, list[str]] = {}
    for event in sorted(whole["traceEvents"], key=lambda event: event.get("ts", 0)):
        assert isinstance(event["name"], str) and event["name"], event
        assert isinstance(event["pid"], int) and 0 < event["pid"] < 1 << 31, event
        kind, track = event["ph"], (event["pid"], event.get("tid"))
        if kind == "M":
            assert event["name"] in ("process_name", "thread_name"), event
            assert isinstance(event["args"]["name"], str) and event["args"]["name"], event
            named.add(track if event["name"] == "thread_name" else track[0])
            continue
        assert isinstance(event["tid"], int) and 0 < event["tid"] < 1 << 31, event
        assert is_number(event["ts"]) and event["ts"] >= 0, event
        assert isinstance(event.get("args", {}), dict), event
        used |= {track, track[0]}
        if kind == "X":
            assert is_number(event["dur"]) and event["dur"] >= 0, event
        elif kind == "B":
            begun.setdefault(track, []).append(event["name"])
        elif kind == "E":
            assert begun[track].pop() == event["name"], event
        elif kind == "i":
            assert event["s"] in ("g", "p", "t"), event
        else:  # flows: a start first
            assert kind in ("s", "t", "f") and isinstance(event["cat"], str), event
            assert kind == "s" or event["id"] in flows, event
            flows.add(event["id"])
    assert not any(begun.values()), begun
    assert used and used <= named, used - named


def spans(trace: Path) -> list[dict]:
    expect_events_of_a_viewer(trace)
    told = json.loads(trace.read_text())["traceEvents"]
    return [event for event in told if event["ph"] != "M"]


def test_a_trace_tells_families_places_and_channels(events, tmp_path):
    trace = tmp_path / "trace.json"
    done = run("--trace", trace, events)
    assert (done.returncode, done.stderr) == (0, "")
    told = spans(trace)
    families = [event["args"] for event in told if event["name"] == "family"]
    assert len(families) >= 17  # one that a kill reached in time has not begun
    exits = [family["exit"] for family in families]
    assert exits.count("broken") == 1 and exits.count("failed") == 1
    (broken,) = (family for family in families if family["exit"] == "broken")
    assert (broken["start"], broken["limit"], broken["step"]) == (3, "unbounded", 1)
    (failed,) = (family for family in families if family["exit"] == "failed")
    assert (failed["start"], failed["limit"], failed["step"]) == (0, 10, 2)
    places = {family["place"] for family in families}
    assert "local 0" in places and any(place.startswith("exclusive ") for place in places)
    assert {family["worker"] for family in families} == {0, 1}
    assert any(event["name"] == "steal" for event in told)
    everyone = {family["family"] for family in families}
    assert sum(family["parent"] in everyone for family in families) >= 16


def test_spans_of_a_stack_lie_one_in_the_other(events, tmp_path):
    trace = tmp_path / "trace.json"
    assert run("--trace", trace, events).returncode == 0
    by_track: dict[int, list[tuple[float, float]]] = {}
    for event in spans(trace):
        if event["ph"] == "X":
            by_track.setdefault(event["tid"], []).append((event["ts"], event["ts"] + event["dur"]))
    for track in by_track.values():
        open_ends: list[float] = []
        for start, end in sorted(track, key=lambda span: (span[0], -span[1])):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1] + 0.002
            open_ends.append(end)


def test_one_worker_that_blocks_tells_the_read_and_the_write(events, tmp_path):
    source = """
#include "tombolo/svp.hpp"
namespace svp = tombolo::svp;
int main() {
  svp::LocalPlace place(1);
  svp::LocalPlace other(1);
  auto all = svp::create(place, [&] {
    svp::Global<int> number;
    auto reader = svp::create(other, [](svp::Global<int>& n) { n.read(); }, number);
    while (svp::Pool::blocked_threads() == 0) svp::checkpoint();
    number.write(1);
    reader.sync();
  });
  all.sync().rethrow();
}
"""
    program, trace = tmp_path / "blocks", tmp_path / "trace.json"
    (tmp_path / "blocks.cpp").write_text(source)
    argv = ["c++", "-O1", tmp_path / "blocks.cpp", "-o", program, *svp.flags()]
    subprocess.run(argv, check=True)
    done = run("--stats", "--trace", trace, program)
    assert "reads_blocked=1 " in done.stderr and "tasks_delegated=2 " in done.stderr
    told = [event["name"] for event in spans(trace)]
    assert told.count("blocked read") == 1 and told.count("write that wakes") == 1
    assert told.count("delegate") == 1 and told.count("family") == 2


def test_processes_make_one_trace(events, tmp_path):
    trace = tmp_path / "trace.json"
    done = run("-n", 2, "--trace", trace, events)
    assert done.returncode == 0, done.stderr
    told = spans(trace)
    assert {event["pid"] for event in told} == {1, 2}
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]


def test_a_trace_tells_families_of_other_processes(remote, tmp_path):
    trace = tmp_path / "trace.json"
    done = run("-n", 2, "--trace", trace, remote, 1)
    assert done.returncode == 0, done.stderr
    told = spans(trace)
    names = [(event["pid"], event["name"]) for event in told]
    pids = {1, 2}
    (there,) = (pid for pid in pids if names.count((pid, "family")) == 5)
    (here,) = pids - {there}
    assert names.count((here, "family")) == 1 + 3
    assert names.count((here, "wait for a family")) >= 5
    places = [event["args"]["place"] for event in told if event["name"] == "delegate"]
    assert places.count("process 1") == 5
    ranges = [(event["args"]["start"], event["args"]["limit"]) for event in told
              if event["name"] == "family" and event["pid"] == here]  # fmt: skip
    assert ranges.count((0, 2)) == 3


def test_a_trace_that_cannot_be_written_is_told_at_once(events):
    done = run("--trace", "/nowhere/trace", events)
    assert done.returncode == 2
    why = "a new file in /nowhere: No such file or directory"
    assert done.stderr == f"tombolo: /nowhere/trace cannot be written: {why}\n"
    by_itself = run(events, TOMBOLO_SVP_TRACE="/nowhere/trace")
    assert by_itself.returncode == 1
    assert by_itself.stderr == (
        "tombolo: the trace /nowhere/trace cannot be written: open of a new file in its folder: No such file or "
        "directory; see TOMBOLO_SVP_TRACE and --trace\n"
    )


@pytest.mark.parametrize("processes", [1, 2])
def test_a_full_disk_is_told_and_leaves_the_trace_of_before(remote, events, full_disk, processes):
    words = [events] if processes == 1 else [remote, 1]
    done = run("-n", processes, "--trace", full_disk / "trace.json", *words)
    assert "cannot be written: " in done.stderr and "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr and (processes == 1 or done.returncode != 0)
    expect_the_trace_of_before(full_disk)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_program_that_is_killed_leaves_the_trace_of_before(compile_cpp, tmp_path, processes):
    if processes == 1:
        aborts = EVENTS.replace("all.sync().rethrow();", "all.sync().rethrow(); std::abort();")
        words = [compile_cpp("aborts", aborts)]
    else:
        killed = REMOTE.replace("return array[0]", "std::abort(); return array[0]")
        words = [compile_cpp("killed", killed), 1]
    (tmp_path / "trace.json").write_text("of before")
    done = run("-n", processes, "--trace", tmp_path / "trace.json", *words)
    assert done.returncode != 0
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]
    assert (tmp_path / "trace.json").read_text() == "of before"
    assert processes == 1 or "trace.json is not written: no p" in done.stderr


def test_a_fork_of_a_traced_program_writes_no_trace(compile_cpp, tmp_path):
    """It exits; the program itself is killed, so that no trace is whole."""
    forks = "if (fork() == 0) std::exit(0);\n  wait(nullptr);\n  std::abort();"
    text = "#include <sys/wait.h>\n#include <unistd.h>\n#include <cstdlib>\n" + EVENTS.replace("return 0;", forks)
    trace = tmp_path / "trace.json"
    trace.write_text("of before")
    assert run("--trace", trace, compile_cpp("forks", text)).returncode != 0
    assert trace.read_text() == "of before" and len(list(tmp_path.iterdir())) == 1


def test_a_program_that_closes_its_descriptors_keeps_its_files_and_its_trace(compile_cpp, tmp_path):
    """Neither's data is in the other, whatever numbers the program's files get."""
    opens = """
  closefrom(3);
  for (int i = 0; i < 20; ++i) {
    const int mine = open((argv[1] + std::to_string(i)).c_str(), O_CREAT | O_RDWR, 0600);
    if (mine != 3 + i || write(mine, "mine", 4) != 4) return 1;
  }
  auto after = svp::create({.limit = 3}, [](svp::Index) {});
  after.sync().rethrow();
  return 0;"""
    text = EVENTS.replace("int main()", "int main(int, char** argv)").replace("  return 0;", opens)
    text = "#include <fcntl.h>\n#include <unistd.h>\n#include <string>\n" + text
    program, own, trace = compile_cpp("closes", text), tmp_path / "own", tmp_path / "trace.json"
    own.mkdir()
    done = run(program, f"{own}/", TOMBOLO_SVP_TRACE=str(trace))
    assert done.returncode == 0 and done.stderr == ""
    assert {path.read_text() for path in own.iterdir()} == {"mine"} and len(list(own.iterdir())) == 20
    assert len(spans(trace)) > 10 and list(tmp_path.glob(".*")) == []
