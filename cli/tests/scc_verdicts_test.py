# SPDX-License-Identifier: Apache-2.0
"""The papers' numbers and claims: how files are read, and how values are judged."""

from dataclasses import replace
from pathlib import Path

import pytest
from tombolo import paths
from tombolo.commands import scc as commands
from tombolo.errors import UserError
from tombolo.scc import catalogue, chips, draw, native, page, verdicts
from tombolo.scc.catalogue import Axis, Catalogue, Claim, Experiment, Figure, Number, Reason, Series
from tombolo.scc.page import Section
from tombolo.scc.verdicts import Measured, Verdict

FIGURE = Figure("f", "F", Axis("n", ""), Axis("t", "us"), (Series("a", "first"), Series("b", "second")))


def measured(experiment: Experiment, **series: dict) -> Measured:
    lines = [
        {"series": name, "x": x, "unit": "us", **(v if isinstance(v, dict) else {"value": v})}
        for name, values in series.items()
        for x, v in values.items()
    ]
    return Measured(experiment, lines)


def judged(claim: Claim, **series: dict) -> Verdict:
    experiment = Experiment("e", "E", (FIGURE,), claims=(claim,))
    return verdicts.verdicts(Catalogue(), experiment, measured(experiment, **series))[0]


def claim(kind: str, **more) -> Claim:
    return Claim("c", kind, "a", "s", **more)


def test_the_files_of_the_package_are_sound() -> None:
    known = catalogue.load().experiments
    assert {"calibration", "memory", "gats", "database", "passive-target", "dht", "osu", "ft"} <= set(known)
    figures = [figure.name for made in known.values() for figure in made.figures]
    assert len(figures) == len(set(figures))
    for made in known.values():
        for figure in made.figures:
            assert (figure.x.scale == "category") == bool(figure.x.categories), figure.name
            assert figure.kind in ("lines", "bars", "stacked", "matrix"), figure.name
            assert (figure.kind == "matrix") == bool(figure.rows), figure.name
        for number in made.numbers:
            assert number.source


def test_class_b_has_the_series_of_the_other_classes() -> None:
    """One program measures them; class B takes too long for a test that runs it."""
    known = catalogue.load().experiments
    others = {n: u for n, u in known["ft"].units().items() if "no-erratum" not in n and not n.startswith("data/")}
    assert known["ft-class-b"].units() == others


def test_an_entry_may_stand_for_many_series() -> None:
    known = catalogue.load().experiments["automaton"]
    (figure,) = (each for each in known.figures if each.kind == "matrix")
    assert [s.name for s in figure.series] == [f"data/{n}" for n in range(32)]
    assert figure.series[31].meaning == "sent by process 31"
    assert known.units()["data/17"] == "KiB"


def test_a_matrix_is_drawn_by_row_and_column() -> None:
    series = tuple(Series(f"data/{n}", "") for n in range(3))
    figure = Figure("m", "M", Axis("to", ""), Axis("data", "us"), series, kind="matrix", rows="from")
    made = Experiment("e", "E", (figure,))
    found = measured(made, **{"data/0": {1: 4.0}, "data/2": {0: 2.0, 1: 8.0}})
    for narrow in (False, True):
        drawn = draw.picture(made, figure, found, narrow)
        axes = drawn.axes[0]
        (image,) = axes.images
        assert image.get_array().tolist() == [[0, 4], [0, 0], [2, 8]]
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("to", "from")
        assert image.get_clim() == (0, 8)


def test_reasons_are_about_existing_series() -> None:
    known = catalogue.load()
    for reason in known.reasons:
        made = known.experiments[reason.experiment]
        if reason.claim:
            assert reason.claim in [each.name for each in made.claims], reason.claim
        else:
            assert reason.series in made.units(), reason.series


def test_kinds_of_claims_are_those_of_the_catalogue() -> None:
    assert tuple(verdicts.KINDS) == catalogue.CLAIM_KINDS


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name = ", "bad.toml: "),
        ("title = 'x'\nfigure = []", "lacks 'name'"),
        ("name = 'bad'\ntitle = 'x'\nfigure = []\n[[paper]]\nsource = ''\nexact = true\nx = [1]\nvalues.q = [1]",
         "no figure has the series 'q'"),
        ("name = 'bad'\ntitle = 'x'\nfigure = []\n[[paper]]\nsource = ''\nexact = true\nx = [1]\nvalues.q = [1, 2]",
         "q: 2 values for 1 places"),
        ("name = 'bad'\ntitle = 'x'\nfigure = []\n[[paper]]\nsource = ''\nexact = true\nx = [1]\nvalues.q = [1]\n"
         "fitted.q = [2]", "fitted: q has no number"),
        ("name = 'bad'\ntitle = 'x'\nfigure = []\n[[claim]]\nname = 'c'\nkind = 'odd'\nseries = 'q'\nsource = ''",
         "'odd' is no kind of claim"),
        ("name = 'x'\ntitle = 'x'\nfigure = []", "the file of 'x' must be x.toml"),
        ("name = 'bad'\ntitle = 'x'\nfigure = []\n[[reason]]\ntext = ''", "needs a series or a claim"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_file_is_named_with_the_file(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(UserError, match="bad.toml") as error:
        catalogue.load(tmp_path)
    assert says in str(error.value)


def test_experiments_come_in_their_order_from_one_folder_or_one_each(tmp_path: Path) -> None:
    for path, order in (("a", ""), ("b", "order = 20"), ("own/c", "order = 10"), ("own/d", "")):
        file = tmp_path / f"{path}.toml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"name = '{file.stem}'\ntitle = 'x'\nfigure = []\n{order}\n")
    assert list(catalogue.load(tmp_path).experiments) == ["c", "b", "a", "d"]


def test_an_installed_package_has_all_files_in_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scc").mkdir()
    (tmp_path / "scc" / "e.toml").write_text("name = 'e'\ntitle = 'E'\nfigure = []\n")
    monkeypatch.setattr(paths, "checkout", lambda: None)
    monkeypatch.setattr(paths, "DATA", tmp_path)
    assert list(catalogue.load().experiments) == ["e"]


def test_a_reason_is_of_the_experiment_whose_file_states_it(tmp_path: Path) -> None:
    text = "name = 'e'\ntitle = 'E'\nfigure = []\n[[reason]]\nseries = 'a'\ntext = 'because'\n"
    (tmp_path / "e.toml").write_text(text)
    assert catalogue.load(tmp_path).reason("e", "a", 1) == "because"


def test_a_deviation_is_relative_to_the_paper() -> None:
    number = Number("a", 10, 20.0, "s", True, quartile1=10.0)
    experiment = Experiment("e", "E", (FIGURE,), (number,))
    values = measured(experiment, a={10: {"value": 24.0, "quartile1": 20.0}})
    value, quartile = verdicts.deviations(Catalogue(), experiment, values)
    assert value.share == pytest.approx(0.2) and value.good
    assert quartile.share == pytest.approx(1.0) and not quartile.good


def test_a_number_by_which_a_parameter_was_chosen_is_no_evidence(tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(
        """
        name = "e"
        title = "E"
        [[figure]]
        name = "f"
        title = "F"
        x = { name = "n", unit = "" }
        y = { name = "t", unit = "us" }
        series = [{ name = "a", meaning = "A" }]
        [[paper]]
        source = "s"
        exact = true
        x = [1, 2, 3]
        values.a = [1.0, 2.0, 3.0]
        fitted.a = [2]
        """
    )
    experiment = catalogue.load(tmp_path).experiments["e"]
    assert [number.standing for number in experiment.numbers] == ["exact", "fitted", "exact"]
    values = measured(experiment, a={1: 1.0, 2: 2.0, 3: 9.0})
    section = Section(experiment, deviations=verdicts.deviations(Catalogue(), experiment, values))
    assert section.summary.startswith("1 of 2 independent numbers within 25%, 1 more are none")


@pytest.mark.parametrize(("many", "everything", "shown"), [(False, False, 3), (True, False, 2), (True, True, 3)])
def test_many_numbers_are_a_summary_and_the_bad_ones_unless_all_are_wanted(
    many: bool, everything: bool, shown: int
) -> None:
    numbers = tuple(Number("a", x, 1.0, "s", True) for x in (1, 2, 3))
    experiment = Experiment("e", "E", (FIGURE,), numbers, many_numbers=many)
    values = measured(experiment, a={1: 1.0, 2: 9.0, 3: 1.0})
    section = Section(experiment, deviations=verdicts.deviations(Catalogue(), experiment, values))
    assert commands._deviation_table([section], everything, []).row_count == shown
    assert ("<details open>" in page._section(section)) == many


def test_a_number_that_was_not_measured_has_no_deviation() -> None:
    experiment = Experiment("e", "E", (FIGURE,), (Number("a", 10, 20.0, "s", True),))
    (found,) = verdicts.deviations(Catalogue(), experiment, measured(experiment, a={9: 1.0}))
    assert found.share is None and found.good is None


def test_a_zero_of_the_paper_must_be_met() -> None:
    experiment = Experiment("e", "E", (FIGURE,), (Number("a", 1, 0.0, "s", True),))
    for ours, good in ((0.0, True), (1.0, False)):
        (found,) = verdicts.deviations(Catalogue(), experiment, measured(experiment, a={1: ours}))
        assert found.good is good


def test_a_reason_for_a_point_goes_before_that_of_its_series() -> None:
    known = Catalogue({}, (Reason("e", "all", "a"), Reason("e", "this", "a", x=2)))
    assert [known.reason("e", "a", x) for x in (1, 2)] == ["all", "this"]
    assert known.reason("e", "b", 1) == ""


def test_a_claim_has_the_reason_of_its_name() -> None:
    known = Catalogue({}, (Reason("e", "because", claim="c"), Reason("e", "other", "c")))
    experiment = Experiment("e", "E", (FIGURE,), claims=(claim("value", low=2),))
    (found,) = verdicts.verdicts(known, experiment, measured(experiment, a={1: 1}))
    assert found.held is False
    assert found.reason == "because"


def test_a_reason_is_about_a_series_or_a_claim() -> None:
    for wrong in ({}, {"series": "a", "claim": "c"}):
        with pytest.raises(ValueError, match="needs a series or a claim"):
            Reason("e", "because", **wrong)


def test_places_on_an_axis_compare_as_numbers_or_text() -> None:
    assert catalogue.same(10, 10.0) and catalogue.same("S", "S") and catalogue.same(0, "0")
    assert not catalogue.same(10, 11) and not catalogue.same("S", "W")


@pytest.mark.parametrize(
    ("kind", "more", "series", "values"),
    [
        ("value", {"low": 1}, {"a": {1: 2, 2: 3}}, (2, 3)),
        ("value", {"low": 1, "x": (2,)}, {"a": {1: 2, 2: 3}}, (3,)),
        ("ratio", {"low": 1, "to": "b"}, {"a": {1: 6, 2: 8, 3: 1}, "b": {1: 2, 2: 2}}, (3, 4)),
        ("ratio", {"low": 1, "x": (2,), "to_x": 1}, {"a": {1: 2, 2: 8}}, (4,)),
        ("ratio", {"low": 1, "to": "b", "since": 2, "until": 2}, {"a": {1: 6, 2: 8, 3: 9}, "b": {1: 2, 2: 2, 3: 3}},
         (4,)),
        ("difference", {"low": 1, "to": "b"}, {"a": {1: 6}, "b": {1: 2}}, (4,)),
        ("flat", {"high": 2}, {"a": {1: 4, 2: 6}}, (1.5,)),
        ("linear", {"low": 0.9}, {"a": {1: 2, 2: 4, 3: 6}}, (1,)),
        ("linear", {"low": 0.9}, {"a": {1: 6, 2: 4, 3: 2}}, (0,)),
        ("slope", {"low": 1}, {"a": {1: 2, 2: 4, 3: 6}}, (2,)),
        ("efficiency", {"low": 1}, {"a": {2: 2, 4: 2}}, (1, 0.5)),
        ("count", {"high": 0, "since": 2}, {"a": {1: 2, 2: 2, 4: 2}}, (2,)),
        ("count", {"high": 0, "since": 2}, {"a": {1: 2}}, (0,)),
        ("count", {"high": 0, "since": 2}, {"b": {1: 2}}, ()),
        ("spread", {"low": 1}, {"a": {1: {"value": 2, "quartile1": 1, "quartile3": 5}}}, (2,)),
        ("quartiles", {"high": 1}, {"a": {1: {"value": 4, "quartile1": 3, "quartile3": 6}}}, (0.5,)),
        ("third-quartiles", {"high": 1, "to": "b"},
         {"a": {1: {"value": 2, "quartile3": 3}}, "b": {1: {"value": 9, "quartile3": 12}}}, (0.25,)),
        ("below-quartile", {"high": 1, "to": "b"},
         {"a": {1: {"value": 2, "quartile3": 3}}, "b": {1: {"value": 9, "quartile1": 6}}}, (0.5,)),
    ],
)  # fmt: skip
def test_the_value_of_a_claim(kind: str, more: dict, series: dict, values: tuple) -> None:
    assert judged(claim(kind, **more), **series).values == pytest.approx(values)


@pytest.mark.parametrize(
    ("series", "deadlocked", "values"),
    [
        ({"a": {2: 1, 4: 1, 8: 1}, "b": {4: 1, 8: 1}}, (), (2,)),
        ({"a": {2: 1, 4: 1}, "b": {4: 1, 8: 1}}, ("a-8",), (1,)),
        ({"a": {2: 1}, "b": {2: 1, 4: 1, 8: 1}}, ("a-4", "a-8"), (0,)),
        ({"a": {2: 1}, "b": {4: 1, 8: 1}}, ("a-8", "b-4"), ()),
        ({"a": {2: 1}, "b": {4: 1, 8: 1}}, (), ()),
        ({}, (), ()),
    ],
)
def test_points_that_only_failed_show_no_deadlock(series: dict, deadlocked: tuple, values: tuple) -> None:
    made = claim("deadlocks", high=0, since=4, to="b", points="a-*")
    experiment = Experiment("e", "E", (FIGURE,), claims=(made,))
    found = measured(experiment, **series)
    found.deadlocked = deadlocked
    (verdict,) = verdicts.verdicts(Catalogue(), experiment, found)
    assert verdict.values == values


@pytest.mark.parametrize("more", ['kind = "deadlocks"\nto = "a"', 'kind = "deadlocks"\npoints = "a-*"',
                                  'kind = "count"\npoints = "a-*"'])  # fmt: skip
def test_points_are_of_deadlocks_which_need_places_too(tmp_path: Path, more: str) -> None:
    axes = 'x = { name = "n", unit = "" }\ny = { name = "t", unit = "" }\nseries = [{ name = "a", meaning = "" }]\n'
    text = f'name = "e"\ntitle = "E"\n[[figure]]\nname = "f"\ntitle = "F"\n{axes}[[claim]]\nname = "c"\n{more}\n'
    (tmp_path / "e.toml").write_text(text + 'series = "a"\nhigh = 0\nsource = "ours"\n')
    with pytest.raises(UserError, match="needs points, and to"):
        catalogue.load(tmp_path)


@pytest.mark.parametrize(
    ("sentence", "told"),
    [
        ("it takes {a at 48} us, {a at 48 / b at 4} times b's", "it takes 57.4 us, 6.83 times b's"),
        ("{b at 4} and {b at 8}", "8.4 and not measured"), ("{a at 48 / b at 8}", "not measured"), ("{ }", "{ }"),
    ],
)  # fmt: skip
def test_a_remark_quotes_our_values(sentence: str, told: str) -> None:
    experiment = Experiment("e", "E", (FIGURE,))
    values = measured(experiment, a={48: 57.4}, b={4: 8.4})
    assert verdicts.with_values(sentence, values) == told


def test_remarks_quote_series_that_there_are() -> None:
    for made in catalogue.load().experiments.values():
        for remark in made.remarks:
            quoted = [group for match in verdicts.QUOTED.finditer(remark) for group in match.groups()[::2] if group]
            assert remark.count("{") == len(verdicts.QUOTED.findall(remark))
            assert set(quoted) <= set(made.units()), quoted


USES = {"p": {"bank": {"utilisation": 0.5, "mean_wait_ns": 9.0}, "link": {"utilisation": 0.75, "mean_wait_ns": 1.0},
              "cores": {"reading": 0.25, "loads_that_left": 480}}}  # fmt: skip


@pytest.mark.parametrize(
    ("point", "part", "figure", "per", "values"),
    [
        ("p", "bank", "utilisation", 1, (0.5,)), ("p", "any", "utilisation", 1, (0.75,)),
        ("p", "any", "mean_wait_ns", 1, (9.0,)), ("p", "cores", "loads_that_left", 48, (10.0,)),
        ("p", "buffer", "utilisation", 1, ()), ("p", "cores", "utilisation", 1, ()), ("q", "any", "utilisation", 1, ()),
    ],
)  # fmt: skip
def test_a_claim_about_the_use_of_parts_is_judged_by_a_points_statistics(
    point: str, part: str, figure: str, per: float, values: tuple
) -> None:
    made = Claim("c", "use", "", "ours", points=point, part=part, figure=figure, per=per, low=0.3)
    experiment = Experiment("e", "E", (FIGURE,), claims=(made,))
    (verdict,) = verdicts.verdicts(Catalogue(), experiment, Measured(experiment, [], uses=USES))
    assert verdict.values == values


USED = 'statistics = ["p"]\n'
OF_USE = 'kind = "use"\npoints = "p"\npart = "bank"\nfigure = "utilisation"\n'


@pytest.mark.parametrize(
    ("names", "more", "says"),
    [
        ("", OF_USE, "statistics does not name p"),
        (USED, OF_USE.replace("bank", "banks"), "no part 'banks'"),
        (USED, OF_USE.replace("utilisation", "reading"), "no figure 'reading' of bank"),
        (USED, OF_USE.replace('part = "bank"\n', ""), "needs part and figure"),
        (USED, 'kind = "value"\nseries = "a"\npart = "bank"\nfigure = "utilisation"\n', "needs part and figure"),
    ],
)
def test_a_claim_about_use_names_what_there_is(tmp_path: Path, names: str, more: str, says: str) -> None:
    axes = 'x = { name = "n", unit = "" }\ny = { name = "t", unit = "" }\nseries = [{ name = "a", meaning = "" }]\n'
    figure = f'[[figure]]\nname = "f"\ntitle = "F"\n{axes}'
    head, tail = 'name = "e"\ntitle = "E"\n', f'{figure}[[claim]]\nname = "c"\nlow = 1\nsource = "ours"\n'
    (tmp_path / "e.toml").write_text(head + names + tail + more)
    with pytest.raises(UserError, match=says):
        catalogue.load(tmp_path)
    (tmp_path / "e.toml").write_text(head + USED + tail + OF_USE)
    assert catalogue.load(tmp_path).experiments["e"].statistics == ("p",)


def test_a_claim_holds_when_all_values_lie_within_its_bounds() -> None:
    wanted = claim("value", low=2, high=3)
    assert judged(wanted, a={1: 2, 2: 3}).held is True
    assert judged(wanted, a={1: 2, 2: 4}).held is False


def test_a_claim_about_a_place_that_was_not_measured_is_open() -> None:
    verdict = judged(claim("value", low=2, x=(1, 5)), a={1: 2})
    assert verdict.held is None and verdict.found == "not measured"
    assert judged(claim("linear", low=0.9), a={1: 2, 2: 3}).held is None


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ({"low": 1}, "at least 1"),
        ({"high": 2}, "at most 2"),
        ({"low": 0, "high": 0}, "0"),
        ({"low": 1, "high": 2}, "1 to 2"),
    ],
)
def test_bounds_in_words(more: dict, wanted: str) -> None:
    assert judged(claim("value", **more), a={}).wanted == wanted


def test_a_figure_without_any_value_is_not_drawn() -> None:
    experiment = Experiment("e", "E", (FIGURE,))
    assert not draw.is_measured(FIGURE, measured(experiment))
    assert draw.is_measured(FIGURE, measured(experiment, b={1: 1.0}))


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("kind", ["lines", "bars", "stacked"])
def test_the_same_values_draw_the_same_picture(tmp_path: Path, kind: str, narrow: bool) -> None:
    series = tuple(replace(each, bar="x", part=each.name) for each in FIGURE.series)
    axis = Axis("n", "", *(() if kind == "lines" else ("category", (1, 2))))
    figure = replace(FIGURE, kind=kind, x=axis, series=series)
    experiment = Experiment("e", "E", (figure,), (Number("a", 1, 2.0, "s", False),))
    values = measured(experiment, a={1: 2.0, 2: 3.0}, b={1: 1.0})
    pictures = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        draw.save(draw.picture(experiment, figure, values, narrow), tmp_path / name / "f")
        pictures.append((tmp_path / name / "f.svg").read_bytes())
    assert pictures[0] == pictures[1]


def test_labels_of_sizes() -> None:
    assert [draw.short(v) for v in (1, 1024, 4096, 1 << 20, 1500, 0.5)] == ["1", "1Ki", "4Ki", "1Mi", "1500", "0.5"]


def test_a_chip_has_what_its_base_has_and_what_it_states_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOMBOLO_CHIPS", str(tmp_path))
    base = "[a]\nx = { value = 1, source = 's' }\ny = { value = 2, source = 't' }\n"
    (tmp_path / "scc.toml").write_text(base)
    (tmp_path / "other.toml").write_text("base = 'scc'\n[a]\ny = { value = 3, source = 'u' }\n")
    other = chips.load("other")
    assert [(p.name, p.value, p.source) for p in other.parameters] == [("a.x", 1, "s"), ("a.y", 3, "u")]
    assert other.digest != chips.load("scc").digest
    assert chips.load(str(tmp_path / "other.toml")) == other


def test_results_are_kept_apart_when_any_chip_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOMBOLO_CHIPS", str(tmp_path))
    (tmp_path / "scc.toml").write_text("[a]\nx = { value = 1, source = 's' }\n")
    labels = [native.Setting().label]
    for value in (2, 3):
        (tmp_path / "other.toml").write_text(f"base = 'scc'\n[a]\nx = {{ value = {value}, source = 's' }}\n")
        labels.append(native.Setting().label)
    assert len(set(labels)) == 3


def test_a_chip_that_is_its_own_base_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("base = 'a'\n")
    with pytest.raises(UserError, match="is its own base"):
        chips.load(str(tmp_path / "a.toml"))


def test_the_chips_of_the_project_can_be_read() -> None:
    for path in chips.folder().glob("*.toml"):
        assert chips.load(path.stem).parameters
