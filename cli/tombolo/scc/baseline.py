# SPDX-License-Identifier: Apache-2.0
"""The verdicts of a whole set of points as a file of the repository, and the changes since.

A run is the same on any host, so a verdict changes with the model, the programs or the files of the
papers' numbers only. A change that is meant comes with a new file; another one is a mistake.
"""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tombolo import files, paths
from tombolo.errors import UserError
from tombolo.scc.native import Setting
from tombolo.scc.page import Report
from tombolo.scc.verdicts import NO_MEASUREMENT, NOT_JUDGED, Deviation, Verdict


@dataclass(frozen=True)
class Judgement:
    """Of a claim, or of a number of a paper: the verdict, and our values as text."""

    word: str
    found: str


Judgements = dict[str, Judgement]  # by "experiment: claim" or "experiment: series at x"


def path(setting: Setting) -> Path:
    """Where the file of a setting lies; only the checkout has it."""
    root = paths.checkout()
    if root is None:
        raise UserError("baselines are part of the source tree: run this command from a checkout")
    if setting != Setting(quick=setting.quick):
        raise UserError("there is a baseline of the default chip and seed only")
    return root / "experiments" / "baseline" / f"{'quick' if setting.quick else 'full'}.json"


def judgements(report: Report) -> Judgements:
    """Of the experiments that were measured at all."""
    found = {}
    for section in report.sections:
        if not section.measured:
            continue
        for verdict in section.verdicts:
            found[_claim(verdict)] = Judgement(verdict.word, verdict.found)
        for deviation in section.deviations:
            found[_number(deviation)] = Judgement(deviation.word, _ours(deviation))
    return found


def load(file: Path) -> Judgements:
    try:
        lines = json.loads(file.read_text())
        found = {name: Judgement(*words) for name, words in lines.items()}
        if any(not isinstance(text, str) for each in found.values() for text in (each.word, each.found)):
            raise ValueError("a verdict is no text")
        return found
    except (OSError, ValueError, TypeError, AttributeError) as mistake:
        raise UserError(f"{paths.shown(file)}: {mistake}") from None


def save(found: Judgements, file: Path) -> None:
    """A line for each, so that a change of one is a change of its line."""
    entries = (f"{json.dumps(k)}: {json.dumps([j.word, j.found])}" for k, j in found.items())
    files.folder(file.parent)
    files.write(file, "{\n" + ",\n".join(entries) + "\n}\n")


def merged(before: Judgements, now: Judgements, experiments: list[str]) -> Judgements:
    """Those of now; of the other experiments there are, those of before."""
    measured = {experiment_of(name) for name in now}
    kept = {n: j for n, j in before.items() if experiment_of(n) not in measured}
    both = {**kept, **now}
    return {n: both[n] for e in experiments for n in both if experiment_of(n) == e}


def experiment_of(name: str) -> str:
    return name.split(": ", 1)[0]


def without(before: Judgements, now: Judgements) -> list[str]:
    """The experiments of now of which no verdict was kept yet: nothing of them can change."""
    kept = {experiment_of(name) for name in before}
    return list(dict.fromkeys(e for n in now if (e := experiment_of(n)) not in kept))


def unmeasured(before: Judgements, now: Judgements, experiments: list[str]) -> list[str]:
    """Those of the experiments that have verdicts, but none of now."""
    kept = {experiment_of(name) for name in before}
    measured = {experiment_of(name) for name in now}
    return [each for each in experiments if each in kept and each not in measured]


def changes(before: Judgements, now: Judgements, experiments: list[str]) -> list[str]:
    """A sentence for each verdict that is another, is new or is gone, of experiments in both; and for
    each experiment of before that is none of `experiments`, those with points today."""
    measured = {experiment_of(name) for name in now}
    unknown = without(before, now)
    said = []
    for name, judgement in now.items():
        old = before.get(name)
        if experiment_of(name) in unknown:
            continue
        if old is None:
            said.append(f"{name} is new: {_told(judgement)}")
        elif old.word != judgement.word:
            said.append(f"{name} was {_told(old)} and is {_told(judgement)}")
    gone = [n for n in before if n not in now and experiment_of(n) in measured]
    lost = Counter(e for n in before if (e := experiment_of(n)) not in (*measured, *experiments))
    return [
        *said,
        *(f"{name} is gone" for name in gone),
        *(f"{name} is gone, with {count} verdicts: it has no points" for name, count in lost.items()),
    ]


def _told(each: Judgement) -> str:
    """In words that go after "is" and "was"."""
    if each.word == NO_MEASUREMENT:
        return NO_MEASUREMENT
    word = "not judged, as it needs the full set" if each.word == NOT_JUDGED else each.word
    return f"{word} ({each.found})"


def _claim(verdict: Verdict) -> str:
    return f"{verdict.experiment}: {verdict.claim.name}"


def _number(deviation: Deviation) -> str:
    part = "" if deviation.part == "value" else f", {deviation.part}"
    number = deviation.number
    return f"{deviation.experiment}: {number.series} at {number.x}{part}"


def _ours(deviation: Deviation) -> str:
    return NO_MEASUREMENT if deviation.ours is None else f"{deviation.ours:.4g}"
