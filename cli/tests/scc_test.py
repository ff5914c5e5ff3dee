# SPDX-License-Identifier: Apache-2.0
"""`tombolo scc` in front of a native program that does as it is told."""

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tombolo import paths, progress
from tombolo.scc import baseline, catalogue, native, pool, report, store
from tombolo.scc.native import Setting
from tombolo.scc.pool import Failure

FAKE = Path(__file__).parent / "fake_scc.py"
CLI = Path(__file__).parent.parent
CHIP = """
[clocks]
core_megahertz = { value = 533, source = "Christgau, section 3.5.1" }
"""


class Bench:
    """A folder with the fake program and the results that the command writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "lib").mkdir()
        shutil.copy(FAKE, folder / "lib" / "tombolo-scc")
        self.chip = folder / "scc.toml"
        self.chip.write_text(CHIP)
        self.env = {
            **os.environ,
            "TOMBOLO_CHIPS": str(folder),
            "PYTHONPATH": str(CLI),
            "FAKE_SCC": str(folder / "spec.json"),
            "TOMBOLO_LIB_DIR": str(folder / "lib"),
            "TOMBOLO_RESULTS": str(folder / "results"),
        }

    def offers(self, **experiments: list[dict]) -> None:
        made = {name.replace("_", "-"): points for name, points in experiments.items()}
        (self.folder / "spec.json").write_text(json.dumps(made))

    def start(self, *arguments: str) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-m", "tombolo", "scc", *arguments],
            env=self.env, cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, *arguments: str) -> subprocess.CompletedProcess:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def judged(self, name: str, quick: bool = True) -> str:
        """The verdict of a claim or a number, by all that was measured."""
        files = (self.folder / "results" / "scc").glob(f"{'quick' if quick else 'full'}-*.jsonl")
        made = report.gather(catalogue.load(), store.read(sorted(files)), Setting(quick))
        return baseline.judgements(made)[name].word

    def ran(self) -> list[str]:
        """The points that were run, in order of their start."""
        path = self.folder / "ran"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def value(series: str, x, number: float, unit: str = "us", **more) -> dict:
    return {"series": series, "x": x, "value": number, "unit": unit, **more}


def gats(targets: int, **more) -> dict:
    lines = [value("origin/scosco", targets, 18.0), value("origin/rckmpi", targets, 90.0)]
    return {"name": f"targets-{targets}", "lines": lines, **more}


def test_a_run_writes_values_beside_the_papers(bench: Bench) -> None:
    bench.offers(gats=[gats(1), gats(10)])
    ended = bench.run("run", "gats", "--json", "out.jsonl", "--jobs", "1")
    assert ended.returncode == 0, ended.stderr
    lines = [json.loads(line) for line in (bench.folder / "out.jsonl").read_text().splitlines()]
    told = next(line for line in lines if line["series"] == "origin/rckmpi" and line["x"] == 10)
    assert (told["experiment"], told["unit"], told["paper"]) == ("gats", "us", 89.2)
    assert told["deviation"] == pytest.approx(0.8 / 89.2)
    assert "paper" not in next(line for line in lines if line["x"] == 1)


def test_json_to_stdout_is_nothing_but_json(bench: Bench) -> None:
    bench.offers(gats=[gats(10)])
    bench.run("run", "gats")
    ended = bench.run("run", "gats", "--json", "-")
    assert len([json.loads(line) for line in ended.stdout.splitlines()]) == 2


def test_a_second_run_measures_nothing_again_unless_told(bench: Bench) -> None:
    bench.offers(gats=[gats(1), gats(10)])
    bench.run("run", "gats")
    assert "0 points measured, 2 were there" in bench.run("run", "gats").stdout
    assert len(bench.ran()) == 2
    bench.run("run", "gats", "--fresh")
    assert len(bench.ran()) == 4


def test_another_seed_chip_or_program_is_measured_anew(bench: Bench) -> None:
    bench.offers(gats=[gats(1)])
    big = bench.folder / "big.toml"
    big.write_text("[layout]\ncores = { value = 256, source = 'x' }\n")
    for more in ([], ["--seed", "2"], ["--quick"], ["--chip", "big.toml"]):
        bench.run("run", "gats", *more)
    assert len(bench.ran()) == 4
    big.write_text("[layout]\ncores = { value = 512, source = 'x' }\n")
    bench.run("run", "gats", "--chip", "big.toml")
    assert len(bench.ran()) == 5
    bench.chip.write_text(CHIP.replace("533", "800"))
    bench.run("run", "gats")
    assert len(bench.ran()) == 6
    bench.chip.write_text(CHIP)  # as at first, but the other chip of the folder has changed
    bench.run("run", "gats")
    assert len(bench.ran()) == 7
    bench.chip.write_text(CHIP.replace("section", "chapter"))
    bench.run("run", "gats")
    assert len(bench.ran()) == 7
    with (bench.folder / "lib" / "tombolo-scc").open("a") as program:
        program.write("# another build\n")
    bench.run("run", "gats")
    assert len(bench.ran()) == 8


def test_the_longest_points_go_first(bench: Bench) -> None:
    bench.offers(gats=[gats(1, cost=1), gats(10, cost=9), gats(31, cost=4)])
    bench.run("figures", "--jobs", "1")
    assert bench.ran() == ["gats targets-10", "gats targets-31", "gats targets-1"]


def test_long_experiments_are_run_where_they_are_named_alone(bench: Bench) -> None:
    lines = [value("mflops/scosco", "B", 569.0, unit="MFLOPS")]
    bench.offers(gats=[gats(10)], ft_class_b=[{"name": "scosco-B", "lines": lines}])
    assert bench.run("figures").returncode == 0
    assert bench.ran() == ["gats targets-10"]
    assert "long: run by name only" in " ".join(bench.run("list").stdout.split())
    bench.run("run", "ft-class-b")
    assert bench.ran() == ["gats targets-10", "ft-class-b scosco-B"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_finished_points_and_says_how_to_resume(bench: Bench, number: int) -> None:
    bench.offers(gats=[gats(1, cost=9), gats(10, does="hang")])
    process = bench.start("figures", "--jobs", "1")
    hangs = bench.folder / "hangs"
    until = time.monotonic() + 30
    while not (hangs.exists() and hangs.read_text()) and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 128 + number, err
    assert "interrupted: 1 finished points" in out
    assert "to go on: tombolo scc figures --jobs 1" in out
    with pytest.raises(ProcessLookupError):
        os.kill(int(hangs.read_text()), 0)

    bench.offers(gats=[gats(1), gats(10)])
    assert "1 points measured, 1 were there" in bench.run("figures", "--jobs", "1").stdout


@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("crash", "was killed by SIGSEGV"),
        ("garbage", "none of the protocol: assertion: what is this?"),
        ("odd", 'none of the protocol: {"progress": "half"}'),
        ("deadlock", "deadlock: 2 of 4 cores wait for ever:"),
        ("refuse", "the chip has too few cores"),
        ("fail", "no space left on device"),
        ("unfinished", "without saying that the point is done"),
    ],
)
def test_a_point_that_fails_is_named_and_the_others_go_on(bench: Bench, does: str, says: str) -> None:
    bench.offers(gats=[gats(1), gats(10, does=does, cost=9), gats(31)])
    ended = bench.run("run", "gats", "--jobs", "1")
    assert ended.returncode == 1
    assert "gats targets-10" in ended.stderr and says in ended.stderr
    assert "2 points measured" in ended.stdout
    assert "to try them again: tombolo scc run gats --jobs 1" in ended.stderr


def immediate(processes: int, **more) -> dict:
    line = value("mixed/rckmpi-immediate", processes, 40.0)
    return {"name": f"mixed-rckmpi-immediate-{processes}", "lines": [line], **more}


def deferred(processes: int) -> dict:
    return {"name": f"mixed-rckmpi-{processes}", "lines": [value("mixed/rckmpi", processes, 4.0)]}


@pytest.mark.parametrize(("does", "word"), [("deadlock", "held"), ("crash", "not measured")])
def test_a_deadlock_that_a_claim_is_about_is_a_finding(bench: Bench, does: str, word: str) -> None:
    """Of all its points: one that failed for another reason leaves the claim open."""
    bench.offers(passive_target=[deferred(4), deferred(8), immediate(2), immediate(4, does="deadlock"),
                                 immediate(8, does=does)])  # fmt: skip
    ended = bench.run("run", "passive-target", "--quick")
    assert ended.returncode == (0 if does == "deadlock" else 1), ended.stderr
    found = bench.judged("passive-target: immediate locks deadlock with the mix beyond two processes")
    assert found == word
    bench.offers(passive_target=[deferred(4), deferred(8), immediate(4), immediate(8)])
    bench.run("run", "passive-target", "--quick")  # they did not end, and so they run again
    assert bench.judged("passive-target: immediate locks deadlock with the mix beyond two processes") == "not held"


def test_the_interrupt_of_a_start_ends_what_was_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    started, popen = [], subprocess.Popen

    def interrupted(*arguments, **options):
        started.append(popen(*arguments, **options))
        os.kill(os.getpid(), signal.SIGINT)
        return started[-1]

    monkeypatch.setattr(pool.subprocess, "Popen", interrupted)
    with pytest.raises(pool.Interrupted):
        pooled(program).run([native.Point("e", "p", 1, 1)])
    assert [child.poll() for child in started] == [-signal.SIGTERM]


def test_a_listener_that_fails_tells_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\necho line\nexec sleep 60\n")
    program.chmod(0o755)

    def fails(_line: str) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr(native, "parse", fails)
    (failure,) = pooled(program).run([native.Point("e", "p", 1, 1)])
    assert "its output could not be read: out of order" in failure.why


def pooled(program: Path) -> pool.Pool:
    class Silent:
        started = progressed = ended = lambda *_: None

    return pool.Pool(program, Setting(), 1, 1 << 30, lambda *_: None, Silent())


def test_an_unknown_experiment_is_named_with_those_there_are(bench: Bench) -> None:
    bench.offers(gats=[gats(1)], dht=[])
    ended = bench.run("run", "gast")
    assert ended.returncode == 2
    assert ended.stderr == "tombolo: there is no experiment 'gast'; choose of gats, dht\n"


def test_a_wrong_parameter_file_is_reported_once(bench: Bench) -> None:
    bench.offers(gats=[gats(1)])
    (bench.folder / "bad.toml").write_text("coers = 48\n")
    ended = bench.run("run", "gats", "--chip", "bad.toml")
    assert ended.returncode == 2
    assert ended.stderr == "tombolo: bad.toml: [layout] cores is missing\n"
    missing = bench.run("report", "--chip", "none.toml")
    assert missing.stderr == "tombolo: none.toml: No such file or directory\n"


def test_points_that_memory_does_not_allow_are_left_out(bench: Bench) -> None:
    bench.offers(gats=[gats(1), gats(10, memory_bytes=1 << 60)])
    ended = bench.run("run", "gats")
    assert ended.returncode == 1
    assert "gats targets-10: needs 1073741824.0 GiB of memory" in ended.stderr
    assert bench.ran() == ["gats targets-1"]


def test_nothing_starts_where_memory_allows_no_point(bench: Bench) -> None:
    bench.offers(gats=[gats(10, memory_bytes=1 << 60)])
    ended = bench.run("run", "gats")
    assert ended.returncode == 2
    assert "needs 1073741824.0 GiB of memory" in ended.stderr and "larger machine" in ended.stderr


def test_without_the_program_in_the_named_folder_the_command_says_so(bench: Bench) -> None:
    (bench.folder / "lib" / "tombolo-scc").unlink()
    ended = bench.run("figures")
    assert ended.returncode == 2
    assert "tombolo-scc is not in lib: " in ended.stderr and "TOMBOLO_LIB_DIR" in ended.stderr
    listed = bench.run("list")
    assert listed.returncode == 0 and "passive-target" in listed.stdout


def test_the_list_of_the_program_must_be_of_the_protocol(bench: Bench) -> None:
    (bench.folder / "lib" / "tombolo-scc").write_text("#!/bin/sh\necho hello\n")
    ended = bench.run("run", "gats")
    assert ended.returncode == 2
    assert "`tombolo-scc list` printed a line that this command cannot read: hello" in ended.stderr


def test_list_shows_how_many_points_there_are(bench: Bench) -> None:
    bench.offers(gats=[gats(1), gats(10)], extra=[])
    ended = bench.run("list")
    assert re.search(r"gats .*│ +2 │ +1 │", ended.stdout)
    assert "extra!" in ended.stdout


def test_a_report_without_results_says_how_to_measure(bench: Bench) -> None:
    ended = bench.run("report", "--quick")
    assert ended.returncode == 2 and "tombolo scc figures --quick" in ended.stderr


def test_the_report_is_one_page_that_needs_nothing_beside_it(bench: Bench) -> None:
    bench.offers(gats=[gats(10)], gats_registers=[], dht=[])
    assert bench.run("run", "gats", "--quick").returncode == 0
    (bench.folder / "lib" / "tombolo-scc").unlink()
    ended = bench.run("report", "--quick")
    assert ended.returncode == 0, ended.stderr
    (folder,) = (bench.folder / "results/scc").glob("report-quick-seed1-scc")
    page = (folder / "index.html").read_text()
    addresses = re.findall(r"""(?:src|srcset|href)=['"]([^'"]*)""", page)
    assert addresses and all(each.startswith(("data:", "#")) for each in addresses)
    assert "@import" not in page and "url(" not in page and "<script" not in page
    lead = re.search(r"<p class='lead'>\d+ of \d+ independent claims of the papers hold here, and [^<]*met\.</p>", page)
    assert lead and lead.end() < page.index("<table") < page.index("<figure")
    assert "clocks.core_megahertz" in page and "section 3.5.5" in page and "held" in page
    for name in ("gats-against-messages.png", "gats-against-messages.svg", "gats-against-messages-narrow.svg"):
        assert (folder / name).stat().st_size > 1000


def test_a_figures_values_are_a_click_away(bench: Bench) -> None:
    bench.offers(gats=[gats(10)])
    bench.run("run", "gats")
    bench.run("report")
    (folder,) = (bench.folder / "results/scc").glob("report-full-seed1-scc")
    page = (folder / "index.html").read_text()
    for kind, type_ in (("csv", "text/csv"), ("json", "application/json")):
        (held,) = re.findall(rf"download='gats-against-messages.{kind}' href='data:{type_};base64,([^']*)'", page)
        text = base64.b64decode(held).decode()
        assert "origin/rckmpi" in text and "89.2" in text
        assert text == (folder / f"gats-against-messages.{kind}").read_text()


def test_the_report_names_deviations_and_claims(bench: Bench) -> None:
    slow = [value("origin/scosco", 10, 89.2), value("origin/rckmpi", 10, 89.2)]
    bench.offers(gats=[{"name": "p", "lines": slow}])
    bench.run("run", "gats")
    out = bench.run("report").stdout
    assert re.search(r"origin/scosco +│ 10 +│ +17.9 +│ +89.2 us │ +\+398.3%", out)
    assert re.search(r"3.75 to 6.25 +│ 1 +│ not held +│ fitted", out)
    assert "0 of 1 of their independent numbers are met" in out
    assert bench.run("report", "--strict").returncode == 1


def test_series_that_no_figure_has_are_left_out_and_named(bench: Bench) -> None:
    odd = [value("orgin", 10, 1.0), value("post", 1, 3000.0, unit="ns")]
    bench.offers(gats=[{"name": "p", "lines": odd}])
    bench.run("run", "gats")
    out = bench.run("report").stdout
    assert "gats: no figure has the series 'orgin'" in out
    assert "gats: post is measured in 'ns', its figure has 'us'" in out


def test_a_file_that_a_crash_tore_is_read_and_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOMBOLO_RESULTS", str(tmp_path))
    program = tmp_path / "program"
    program.write_text("x")
    kept = store.Store(program, Setting())
    point = native.Point("gats", "a", 1, 1)
    line = {"experiment": "gats", "point": "a", **value("post", 1, 3.0)}
    kept.keep(point, [line], {})
    with kept.path.open("a") as file:
        file.write(json.dumps({**line, "kind": "sample", "value": 99.0}) + "\n" + '{"kind": "sam')
    assert [each["value"] for each in kept.load().lines("gats")] == [3.0]
    kept.keep(point, [{**line, "value": 4.0}], {})
    assert [each["value"] for each in kept.load().lines("gats")] == [4.0]
    assert paths.results() == tmp_path


def test_bars_count_points_by_their_cost(capsys: pytest.CaptureFixture) -> None:
    long, short = native.Point("e", "long", 3, 1), native.Point("e", "short", 1, 1)
    with progress.Bars([long, short]) as bars:
        for point in (long, short):
            bars.started(point)
        bars.progressed(long, 0.5)
        bars.ended(short, Failure(short, "was killed by SIGSEGV"))
        assert [task.completed for task in bars.tasks] == [2.5, 0.5]
        bars.ended(long, None)
        assert [task.completed for task in bars.tasks] == [4]
    assert "e short: was killed by SIGSEGV" in capsys.readouterr().out


def test_values_of_several_chips_are_one_measurement_unless_a_chip_has_changed(bench):
    def lines(digest: str) -> list[dict]:
        mesh = {"chip": "mesh-16x8", "chip_digest": digest}
        return [value("origin/48", 4, 1.0), value("origin/256", 4, 2.0, **mesh)]

    bench.offers(gats=[{"name": "a", "lines": lines("1")}, {"name": "b", "lines": lines("1")}])
    told = bench.run("figures")
    assert "changed" not in told.stdout, told.stdout
    bench.offers(gats=[{"name": "a", "lines": lines("1")}, {"name": "b", "lines": lines("2")}])
    told = bench.run("figures", "--fresh")
    assert "changed parameters of mesh-16x8;" in " ".join(told.stdout.split()), told.stdout


def test_the_program_is_told_where_the_chips_are(monkeypatch, tmp_path):
    monkeypatch.delenv("TOMBOLO_CHIPS", raising=False)
    assert native.environment()["TOMBOLO_CHIPS"].endswith("backends/scc/chips")
    monkeypatch.setenv("TOMBOLO_CHIPS", str(tmp_path / "nowhere"))
    assert native.environment()["TOMBOLO_CHIPS"] == str(tmp_path / "nowhere")
