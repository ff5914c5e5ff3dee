# SPDX-License-Identifier: Apache-2.0
"""The verdicts in the source tree: the changes that are told, and the agreement of the files."""

from pathlib import Path

import pytest
from scc_test import Bench, bench, gats, value
from tombolo.errors import UserError
from tombolo.scc import baseline, catalogue, kept_values
from tombolo.scc.baseline import Judgement
from tombolo.scc.catalogue import FULL
from tombolo.scc.native import Setting
from tombolo.scc.verdicts import NO_MEASUREMENT, NOT_JUDGED

__all__ = ["bench"]  # a fixture

HELD, FAILED = Judgement("held", "5.2"), Judgement("not held", "7")


def test_changes_of_verdicts_are_told_and_those_of_values_are_not() -> None:
    before = {"e: a": HELD, "e: b": HELD, "e: gone": HELD}
    now = {"e: a": Judgement("held", "5.3"), "e: b": FAILED, "e: new": HELD}
    assert baseline.changes(before, now, ["e"]) == [
        "e: b was held (5.2) and is not held (7)", "e: new is new: held (5.2)", "e: gone is gone",
    ]  # fmt: skip
    assert baseline.changes(before, before, ["e"]) == []


def test_a_verdict_that_is_none_is_told_in_words() -> None:
    before = {"e: a": HELD, "e: b": Judgement(NOT_JUDGED, "7")}
    now = {"e: a": Judgement(NOT_JUDGED, "5.2"), "e: b": Judgement(NO_MEASUREMENT, NO_MEASUREMENT)}
    assert baseline.changes(before, now, ["e"]) == [
        "e: a was held (5.2) and is not judged, as it needs the full set (5.2)",
        "e: b was not judged, as it needs the full set (7) and is not measured",
    ]


def test_experiments_that_were_not_measured_stay_as_they_are() -> None:
    before = {"e: a": HELD, "e: gone": HELD, "f: c": HELD, "old: d": HELD}
    now = {"e: a": FAILED}
    told = ["e: a was held (5.2) and is not held (7)", "e: gone is gone"]
    assert baseline.changes(before, now, ["e", "f", "old"]) == told
    assert baseline.unmeasured(before, now, ["e", "f", "new"]) == ["f"]
    merged = baseline.merged(before, now, ["e", "f"])
    assert list(merged.items()) == [("e: a", FAILED), ("f: c", HELD)]


def test_an_experiment_that_has_no_points_any_more_is_gone() -> None:
    before, now = {"e: a": HELD, "old: d": HELD, "old: x": FAILED}, {"e: a": HELD}
    assert baseline.changes(before, now, ["e"]) == ["old is gone, with 2 verdicts: it has no points"]
    assert baseline.unmeasured(before, now, ["e"]) == []


def test_an_experiment_without_a_verdict_yet_is_named_and_no_change() -> None:
    before, now = {"e: a": HELD}, {"e: a": HELD, "f: b": FAILED, "f: c": HELD}
    assert baseline.without(before, now) == ["f"]
    assert baseline.changes(before, now, ["e", "f"]) == []


def test_a_file_gives_its_judgements_again_a_line_for_each(tmp_path: Path) -> None:
    found = {'e: a "quoted"': HELD, "e: b": FAILED}
    file = tmp_path / "new" / "full.json"
    baseline.save(found, file)
    assert baseline.load(file) == found
    assert len(file.read_text().splitlines()) == len(found) + 2


@pytest.mark.parametrize("text", ["", "[1]", '{"a": "held"}', '{"a": ["held"]}'])
def test_a_file_that_is_none_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "full.json"
    with pytest.raises(UserError, match="full.json"):
        baseline.load(file)
    file.write_text(text)
    with pytest.raises(UserError, match="full.json"):
        baseline.load(file)


VALUES = {("e", "a", "1"): ("us", "1.5", "", ""), ("e", "a", "2"): ("us", "2.5", "2.0", "3.0"),
          ("f", "b, c", "S"): ("", "1", "", "")}  # fmt: skip


def test_a_file_of_values_gives_them_again_a_line_for_each(tmp_path: Path) -> None:
    file = kept_values.path(tmp_path / "new" / "full.json")
    kept_values.save(VALUES, file)
    assert file.name == "full-values.csv" and len(file.read_text().splitlines()) == 1 + len(VALUES)
    assert kept_values.load(file) == VALUES
    for text in ("", "a,b\n", ",".join(kept_values.COLUMNS) + "\ne,a\n"):
        file.write_text(text)
        with pytest.raises(UserError, match="full-values.csv"):
            kept_values.load(file)


def test_values_that_are_others_are_told_and_those_of_other_experiments_kept() -> None:
    now = {("e", "a", "1"): ("us", "1.6", "", ""), ("e", "a", "3"): ("us", "3.5", "", "")}
    changed = [("e", "a", "1"), ("e", "a", "2"), ("e", "a", "3")]  # another, gone, new
    assert kept_values.others(VALUES, now) == changed
    assert kept_values.others(VALUES, VALUES) == []
    merged = kept_values.merged(VALUES, now, ["f", "e"])
    assert list(merged) == [("f", "b, c", "S"), ("e", "a", "1"), ("e", "a", "3")]
    assert list(kept_values.merged(VALUES, now, ["e"])) == list(now)


def test_the_values_in_the_source_tree_are_those_of_the_verdicts() -> None:
    """Of the full set: each number of a paper has ours there, and it is the one that was judged."""
    file = baseline.path(Setting())
    judged, values = baseline.load(file), kept_values.load(kept_values.path(file))
    places = 0
    for made in catalogue.load().experiments.values():
        for n in (n for n in made.numbers if f"{made.name}: {n.series} at {n.x}" in judged):
            x = next(x for e, s, x in values if (e, s) == (made.name, n.series) and catalogue.same(_x(x), n.x))
            cells = values[made.name, n.series, x]
            assert judged[f"{made.name}: {n.series} at {n.x}"].found == f"{float(cells[1]):.4g}"
            places += 1
    assert places >= 300


def _x(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def test_there_is_one_for_the_default_setting_only() -> None:
    assert baseline.path(Setting(quick=True)).name == "quick.json"
    for other in (Setting(seed=2), Setting(chip="scc-all")):
        with pytest.raises(UserError, match="default chip and seed"):
            baseline.path(other)


@pytest.mark.parametrize("quick", [False, True])
def test_the_files_have_a_verdict_for_each_claim_and_number(quick: bool) -> None:
    """Of today: a claim that was added without a run is noticed before one."""
    known = baseline.load(baseline.path(Setting(quick)))
    names = set()
    kept = {name.split(": ")[0] for name in known}
    assert {"gats", "passive-target", "dht", "ft", "automaton", "calibration"} <= kept
    for made in (e for e in catalogue.load().experiments.values() if e.name in kept):
        names |= {f"{made.name}: {claim.name}" for claim in made.claims}
        for n in made.numbers:
            parts = ("", *(f", quartile {q}" for q in (1, 3) if getattr(n, f"quartile{q}") is not None))
            names |= {f"{made.name}: {n.series} at {n.x}{part}" for part in parts}
    assert set(known) == names, "tombolo scc baseline --write"


def judged_by_claims_and_numbers() -> list[tuple[str, bool]]:
    """The name in the files, and whether the full set is needed."""
    found = []
    for made in catalogue.load().experiments.values():
        found += [(f"{made.name}: {c.name}", c.needs == FULL) for c in made.claims]
        for n in made.numbers:
            parts = ("", *(f", quartile {q}" for q in (1, 3) if getattr(n, f"quartile{q}") is not None))
            found += [(f"{made.name}: {n.series} at {n.x}{part}", n.needs == FULL) for part in parts]
    return found


def test_the_quick_set_judges_as_the_full_one_or_not_at_all() -> None:
    full, quick = (baseline.load(baseline.path(Setting(q))) for q in (False, True))
    none = Judgement(NO_MEASUREMENT, "")
    gaps = []
    for name, needs in judged_by_claims_and_numbers():
        word, whole = quick.get(name, none).word, full.get(name, none).word
        if needs:
            assert word in (NOT_JUDGED, NO_MEASUREMENT), name
        elif NO_MEASUREMENT not in (word, whole):
            assert word == whole, f"{name} needs the full set"
        if whole == NO_MEASUREMENT and word != NO_MEASUREMENT:
            gaps.append(name)
    assert gaps == []  # or the quick set's would be compared with nothing


def test_a_claim_that_fails_and_a_number_that_is_not_met_have_a_reason() -> None:
    """In either set: some are measured in one only."""
    known = catalogue.load()
    full, quick = (baseline.load(baseline.path(Setting(q))) for q in (False, True))
    needing = {name for name, needs in judged_by_claims_and_numbers() if needs}
    found = [*full.items(), *((name, j) for name, j in quick.items() if name not in needing)]
    bad = {name.rsplit(", quartile", 1)[0] for name, j in found if j.word in ("not held", "not met")}
    reasons = {}
    for made in known.experiments.values():
        reasons |= {f"{made.name}: {c.name}": known.reason_of_claim(made.name, c.name) for c in made.claims}
        reasons |= {f"{made.name}: {n.series} at {n.x}": known.reason(made.name, n.series, n.x) for n in made.numbers}
    assert len(bad) > 40
    assert [name for name in sorted(bad) if not reasons[name]] == []


def test_the_command_fails_when_a_verdict_differs(bench: Bench) -> None:
    bench.offers(gats=[gats(10)])
    nothing = bench.run("baseline", "--quick")
    assert nothing.returncode == 2 and "holds nothing of this setting" in nothing.stderr
    bench.run("run", "gats", "--quick")
    told = bench.run("baseline", "--quick")
    assert told.returncode == 2
    assert "was held" in told.stdout and "and is not measured" in told.stdout
    assert "verdicts differ from" in told.stderr and "baseline --quick --write" in told.stderr


def another_build(bench: Bench) -> None:
    with (bench.folder / "lib" / "tombolo-scc").open("a") as program:
        program.write("# another build\n")


@pytest.mark.parametrize("command", ["baseline", "sensitivity"])
def test_points_of_another_build_are_refused_and_counted(bench: Bench, command: str) -> None:
    bench.offers(gats=[gats(1), gats(10)])
    bench.run("run", "gats", "--quick")
    another_build(bench)
    bench.offers(gats=[gats(1), gats(10), gats(31)])  # one that nothing has measured is none of them
    told = bench.run(command, "--quick")
    assert told.returncode == 2
    assert "2 points are of other builds of tombolo-scc: 2 of gats; to measure" in told.stderr
    bench.offers(gats=[gats(31)])  # those of before are points no more
    bench.run("run", "gats", "--quick")
    assert "other builds" not in bench.run("baseline", "--quick").stderr


def test_points_of_another_build_are_taken_where_they_are_wanted(bench: Bench) -> None:
    """The points of this build go before those of others."""
    old = {"name": "targets-10", "lines": [value("origin/scosco", 10, 50.0)]}
    bench.offers(gats=[old, {"name": "rckmpi-10", "lines": [value("origin/rckmpi", 10, 90.0)]}])
    bench.run("run", "gats", "--quick")
    another_build(bench)
    bench.offers(gats=[gats(10)])
    bench.run("run", "gats", "--quick")
    bench.offers(gats=[gats(10), {"name": "rckmpi-10"}])
    told = bench.run("baseline", "--quick", "--other-builds")
    text = " ".join(told.stdout.split())
    assert "1 point is of other builds of tombolo-scc: 1 of gats" in text
    assert "gats: origin/scosco at 10 was met" not in text  # 18.0, and not 50
    assert "the values are of 2 builds of the program" in " ".join(bench.run("report", "--quick").stdout.split())


def test_a_deadlock_of_another_build_is_one_of_its_points(bench: Bench) -> None:
    name = "passive-target: immediate locks deadlock with the mix beyond two processes"
    locks = [value("mixed/rckmpi", 4, 3.0)]
    points = [{"name": "mixed-rckmpi-immediate-4", "does": "deadlock"}, {"name": "mixed-rckmpi-4", "lines": locks}]
    bench.offers(passive_target=points)
    bench.run("run", "passive-target", "--quick")
    another_build(bench)
    refused = bench.run("baseline", "--quick")
    assert "2 points are of other builds of tombolo-scc: 2 of passive-target" in refused.stderr
    told = " ".join(bench.run("baseline", "--quick", "--other-builds").stdout.split())
    assert f"{name} was not held (9) and is held (0)" in told, told


def test_the_command_names_what_has_no_points_and_what_was_not_measured(bench: Bench) -> None:
    bench.offers(gats=[gats(10)], dht=[{"name": "mcs-wp-0-32"}])
    bench.run("run", "gats", "--quick")
    text = " ".join(bench.run("baseline", "--quick").stdout.split())
    assert "not measured, and left as they are: dht" in text
    assert "osu is gone, with" in text and "dht is gone" not in text
