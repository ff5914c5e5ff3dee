# SPDX-License-Identifier: Apache-2.0
"""The utilisation of the chip's parts: read, summed up, drawn and kept."""

import json
import os
import re
from pathlib import Path

import pytest
from matplotlib.colors import to_rgba
from scc_test import Bench, bench, gats, value
from tombolo.errors import UserError
from tombolo.scc import chip_picture, page_statistics, statistics

__all__ = ["bench"]  # a fixture


def part(kind: str, x: int, y: int, number: int, utilisation: float, wait: float, served: int = 10) -> dict:
    return {"part": kind, "x": x, "y": y, "number": number, "served": served,
            "utilisation": utilisation, "mean_wait_ns": wait}  # fmt: skip


PARTS = [
    part("controller", 0, 0, 0, 0.5, 40.0),
    part("bank", 0, 0, 31, 0.75, 20.0, served=30),
    part("bank", 0, 0, 2, 0.25, 60.0, served=10),
    part("link", 0, 0, 0, 0.1, 1.0),
    part("link", 1, 0, 1, 0.1, 1.0),
    part("interface", 1, 0, 0, 0.2, 5.0),
    part("register", 1, 0, 1, 0.15, 7.0),
    part("buffer", 1, 0, 0, 0.3, 0.0),
]
CORE = {"core": 0, "x": 0, "y": 0, "loads_that_left": 5, "stores_that_left": 4, "tests": 4,
        "tests_failed": 1, "reading": 0.5, "writing": 0.25, "testing": 0.125}  # fmt: skip
LINE = {"chip": "scc", "columns": 2, "rows": 1, "end_us": 12.5, "parts": PARTS, "cores": [CORE]}


def run(**more) -> statistics.Run:
    return statistics.read({"statistics": "p", "experiment": "e", **LINE, **more})


def test_the_busiest_of_each_kind_is_named_with_its_waits() -> None:
    rows = statistics.summary(run())
    assert rows[0] == ("controller at (0, 0)", "50%", "40 ns", "40 ns")
    assert rows[1] == ("bank 31 at (0, 0)", "75%", "20 ns", "30 ns")
    assert rows[2][0] == "link east at (0, 0)" and rows[4][0] == "register 1 at (1, 0)"
    assert len(rows) == len(statistics.KINDS)


def test_the_rest_of_the_cores_time_is_their_own() -> None:
    shares = dict(statistics.of_cores(run()))
    assert shares["waiting for loads"] == "50%" and shares["work within the core, and pauses"] == "12%"
    assert shares["registers that were taken when read"] == "25% of 4"
    assert statistics.of_cores(run(cores=[])) == []


def test_the_use_is_that_of_the_busiest_part_and_of_all_cores() -> None:
    found = statistics.use(run(cores=[CORE, {**CORE, "reading": 0.25, "loads_that_left": 7}]))
    assert found["bank"] == {"utilisation": 0.75, "mean_wait_ns": 20.0}
    assert found["register"] == {"utilisation": 0.15, "mean_wait_ns": 7.0}
    assert found["cores"]["reading"] == 0.375 and found["cores"]["loads_that_left"] == 12
    assert set(found) == {*statistics.KINDS, "cores"}
    assert "cores" not in statistics.use(run(cores=[])) and statistics.use(run(parts=[], cores=[])) == {}


@pytest.mark.parametrize("line", [{"parts": [{"part": "bank"}]}, {"cores": None}])
def test_lines_that_are_none_are_refused(line: dict) -> None:
    with pytest.raises(UserError, match="cannot read"):
        run(**line)


def test_the_picture_has_every_part_once_and_is_the_same_again() -> None:
    drawn = chip_picture.picture(run())
    (axes, _) = drawn.axes
    boxes = [p for p in axes.patches if type(p).__name__ == "Rectangle"]
    assert len(boxes) == 2 + 2 + 1 + 1 + 1  # tiles, banks, controller, interface, buffer
    arrows = [t for t in axes.texts if getattr(t, "arrow_patch", None) is not None]
    assert len(arrows) == 2
    assert {"20%\n5", "50%, 40"} <= {t.get_text() for t in axes.texts}
    colors = {to_rgba(p.get_facecolor()) for p in boxes}
    assert len({color for color in colors if color[3] > 0}) == 5  # by utilisation: five values
    chip_picture.pyplot.close(drawn)
    assert chip_picture.svg(run()) == chip_picture.svg(run())


def test_the_command_keeps_json_and_picture_and_the_report_shows_them(bench: Bench) -> None:
    short = {**LINE, "end_us": 1.0, "cores": []}
    bench.offers(gats=[gats(10, statistics=[short, LINE]), gats(1)])
    told = bench.run("statistics", "gats", "targets-10", "--quick")
    assert told.returncode == 0, told.stderr
    assert "gats targets-10: 12.5 us" in told.stdout and "bank 31 at (0, 0)" in told.stdout
    (file,) = (bench.folder / "results" / "scc").glob("statistics-*/gats-targets-10.json")
    assert [each["end_us"] for each in json.loads(file.read_text())] == [1.0, 12.5]
    assert b"<svg" in file.with_suffix(".svg").read_bytes()
    bench.run("run", "gats", "--quick")
    bench.run("report", "--quick")
    (index,) = (bench.folder / "results" / "scc").glob("report-*/index.html")
    page = index.read_text()
    assert "id='statistics-gats-targets-10'" in page and "download='gats-targets-10.json'" in page
    assert re.search(r"controller at \(0, 0\)", page)

    file.write_text(file.read_text()[:40])
    told = bench.run("report", "--quick")
    assert told.returncode == 0, told.stderr
    assert "gats-targets-10.json cannot be read" in index.read_text()


def test_points_that_an_experiment_names_tell_their_statistics_as_they_are_measured(bench: Bench) -> None:
    """And those that were measured without, by another version of the file, are measured again."""
    name = "gats-registers: ours: with 47 targets the polls keep the busiest bank busy all the time"
    loops = [value("acquisition-loops", 47, 2.0, unit="")]
    named = {"name": "targets-47", "lines": loops, "statistics": [LINE]}
    bench.offers(gats_registers=[named, {**named, "name": "targets-1", "lines": []}])
    bench.run("run", "gats-registers", "--quick")
    (file,) = (bench.folder / "results" / "scc").glob("statistics-*/*.json")
    assert file.name == "gats-registers-targets-47.json"
    assert bench.judged(name) == "not held"  # the bank of LINE is busy for 75 %
    bench.run("report", "--quick")
    (index,) = (bench.folder / "results" / "scc").glob("report-*/index.html")
    assert "id='statistics-gats-registers-targets-47'" in index.read_text()

    (kept,) = (bench.folder / "results" / "scc").glob("quick-*.jsonl")
    records = [json.loads(line) for line in kept.read_text().splitlines()]
    for record in records:
        record.pop("use", None)
    kept.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert bench.judged(name) == "not measured"
    assert "1 points measured, 1 were there" in bench.run("run", "gats-registers", "--quick").stdout
    assert bench.judged(name) == "not held"


def test_those_of_another_chip_or_build_are_not_shown(bench: Bench) -> None:
    bench.offers(gats=[gats(10, statistics=[LINE])])
    bench.run("statistics", "gats", "targets-10", "--quick")
    bench.run("run", "gats", "--quick")
    shown = "id='statistics-gats-targets-10'"
    (index,) = [bench.folder / "results/scc/report-quick-seed1-scc/index.html"]
    for changed in (bench.chip, bench.folder / "lib" / "tombolo-scc"):
        bench.run("report", "--quick")
        assert shown in index.read_text()
        text = changed.read_text()
        changed.write_text(text.replace("533", "800") + "# changed\n")
        bench.run("run", "gats", "--quick", "--fresh")
        bench.run("report", "--quick")
        assert shown not in index.read_text(), changed
        changed.write_text(text)
        bench.run("run", "gats", "--quick", "--fresh")


def test_files_that_an_interrupt_left_are_none_or_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    statistics.save([run()], tmp_path)
    whole = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(whole) == ["e-p.json", "e-p.svg"]
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        statistics.save([run(end_us=1.0)], tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == whole


@pytest.mark.parametrize("text", ["", "[", "[]", "{}", "[1]", '[{"point": "p"}]'])
def test_a_file_that_holds_no_statistics_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("TOMBOLO_RESULTS", str(tmp_path))
    folder = statistics.folder(statistics.Setting(), "b")
    statistics.save([run()], folder)
    ((found, file),) = statistics.saved(statistics.Setting(), {"b", "c"})
    assert found == run()
    file.write_text(text)
    assert statistics.saved(statistics.Setting(), {"b"}) == [(None, file)]
    statistics.save([run()], folder)
    file.with_suffix(".svg").unlink()
    assert statistics.saved(statistics.Setting(), {"b"}) == [(None, file)]


def test_of_several_builds_the_latest_of_a_point_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOMBOLO_RESULTS", str(tmp_path))
    at = {}
    for seconds, build in ((2, "a"), (3, "b"), (1, "c")):
        at[build] = statistics.save([run(end_us=seconds)], statistics.folder(statistics.Setting(), build))
        os.utime(at[build].with_name(f"{at[build].name}.json"), (seconds, seconds))
    statistics.save([run(statistics="q")], statistics.folder(statistics.Setting(), "c"))
    shown = [(kept.point, kept.end_us) for kept, _ in statistics.saved(statistics.Setting(), set(at)) if kept]
    assert shown == [("p", 3), ("q", 12.5)]


def test_a_point_without_simulations_is_told(bench: Bench) -> None:
    bench.offers(gats=[gats(1)])
    told = bench.run("statistics", "gats", "targets-1")
    assert told.returncode == 2 and "simulates nothing" in told.stderr


def test_a_page_without_statistics_says_how_to_make_them() -> None:
    assert "scc statistics" in page_statistics.render([])
    folder = statistics.folder(statistics.Setting(), "b")
    assert folder.name.startswith("statistics-full-seed1-scc.") and folder.name.endswith("-b")
