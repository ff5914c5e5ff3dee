# SPDX-License-Identifier: Apache-2.0
"""Which verdicts change where a parameter that was chosen, or the seed, is another.

A variant measures anew every point that verdicts are about, so that varied ones are compared with
varied ones only: no list says to which points a parameter can matter, as none can forget one.
"""

import json
from dataclasses import dataclass
from typing import Any

from tombolo import files
from tombolo.errors import UserError
from tombolo.scc import baseline, campaign, chips, report, store
from tombolo.scc.baseline import Judgements
from tombolo.scc.catalogue import Catalogue
from tombolo.scc.native import Setting
from tombolo.scc.sensitivity_table import Flip, Outcome, Table
from tombolo.scc.verdicts import NO_MEASUREMENT, NOT_JUDGED


@dataclass(frozen=True)
class Variant:
    """A chip that differs from the default one in one parameter, or another seed."""

    name: str
    parameter: str = ""  # "section.key"
    value: float | str = 0  # of no parameter: unused
    seed: int = 1


# The ends of the range that was tried where a value was found by trial; else a quarter up and down.
VARIANTS = (
    Variant("banks take turns by lines", "layout.bank_interleave_bytes", 32),
    Variant("banks take turns by 8 KB", "layout.bank_interleave_bytes", 8192),
    Variant("no banks", "layout.memory_model", "plain"),
    Variant("banks busy for less", "path.bank_busy_memory_cycles", 20),
    Variant("banks busy for longer", "path.bank_busy_memory_cycles", 42),
    Variant("registers busy for less", "path.register_busy_core_cycles", 3),
    Variant("registers busy for longer", "path.register_busy_core_cycles", 6),
    Variant("quicker puts", "software.put_call_core_cycles", 0.75),
    Variant("slower puts", "software.put_call_core_cycles", 1.25),
    Variant("quicker packets", "software.packet_core_cycles", 0.75),
    Variant("slower packets", "software.packet_core_cycles", 1.25),
    Variant("quicker arithmetic", "software.flop_core_cycles", 0.75),
    Variant("slower arithmetic", "software.flop_core_cycles", 1.25),
    Variant("accesses overlap with the write before", "core.stalls_behind_write", False),
    *(Variant(f"seed {seed}", seed=seed) for seed in (2, 3, 4, 5)),
)


def choose(names: list[str]) -> list[Variant]:
    """Those named, or all; the error for another names these."""
    known = {each.name: each for each in VARIANTS}
    for name in names:
        if name not in known:
            raise UserError(f"there is no variant '{name}'; choose of {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names)] or list(VARIANTS)


def value_of(variant: Variant, chip: chips.Chip) -> object:
    """A share of a software's path length becomes cycles, a multiple of a half."""
    if not variant.parameter.startswith("software.") or isinstance(variant.value, str):
        return variant.value
    return round(2 * _value(chip, variant.parameter) * variant.value) / 2


def change(variant: Variant, chip: chips.Chip) -> str:
    """In words: the parameter with its value before and after, or the seed."""
    if not variant.parameter:
        return f"seed {Setting().seed} to {variant.seed}"
    before, after = _value(chip, variant.parameter), value_of(variant, chip)
    return f"{variant.parameter} {_text(before)} to {_text(after)}"


def _text(value: object) -> str:
    return f"{value:g}" if type(value) in (int, float) else str(value).lower()


def _value(chip: chips.Chip, parameter: str) -> Any:
    for each in chip.parameters:
        if each.name == parameter:
            return each.value
    raise UserError(f"chip {chip.name} has no parameter {parameter}")


def chip_file(variant: Variant) -> str:
    """The name of the chip, or the path of a file that differs from it in the parameter."""
    if not variant.parameter:
        return chips.DEFAULT
    section, key = variant.parameter.split(".")
    folder = files.folder(store.folder() / "sensitivity")
    base = folder / f"{chips.DEFAULT}.toml"  # a base is found in the same folder
    files.write(base, (chips.folder() / f"{chips.DEFAULT}.toml").read_bytes())
    value = value_of(variant, chips.load(chips.DEFAULT))
    path = folder / f"{variant.name.replace(' ', '-')}.toml"
    files.write(
        path,
        f'name = "{path.stem}"\ntitle = "The SCC, but: {variant.name}"\nbase = "{chips.DEFAULT}"\n\n'
        f'[{section}]\n{key} = {{ value = {json.dumps(value)}, source = "Varied" }}\n',
    )
    return str(path)


def judged(known: Catalogue, experiment: str) -> bool:
    """Whether a verdict is about it: of a claim, or of a number of a paper."""
    made = known.experiments.get(experiment)
    return made is not None and bool(made.claims or made.numbers)


def measure(
    variant: Variant, known: Catalogue, quick: bool, before: store.Results, jobs: int | None
) -> tuple[Outcome, list[campaign.Failure]]:
    """Measures the points of a variant that are not there, and compares all verdicts."""
    setting = Setting(quick, variant.seed, chip_file(variant))
    ended = campaign.run([], setting, jobs, fresh=False, wanted=lambda point: judged(known, point.experiment))
    varied = ended.store.load().only(before.keys())
    then = baseline.judgements(report.gather(known, before, Setting(quick)))
    now = baseline.judgements(report.gather(known, varied, Setting(quick)))
    chip = chips.load(chips.DEFAULT)
    can_flip = sum(each.word not in (NO_MEASUREMENT, NOT_JUDGED) for each in now.values())
    outcome = Outcome(variant.name, change(variant, chip), len(varied.done), can_flip, compare(then, now))
    return outcome, ended.failures


def compare(before: Judgements, now: Judgements) -> list[Flip]:
    """The verdicts that are others; none of points that were not measured at one time."""
    return [
        Flip(name, old.word, old.found, new.word, new.found)
        for name, old in before.items()
        if (new := now.get(name)) and new.word != old.word
        and NO_MEASUREMENT not in (new.word, old.word)
    ]  # fmt: skip


def merged(before: Table | None, now: Table) -> Table:
    """Those of now; of the other variants there are, those of before if the chip is the same."""
    if before is None or before.chip != now.chip:
        return now
    both = {each.variant: each for each in [*before.outcomes, *now.outcomes]}
    return Table(now.points, now.chip, [both[v.name] for v in VARIANTS if v.name in both])
