# SPDX-License-Identifier: Apache-2.0
"""`tombolo bench svp`: its rows, and how it judges."""

import json
from typing import ClassVar

import pytest
from tombolo import paths, svp_bench
from tombolo.app import made
from tombolo.errors import UserError
from tombolo.svp_bench import Row
from typer.testing import CliRunner

BENCHMARKS = {"fib", "skynet", "tree T1", "tree T3", "queens", "matrices", "loop", "chain", "counter"}


BENCHMARKS |= {f"loop, blocks of {block}" for block in (1, 16, 256, 4096)}
REMOTE = {"remote, polling", "remote, asleep", "remote, 1 MiB by address"}


def row(benchmark: str, workers: int = 1, **times: list[float]) -> Row:
    return Row(benchmark, workers, times, dict.fromkeys(times, 10))


def test_a_quick_run_measures_all_and_writes_lines(monkeypatch, tmp_path):
    monkeypatch.setenv("TOMBOLO_RESULTS", str(tmp_path / "results"))
    out = tmp_path / "lines.json"
    done = CliRunner().invoke(made(), ["bench", "svp", "--quick", "--workers", "2", "--json", str(out)])
    assert done.exit_code == 0, done.output
    told = [json.loads(line) for line in out.read_text().splitlines()]
    ours = {line["benchmark"] for line in told if line["runtime"] == "families"}
    assert ours == BENCHMARKS | REMOTE
    for line in told:
        assert line["workers"] == (1 if line["benchmark"] in REMOTE else 2)
        assert 0 < line["ns_per_task_low"] <= line["ns_per_task"] <= line["ns_per_task_high"]
        assert line["seconds"] > 0
    goals = {line["benchmark"]: line["goal_ns"] for line in told if "goal_ns" in line}
    assert (goals["remote, polling"], goals["remote, asleep"]) == (1000, 8000)
    (polling,) = (
        line["ns_per_task"] for line in told if (line["benchmark"], line["runtime"]) == ("remote, polling", "families")
    )
    assert goals["remote, 1 MiB by address"] == pytest.approx(polling + 2000)
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
        (row("remote, polling", families=[900.0], **{"a cache line": [100.0]}), ""),
        (row("remote, polling", families=[1100.0]), "1100 ns, above 1000"),
        (row("remote, asleep", families=[7900.0], **{"a futex": [5000.0]}), ""),
        (row("TCP, 8 bytes", families=[14.0], MPI=[10.0]), ""),
        (row("TCP, 8 bytes", families=[16.0], MPI=[10.0]), "another is 1.60 times as quick; 1.5 at most"),
    ],
)
def test_a_goal_that_is_not_reached_is_told(made, sentence):
    assert (made.verdict() == "") == (sentence == "")
    assert sentence in made.verdict()


class ChangeList(svp_bench.Contestant):
    """Lines of JSON without a program: each benchmark takes so many ns, by workers."""

    times: ClassVar = {1: {"tree T1": 100.0, "fib": 9.0}, 4: {"tree T1": 29.0, "fib": 3.0}}

    def run(self, workers, quick):
        return [
            {"benchmark": name, "runtime": "families", "workers": workers, "tasks": 2, "seconds": [2e-9 * ns]}
            for name, ns in self.times[workers].items()
        ]


def test_the_efficiency_of_several_workers_is_told_and_judged():
    rows = svp_bench.measure([ChangeList("families", [])], [1, 4], 1, False, lambda text: None)
    by_title = {made.title: made for made in rows}
    tree = by_title["tree T1, 4 workers"]
    assert tree.efficiency == pytest.approx(100 / (4 * 29))
    assert tree.verdict() == "tree T1, 4 workers: efficiency 0.86, below 0.9"
    assert svp_bench.results(tree)[0]["efficiency"] == tree.efficiency
    assert by_title["fib, 4 workers"].efficiency == pytest.approx(0.75)
    assert "efficiency" not in by_title["fib, 4 workers"].verdict()
    assert by_title["tree T1, 1 worker"].efficiency is None
    alone = svp_bench.measure([ChangeList("families", [])], [4], 1, False, lambda text: None)
    assert [made.efficiency for made in alone] == [None, None]


@pytest.mark.parametrize(
    "each, fault, remark",
    [
        (25.0, "efficiency 0.86, below 0.9", "efficiency 0.86; threads that share nothing have 1.00"),
        (27.0, "", "efficiency 0.86; threads that share nothing have 0.93"),
        (20.0, "efficiency 0.86, below 0.9", "efficiency 0.86; threads that share nothing have 1.25"),
    ],
)
def test_an_efficiency_is_judged_by_that_of_threads_that_share_nothing(each, fault, remark):
    tree = row("tree T1", 4, families=[29.0], **{"plain recursion": [100.0], "plain, each": [each]})
    tree.efficiency = 100 / (4 * 29)
    assert (tree.verdict() == "") == (fault == "")
    assert fault in tree.verdict() and remark in tree.remark()
    assert svp_bench.results(tree)[0]["bare_efficiency"] == pytest.approx(100 / (4 * each))
    tree.efficiency = 0.9
    assert tree.remark() == ""


def test_those_in_processes_of_their_own_run_once():
    told = []
    entries = [ChangeList("families", []), ChangeList("families in another process", [], workers=1)]
    svp_bench.measure(entries, [4, 1], 1, False, told.append)
    assert [text.split(": ") for text in told] == [
        ["round 1, 4 workers", "families"],
        ["round 1, 1 workers", "families in another process"],
        ["round 1, 1 workers", "families"],
    ]


def test_a_program_may_run_on_another_library_under_its_name():
    line = '{"benchmark": "fib", "runtime": "%s", "library": "%s"}'
    command = ["sh", "-c", f"printf '{line}\\n' 'OpenMP, a' \"$LIBRARY\" OpenMPs \"$LIBRARY\""]
    entry = svp_bench.Contestant("c", command, environment={"LIBRARY": "l"}, names={"OpenMP": "LLVM"})
    told = entry.run(1, quick=True)
    assert [(line["runtime"], line["library"]) for line in told] == [("LLVM, a", "l"), ("OpenMPs", "l")]
    entry = svp_bench.Contestant("c", ["sh", "-c", "echo ld.so: x cannot be preloaded: ignored. >&2"])
    with pytest.raises(UserError, match="c: ld.so: x cannot be preloaded"):
        entry.run(1, quick=True)
    made = svp_bench._llvm_openmp(["bench"], "libomp.so.5")
    assert made.command == ["bench", "--runtime", "OpenMP"]
    assert made.environment == {"LD_PRELOAD": "libomp.so.5"}
    assert made.names == {"OpenMP": "OpenMP of LLVM"}


def test_a_run_time_that_is_not_here_is_named(monkeypatch):
    monkeypatch.setattr(svp_bench.libraries, "need_program", lambda name: paths.PACKAGE / name)
    monkeypatch.setattr(svp_bench.shutil, "which", lambda name: None)
    monkeypatch.setattr(svp_bench.ctypes.util, "find_library", lambda name: None)
    found, absent = svp_bench.contestants()
    assert [entry.name for entry in found] == ["families", "families in another process"]
    assert absent == [
        "OpenMP of LLVM: no libomp here (Debian: libomp-dev)",
        "Go: no go here (Debian: golang-go)",
        "Rayon: no cargo here (Debian: cargo)",
    ]
    told = svp_bench.absent_of([row("fib", families=[1.0])])
    assert "oneTBB: not measured (Debian: libtbb-dev, before the build)" in told
