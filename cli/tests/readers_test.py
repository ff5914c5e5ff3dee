# SPDX-License-Identifier: Apache-2.0
"""A kept file in which something is null, or of another kind: each reader tells it in a sentence, or does
without the file. Nothing in it ends a command by an exception."""

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from scc_statistics_test import LINE
from scc_statistics_test import run as statistics_run
from tombolo import curves, dsm_atomics, paths
from tombolo.commands import bench_curves
from tombolo.errors import UserError
from tombolo.scc import baseline, catalogue, page_statistics, report, sensitivity_table, statistics, store
from tombolo.scc.native import Setting
from tombolo.suite import judge

OTHERS = (None, "text", [], {}, True, -1, 0, 1.5, float("nan"))


def spoiled(whole) -> Iterator:
    """Copies of a JSON value, in each of which one part is something else, or is not there."""
    for place in _places(whole):
        for other in OTHERS:
            changed = copy.deepcopy(whole)
            _at(changed, place[:-1])[place[-1]] = other
            yield changed
        if isinstance(_at(whole, place[:-1]), dict):
            changed = copy.deepcopy(whole)
            del _at(changed, place[:-1])[place[-1]]
            yield changed


def _places(value, here: tuple = ()) -> Iterator[tuple]:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield (*here, key)
        yield from _places(part, (*here, key))


def _at(value, place: tuple):
    for key in place:
        value = value[key]
    return value


def sentences(file: Path, whole: list, read: Callable[[], object], lines: bool = True) -> list[str]:
    """The messages about the spoiled files; a file that can be read after all tells nothing."""
    found = []
    for changed in spoiled(whole):
        text = "".join(json.dumps(each) + "\n" for each in changed) if lines else json.dumps(changed)
        file.write_text(text)
        try:
            read()
        except UserError as mistake:
            assert file.name in str(mistake), mistake
            found.append(str(mistake))
    return found


def test_records_of_curves(tmp_path):
    times = {"flavor": "allocate", "median": 1.5, "q1": 1, "q3": 2, "samples": 9, "mean": 2, "per_s": 3}
    whole = [
        {"kind": "context", "ranks": [8, 2], "cores": 8},
        {"kind": "sample", "contestant": "MPICH 5", "round": 1, "row": "fence", "ranks": 2, **times},
        {"kind": "sample", "contestant": "Tombolo coherent (mpich)", "round": 1, "row": "fence", "ranks": 8, **times},
        {"kind": "broken", "contestant": "MPICH 5", "row": "put_8_flush"},
    ]
    file = tmp_path / "kept.jsonl"

    def read() -> None:
        campaigns, names, entries, _ = curves.kept(file)
        bench_curves.tell(campaigns, names, entries)

    told = sentences(file, whole, read)
    assert all("holds no records of `bench curves`" in each for each in told)
    for field in ("median", "q1", "q3", "mean", "cores"):
        assert any(f"{field} is null, which is no number" in each for each in told)


def test_a_line_of_curves_that_a_full_disk_has_cut_off_is_left_out(tmp_path):
    file = tmp_path / "kept.jsonl"
    whole = [{"kind": "context", "ranks": [2], "cores": 8}, {"kind": "broken", "contestant": "a", "row": "fence"}]
    file.write_text("".join(json.dumps(each) + "\n" for each in whole) + '{"kind": "sam')
    assert curves.kept(file)[1] == ["fence"]


def test_records_that_end_as_a_picture_are_not_drawn_over(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "results", lambda: tmp_path)
    kept = tmp_path / "kept.svg"
    kept.write_text("records")
    with pytest.raises(UserError, match="kept.svg ends as a picture that is drawn of its records"):
        bench_curves.bench_curves(kept=kept)
    assert kept.read_text() == "records"


def test_measured_values(tmp_path, monkeypatch):
    monkeypatch.setenv("TOMBOLO_RESULTS", str(tmp_path))
    whole_set, setting = catalogue.load(), Setting(quick=True)
    known = replace(whole_set, experiments={"gats": whole_set.experiments["gats"]})
    monkeypatch.setattr(statistics, "saved", lambda *_: [])  # this and the table take most of the time
    monkeypatch.setattr(sensitivity_table, "kept", lambda _: None)
    about = {"experiment": "gats", "point": "targets-10"}
    value = {"kind": "sample", **about, "unit": "us", "chip": "scc", "chip_digest": "d", "note": "n"}
    use = {"cores": {"reading": 0.5}, "bank": {"utilisation": 0.5, "mean_wait_ns": 3.0}}
    done = {"kind": "done", **about, "lines": 2, "time": "2026-01-01", "commit": "c", "use": use}
    whole = [
        {"kind": "context"},
        {**value, "series": "origin/scosco", "x": 10, "value": 18.0, "quartile1": 17.0, "quartile3": 19.0},
        {**value, "series": "origin/rckmpi", "x": 10, "value": 90.0},
        done,
        {**done, "time": "2026-01-02", "lines": 0},
        {"kind": "deadlock", **about, "time": "2025-01-01"},
    ]
    file = tmp_path / "quick-seed1-scc.d-b.jsonl"

    def read() -> None:
        results = store.read([file])
        report.gather(known, results, setting)
        report.enriched(known, "gats", results.lines("gats"))

    told = sentences(file, whole, read)
    assert all("a record that this command cannot read: " in each for each in told)
    assert any("line 2: " in each and "value is null, which is no number" in each for each in told)
    assert any("line 4: " in each and "time is null, which is no text" in each for each in told)
    assert any("it has no 'unit'" in each for each in told)


def test_statistics(tmp_path, monkeypatch):
    monkeypatch.setenv("TOMBOLO_RESULTS", str(tmp_path))
    folder = statistics.folder(Setting(), "b")
    monkeypatch.setattr(statistics, "folder", lambda *_: folder)  # it reads all chips each time
    statistics.save([statistics_run()], folder)
    (file,) = folder.glob("*.json")
    whole = json.loads(file.read_text())

    def read() -> None:
        ((found, _),) = statistics.saved(Setting(), {"b"})
        if found:
            statistics.summary(found), statistics.of_cores(found), statistics.use(found)
            page_statistics.render([(found, file)])

    assert sentences(file, whole, read, lines=False) == []
    file.write_text(json.dumps([{**whole[0], "end_us": None}]))
    assert statistics.saved(Setting(), {"b"}) == [(None, file)]
    with pytest.raises(UserError, match="served is null, which is no number"):
        statistics.read({"statistics": "p", "experiment": "e", **LINE, "parts": [{"part": "bank", "served": None}]})


def test_verdicts_in_the_source_tree(tmp_path):
    file = tmp_path / "quick.json"
    whole = {"e: a": ["held", "5"], "e: b": ["not held", "7"]}
    now = {"e: a": baseline.Judgement("not held", "7")}
    assert sentences(file, [whole], lambda: baseline.changes(baseline.load(file), now, ["e"]), lines=True)
    file.write_text('{"e: a": ["held", null]}')
    with pytest.raises(UserError, match="quick.json: a verdict is no text"):
        baseline.load(file)


def test_the_table_of_variants(tmp_path):
    file = tmp_path / "sensitivity-quick.json"
    flips = [["e: a", "held", "5", "not held", "7"]]
    outcome = {"variant": "seed 2", "change": "seed 1 to 2", "points": 4, "judged": 3, "flips": flips}
    whole = [{"points": "quick", "chip": "d", "outcomes": [outcome]}]
    told = sentences(file, whole, lambda: sensitivity_table.load(file))
    assert any("points is null, which is no number" in each for each in told)
    assert any("a name, a change or a verdict is no text" in each for each in told)


@pytest.mark.parametrize("text", ["", "[", "null", "[1]", '{"a": null, "b": "x"}'])
def test_a_damaged_memory_of_the_stock_mpi_asks_it_again(tmp_path, text):
    (tmp_path / "stock.json").write_text(text)
    assert judge.StockVerdicts(tmp_path).passes == {}
    (tmp_path / "stock.json").write_text('{"a": true, "b": null}')
    assert judge.StockVerdicts(tmp_path).passes == {"a": True}


def test_a_damaged_memory_of_atomic_instructions_looks_again(tmp_path, monkeypatch):
    monkeypatch.setenv("TOMBOLO_HOME", str(tmp_path))
    module = Path("/bin/true")
    found = [dsm_atomics.Place(str(module), "f", 16)]
    monkeypatch.setattr(dsm_atomics, "_look", lambda _: iter(found))
    assert dsm_atomics.places_in(module) == found
    (file,) = (tmp_path / "build/dsm-atomics").iterdir()
    whole = json.loads(file.read_text())

    def read() -> None:
        for place in dsm_atomics.places_in(module):
            str(place)

    assert sentences(file, whole, read, lines=False) == []
    file.write_text(json.dumps({**whole, "places": [{**whole["places"][0], "address": None}]}))
    assert dsm_atomics.places_in(module) == found
