# SPDX-License-Identifier: Apache-2.0
"""The class of a claim or a number of the papers, and the totals of each class."""

from collections import Counter
from pathlib import Path

import pytest
from tombolo.errors import UserError
from tombolo.scc import catalogue, figure_data, totals, verdicts
from tombolo.scc.catalogue import Axis, Catalogue, Claim, Experiment, Figure, Number, Series
from tombolo.scc.verdicts import Measured

FIGURE = Figure("f", "F", Axis("n", ""), Axis("t", "us"), (Series("a", "first"), Series("b", "second")))
FILE = """
name = "e"
title = "E"
[[figure]]
name = "f"
title = "F"
x = { name = "n", unit = "" }
y = { name = "t", unit = "us" }
series = [{ name = "a", meaning = "A" }, { name = "b", meaning = "B" }]
[[paper]]
source = "s"
exact = true
x = [1, 2, 3]
values.a = [1.0, 2.0, 3.0]
values.b = [1.0, 2.0, 3.0]
fitted.a = [2]
by-construction.b = [3]
[[claim]]
name = "c"
kind = "ratio"
low = 1
"""


def loaded(folder: Path, claim: str, text: str = FILE) -> Experiment:
    (folder / "e.toml").write_text(text + claim)
    return catalogue.load(folder).experiments["e"]


def refused(folder: Path, claim: str, text: str = FILE) -> str:
    with pytest.raises(UserError) as error:
        loaded(folder, claim, text)
    return str(error.value)


def test_a_number_is_fitted_or_there_by_construction_where_its_file_says_so(tmp_path: Path) -> None:
    made = loaded(tmp_path, 'series = "b"\nx = [1]\nto = "a"\nsource = "p"\nevidence = "independent"\n')
    assert [(n.series, n.x) for n in made.numbers if n.evidence == "fitted"] == [("a", 2)]
    assert [(n.series, n.x) for n in made.numbers if n.standing == "by-construction"] == [("b", 3)]


@pytest.mark.parametrize(
    ("claim", "culprit"),
    [
        ('series = "a"\nx = [2]\nto = "b"', "a at 2 is fitted"),
        ('series = "b"\nx = [2]\nto = "a"', "a at 2 is fitted"),
        ('series = "b"\nto = "b"\nx = [1]\nto_x = 3', "b at 3 is by-construction"),
        ('series = "a"\nx = [1]\nto_x = 2', "a at 2 is fitted"),
        ('series = "a"\nto = "b"\nfrom = 2\nuntil = 2.5', "a at 2 is fitted"),
        ('series = "b"\nto = "b"', "b at 3 is by-construction"),
    ],
)
def test_a_claim_about_numbers_that_show_nothing_is_not_independent(tmp_path: Path, claim: str, culprit: str) -> None:
    said = refused(tmp_path, claim + '\nsource = "p"\nevidence = "independent"\n')
    assert said.endswith(f"the claim 'c' is not independent: {culprit}")
    loaded(tmp_path, claim + '\nsource = "p"\nevidence = "fitted"\nrests_on = "r"\n')


@pytest.mark.parametrize(
    "claim", ['series = "a"\nx = [1]\nto = "b"', 'series = "a"\nx = [3]\nto_x = 1',
              'series = "a"\nto = "b"\nuntil = 1.5']
)  # fmt: skip
def test_a_claim_beside_them_is_independent(tmp_path: Path, claim: str) -> None:
    loaded(tmp_path, claim + '\nsource = "p"\nevidence = "independent"\n')


@pytest.mark.parametrize(
    ("marks", "says"),
    [
        ('source = "p"', "needs evidence, one of independent, fitted, by-construction"),
        ('source = "p"\nevidence = "good"', "needs evidence, one of"),
        ('source = "p"\nevidence = "fitted"', "is fitted and needs rests_on"),
        ('source = "p"\nevidence = "independent"\nrests_on = "r"', "is independent and rests_on"),
        ('source = "ours"\nevidence = "independent"', "is about ours"),
        ('source = "p"\nevidence = "independent"\nneeds = "time"', "needs 'time'; there is 'full'"),
    ],
)
def test_a_claim_must_say_what_it_rests_on(tmp_path: Path, marks: str, says: str) -> None:
    assert says in refused(tmp_path, f'series = "a"\nx = [1]\nto = "b"\n{marks}\n')


def test_a_number_has_one_class(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a at 2 is fitted and by-construction"):
        loaded(tmp_path, "", FILE.replace("by-construction.b = [3]", "by-construction.a = [2]"))


@pytest.mark.parametrize(("states", "low", "high"), [("4", 3.0, 5.0), ("-4", -5.0, -3.0)])
def test_a_stated_value_gives_its_bounds(tmp_path: Path, states: str, low: float, high: float) -> None:
    text = FILE.replace("low = 1", f"states = {states}")
    (made,) = loaded(tmp_path, 'series = "b"\nx = [1]\nsource = "p"\nevidence = "independent"\n', text).claims
    assert (made.low, made.high) == (low, high)


@pytest.mark.parametrize(
    ("bounds", "says"),
    [
        ("low = 1\nhigh = 2", "needs states, the paper's value, or bounds"),
        ("states = 4\nlow = 1", "states a value, which gives its bounds"),
        ("states = 4\nhigh = 1", "states a value, which gives its bounds"),
        ('states = 4\nbounds = "why"', "states a value, which gives its bounds"),
    ],
)
def test_bounds_that_are_others_say_why(tmp_path: Path, bounds: str, says: str) -> None:
    about = 'series = "b"\nx = [1]\nsource = "p"\nevidence = "independent"\n'
    assert says in refused(tmp_path, about, FILE.replace("low = 1", bounds))
    loaded(tmp_path, about, FILE.replace("low = 1", 'low = 1\nhigh = 2\nbounds = "from one to two"'))
    loaded(tmp_path, about, FILE.replace("low = 1", "low = 1\nhigh = 1"))


# How many numbers of each series are marked: a mark that is lost makes one independent by silence.
FITTED = {
    "calibration": {"l2-flush/normal": 1, "mpb-remote-read-word": 8, "dram-read-word-uncached": 4,
                    "mpb-byte-read": 1, "mpb-word-read": 1, "mpb-read-throughput": 1},
    "gats": {"start": 2, "origin/rckmpi": 1},
    "gats-registers": {"rank-conversion": 2, "start": 3},
    "database": {f"centralized/mc{n}": 1 for n in range(4)},
    "passive-target": {"exclusive/gbh": 1, "exclusive/gbh-back-off": 1},
    "dht": {f"{scheme}/{readers}": 3 for scheme in ("gbh-back-off", "mcs-wp")
            for readers in ("0", "11-close", "11-distant", "47")},
    "osu": {"latency/scosco": 1, "latency/rckmpi-two-sided": 1},
    "ft": {"mflops/scosco": 3, "mflops/scosco-dcm": 3},
    "automaton": {"serial": 1, "computation/rckmpi-two-sided": 2, "computation/scosco-dcm": 2},
}  # fmt: skip
BY_CONSTRUCTION = {
    "calibration": {"l1-flush/wbinvd": 2, "l1-flush/invd": 2, "mpb-local-read-word": 1, "instruction": 1,
                    "dram-minimum": 5, "mpb-read-throughput": 23, "mpb-write-throughput": 24},
}  # fmt: skip


@pytest.mark.parametrize(("evidence", "wanted"), [("fitted", FITTED), ("by-construction", BY_CONSTRUCTION)])
def test_the_numbers_that_the_model_was_made_by_are_marked(evidence: str, wanted: dict) -> None:
    found: dict[str, Counter] = {}
    for made in catalogue.load().experiments.values():
        if marked := Counter(n.series for n in made.numbers if n.evidence == evidence):
            found[made.name] = marked
    assert found == wanted


@pytest.mark.parametrize(
    ("experiment", "words", "count", "decision"),
    [
        ("ft", "communication falls by 4 to 5 times", 3, 13),
        ("ft-class-b", "communication falls", 1, 13),
        ("ft-class-b", "so it does from one-sided messages", 1, 13),
        ("ft-class-b", "shared memory outperforms", 1, 13),
        ("osu", "40 MB/s", 2, 13),
        ("osu", "rises to that of one-sided ones", 1, 13),
        ("dht", "disturb the best-effort writer as much", 1, 10),
        ("database", "centralized", 2, 12),
    ],
)
def test_a_sentence_by_which_a_part_was_chosen_is_no_evidence_for_it(
    experiment: str, words: str, count: int, decision: int
) -> None:
    claims = [c for c in catalogue.load().experiments[experiment].claims if words in c.name]
    named = [c for c in claims if f"decision 00{decision}" in c.rests_on and c.evidence == "fitted"]
    assert len(claims) == len(named) == count, [c.name for c in claims]


def test_claims_about_ours_are_a_class_of_their_own(tmp_path: Path) -> None:
    made = loaded(tmp_path, 'series = "a"\nx = [2]\nto = "b"\nsource = "ours"\n')
    assert made.claims[0].standing == catalogue.OURS


def claim(name: str, evidence: str, high: float, source: str = "p", needs: str = "") -> Claim:
    return Claim(name, "value", "a", source, evidence, needs=needs, x=(1,), high=high)


def measured(experiment: Experiment, **series: dict) -> Measured:
    lines = [
        {"series": name, "x": x, "unit": "us", "value": value}
        for name, values in series.items()
        for x, value in values.items()
    ]
    return Measured(experiment, lines)


def test_totals_are_apart_by_class() -> None:
    claims = (
        claim("holds", "independent", 2), claim("fails", "independent", 0),
        claim("fitted", "fitted", 2), claim("open", "by-construction", 2, needs="full"),
        claim("ours", "", 2, source="ours"),
    )  # fmt: skip
    numbers = (
        Number("a", 1, 1.0, "p", True), Number("a", 2, 1.0, "p", True),
        Number("b", 1, 1.0, "p", True, evidence="fitted"),
    )  # fmt: skip
    experiment = Experiment("e", "E", (FIGURE,), numbers, claims)
    values = measured(experiment, a={1: 1.0}, b={1: 5.0})
    judged = verdicts.verdicts(Catalogue(), experiment, values, quick=True)
    found = verdicts.deviations(Catalogue(), experiment, values)
    told = {t.standing: (t.held, t.failed, t.open) for t in totals.of_claims(judged)}
    assert told == {
        "independent": (1, 1, 0), "fitted": (1, 0, 0), "by-construction": (0, 0, 1), "ours": (1, 0, 0),
    }  # fmt: skip
    told = {t.standing: (t.held, t.failed, t.open) for t in totals.of_numbers(found)}
    assert told["independent"] == (1, 0, 1) and told["fitted"] == (0, 1, 0)
    assert totals.headline(judged, found).startswith("1 of 2 independent claims")
    assert "1 of 1 of their independent numbers" in totals.headline(judged, found)


def test_the_quick_set_judges_no_claim_that_needs_the_full_one() -> None:
    experiment = Experiment("e", "E", (FIGURE,), claims=(claim("c", "independent", 0, needs="full"),))
    values = measured(experiment, a={1: 1.0})
    (quick,) = verdicts.verdicts(Catalogue(), experiment, values, quick=True)
    (full,) = verdicts.verdicts(Catalogue(), experiment, values)
    assert quick.held is None and quick.word == verdicts.NOT_JUDGED and quick.found == "1"
    assert full.held is False and full.word == "not held"
    (nothing,) = verdicts.verdicts(Catalogue(), experiment, measured(experiment), quick=True)
    assert nothing.word == verdicts.NO_MEASUREMENT


def test_the_quick_set_judges_no_number_that_needs_the_full_one(tmp_path: Path) -> None:
    made = loaded(tmp_path, 'series = "b"\nx = [1]\nto = "a"\nsource = "ours"\n',
                  FILE.replace("fitted.a", "needs-full.a = [1, 3]\nfitted.a"))  # fmt: skip
    assert [(n.series, n.x) for n in made.numbers if n.needs] == [("a", 1), ("a", 3)]
    values = measured(made, a={1: 1.0, 2: 9.0})
    words = {}
    for quick in (True, False):
        found = verdicts.deviations(Catalogue(), made, values, quick)
        words[quick] = [d.word for d in found if d.number.series == "a"]
        open_ones = sum(t.open for t in totals.of_numbers(found))
        assert open_ones == (5 if quick else 4)  # with those that were not measured
    assert words[True] == [verdicts.NOT_JUDGED, "not met", verdicts.NO_MEASUREMENT]
    assert words[False] == ["met", "not met", verdicts.NO_MEASUREMENT]
    assert "needs-full: a has no number" in refused(
        tmp_path, "", FILE.replace("fitted.a", "needs-full.a = [4]\nfitted.a")
    )


def test_a_figure_gives_its_values_beside_the_papers() -> None:
    numbers = (Number("a", 1, 2.0, "p, q", True), Number("b", 7, 3.0, "p", False, evidence="fitted"))
    experiment = Experiment("e", "E", (FIGURE,), numbers)
    rows = figure_data.rows(experiment, FIGURE, measured(experiment, a={1: 1.5, 2: 2.5}))
    assert [(r["series"], r["x"], r["value"], r["paper"], r["standing"]) for r in rows] == [
        ("a", 1, 1.5, 2.0, "exact"), ("a", 2, 2.5, None, None), ("b", 7, None, 3.0, "fitted"),
    ]  # fmt: skip
    lines = figure_data.as_csv(rows).splitlines()
    assert lines[0].split(",") == list(figure_data.COLUMNS)
    assert lines[1] == 'a,1,us,1.5,,,2.0,,,exact,"p, q"'
    assert '"figure": "f"' in figure_data.as_json(FIGURE, rows)
