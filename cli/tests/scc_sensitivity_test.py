# SPDX-License-Identifier: Apache-2.0
"""Which verdicts flip with a parameter: the variants, the table, and the file in the source tree."""

from pathlib import Path

import pytest
from scc_test import Bench, bench, value
from tombolo import paths
from tombolo.errors import UserError
from tombolo.scc import baseline, catalogue, chips, page_sensitivity, sensitivity, sensitivity_table
from tombolo.scc.baseline import Judgement
from tombolo.scc.native import Setting
from tombolo.scc.sensitivity_table import Flip, Outcome, Table
from tombolo.scc.verdicts import NO_MEASUREMENT, Verdict

__all__ = ["bench"]  # a fixture

CHIP = """
[layout]
memory_model = { value = "banked", source = "Figures" }
[path]
bank_busy_memory_cycles = { value = 30, source = "By trial" }
[software]
flop_core_cycles = { value = 12, source = "Derived" }
"""
FLIP = Flip("e: a", "held", "5.2", "not held", "7")
TABLE = Table("quick", "12345678", [Outcome("no banks", "x 1 to 2", 3, 9, [FLIP]), Outcome("seed 2", "s", 1, 4)])


def variant(name: str) -> sensitivity.Variant:
    return sensitivity.choose([name])[0]


def test_each_variant_changes_a_parameter_that_the_chip_has() -> None:
    chip = chips.load(chips.DEFAULT)
    known = {each.name: each.value for each in chip.parameters}
    for each in sensitivity.VARIANTS:
        if each.parameter:
            assert sensitivity.value_of(each, chip) != known[each.parameter], each.name
        else:
            assert each.seed != 1, each.name
    assert len({each.name for each in sensitivity.VARIANTS}) == len(sensitivity.VARIANTS)


def test_a_path_length_is_varied_by_its_share_in_half_cycles() -> None:
    chip = chips.Chip("scc", (chips.Parameter("software.flop_core_cycles", 11.5, ""),))
    assert sensitivity.value_of(variant("quicker arithmetic"), chip) == 8.5
    assert sensitivity.change(variant("slower arithmetic"), chip) == "software.flop_core_cycles 11.5 to 14.5"
    with pytest.raises(UserError, match="no parameter path.bank_busy"):
        sensitivity.change(variant("banks busy for less"), chip)


def test_a_switch_is_a_parameter_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOMBOLO_RESULTS", str(tmp_path))
    switch = variant("accesses overlap with the write before")
    assert sensitivity.change(switch, chips.load(chips.DEFAULT)) == "core.stalls_behind_write true to false"
    assert "stalls_behind_write = { value = false," in Path(sensitivity.chip_file(switch)).read_text()


def test_each_measures_every_experiment_that_verdicts_are_about() -> None:
    known = catalogue.load()
    without = {name for name in known.experiments if not sensitivity.judged(known, name)}
    assert without == {"recommendations", "big-chips"}  # no claims and no numbers of a paper
    assert not sensitivity.judged(known, "not-in-the-catalogue")


def test_a_verdict_that_was_not_measured_at_one_time_does_not_flip() -> None:
    held, failed, none = Judgement("held", "1"), Judgement("not held", "2"), Judgement(NO_MEASUREMENT, "")
    before = {"e: a": held, "e: b": held, "e: c": none, "e: d": held}
    now = {"e: a": failed, "e: b": none, "e: c": held, "e: d": held}
    assert sensitivity.compare(before, now) == [Flip("e: a", "held", "1", "not held", "2")]


def test_a_file_gives_its_table_again_a_line_for_each_flip(tmp_path: Path) -> None:
    file = tmp_path / "new" / "table.json"
    sensitivity_table.save(TABLE, file)
    assert sensitivity_table.load(file) == TABLE
    assert sum("not held" in line for line in file.read_text().splitlines()) == 1
    for text in ("", "[]", '{"points": "quick"}', '{"points": "q", "chip": "c", "outcomes": [{"flips": [1]}]}'):
        file.write_text(text)
        with pytest.raises(UserError, match="table.json"):
            sensitivity_table.load(file)


def test_variants_that_were_not_measured_stay_if_the_chip_is_the_same() -> None:
    now = Table("quick", "12345678", [Outcome("seed 2", "s", 1, 4, [FLIP])])
    merged = sensitivity.merged(TABLE, now)
    assert [(o.variant, len(o.flips)) for o in merged.outcomes] == [("no banks", 1), ("seed 2", 1)]
    assert sensitivity.merged(Table("quick", "other", TABLE.outcomes), now) == now
    assert sensitivity.merged(None, now) == now


def test_the_page_counts_the_claims_that_flip_and_names_them() -> None:
    claim = catalogue.Claim("a", "value", "s", "Christgau", "independent", low=1.0)
    text = page_sensitivity.render(TABLE, [Verdict("e", claim, (5.2,))])
    assert "1 of 1 claims flip with one of the 2 variants; of the 1 independent ones 1 do." in text
    assert "no banks: not held, 7" in text and "parameters are others today" in text
    assert "scc sensitivity --quick --write" in page_sensitivity.render(None, [])


def test_the_file_in_the_source_tree_is_of_todays_claims_and_variants() -> None:
    """And its verdicts of the chip as it is are the baseline's: of one program."""
    found = sensitivity_table.load(sensitivity_table.path(quick=True))
    kept = baseline.load(baseline.path(Setting(quick=True)))
    flips = [flip for outcome in found.outcomes for flip in outcome.flips]
    other = [flip.name for flip in flips if kept.get(flip.name) != Judgement(flip.word, flip.found)]
    assert other == [], "tombolo scc sensitivity --quick --write"
    claims, series = set(), set()
    for made in catalogue.load().experiments.values():
        claims |= {f"{made.name}: {claim.name}" for claim in made.claims}
        series |= {f"{made.name}: {number.series} at {number.x}" for number in made.numbers}
    named = {flip.name.rsplit(", quartile", 1)[0] for o in found.outcomes for flip in o.flips}
    assert named <= claims | series, "tombolo scc sensitivity --quick --write"
    assert [o.variant for o in found.outcomes] == [v.name for v in sensitivity.VARIANTS]
    assert not found.outdated, "tombolo scc sensitivity --quick --write"


def test_the_command_measures_all_points_with_verdicts_and_tells_the_flips(bench: Bench) -> None:
    """Messages go through private memory, too: varied points are compared with varied ones."""
    bench.chip.write_text(CHIP)
    slow, as_slow = [value("origin/scosco", 10, 80.0)], [value("origin/rckmpi", 10, 400.0)]
    targets = {"name": "targets-10", "lines": [value("origin/scosco", 10, 18.0)],
               "on": {"banks-busy-for-longer": slow, "no-banks": slow}}  # fmt: skip
    messages = {"name": "rckmpi-10", "lines": [value("origin/rckmpi", 10, 90.0)], "on": {"no-banks": as_slow}}
    bench.offers(gats=[targets, messages], big_chips=[{"name": "gats-48-4"}])
    assert "holds nothing of this setting" in bench.run("sensitivity", "--quick").stderr
    bench.run("run", "gats", "--quick")
    both = ["gats rckmpi-10", "gats targets-10"]
    for name, change, flips in (
        ("banks busy for longer", "path.bank_busy_memory_cycles 30 to 42", True),
        ("no banks", "layout.memory_model banked to plain", False),
    ):
        told = bench.run("sensitivity", "--quick", "--variant", name)
        assert told.returncode == 0, told.stderr
        assert change in told.stdout and "2 points measured" in told.stdout
        assert ("not held" in told.stdout) == flips, told.stdout
    assert sorted(bench.ran()) == sorted(3 * both)
    wrong = bench.run("sensitivity", "--quick", "--variant", "banks")
    assert wrong.returncode == 2 and "there is no variant 'banks'; choose of" in wrong.stderr


def test_a_point_that_deadlocks_with_one_chip_alone_is_compared(bench: Bench) -> None:
    bench.chip.write_text(CHIP)
    locks = [value("mixed/rckmpi", 4, 3.0)]
    immediate = {"name": "mixed-rckmpi-immediate-4", "does": "deadlock",
                 "on": {"no-banks": [value("mixed/rckmpi-immediate", 4, 3.0)]}}  # fmt: skip
    bench.offers(passive_target=[immediate, {"name": "mixed-rckmpi-4", "lines": locks}])
    bench.run("run", "passive-target", "--quick")
    told = bench.run("sensitivity", "--quick", "--variant", "no banks")
    text = " ".join(told.stdout.split())
    assert "1 of 1 verdicts flip, 2 points measured" in text and "held, 0" in text, told.stdout + told.stderr


def test_only_a_checkout_has_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "checkout", lambda: None)
    assert sensitivity_table.kept(quick=True) is None
    with pytest.raises(UserError, match="checkout"):
        sensitivity_table.path(quick=True)
