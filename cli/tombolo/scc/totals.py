# SPDX-License-Identifier: Apache-2.0
"""How many claims hold and how many numbers are met, for each class of evidence."""

from dataclasses import dataclass

from tombolo.scc.catalogue import EVIDENCE, OURS
from tombolo.scc.verdicts import Deviation, Verdict

CLASSES = (*EVIDENCE, OURS)
MEANINGS = {
    "independent": "nothing in the model was chosen by them",
    "fitted": "a parameter or a part of the model was chosen by them, so that they show little",
    "by-construction": "a parameter, a switch or another number says the same, so that they show nothing",
    OURS: "of our algorithms beside the papers', on the same chip; in no paper",
}


@dataclass(frozen=True)
class Total:
    """Of one class of evidence."""

    standing: str
    held: int
    failed: int
    open: int  # not measured, or by too few samples

    @property
    def judged(self) -> int:
        return self.held + self.failed


def of_claims(verdicts: list[Verdict]) -> list[Total]:
    """One for each class, in the order of CLASSES."""
    return _totals([(each.claim.standing, each.held) for each in verdicts])


def of_numbers(deviations: list[Deviation]) -> list[Total]:
    """Likewise; a number is met within the limit of its experiment. Quartiles count as numbers."""
    return _totals([(each.number.evidence, each.good) for each in deviations])


def _totals(judged: list[tuple[str, bool | None]]) -> list[Total]:
    made = []
    for name in CLASSES:
        of = [good for standing, good in judged if standing == name]
        made.append(Total(name, of.count(True), of.count(False), of.count(None)))
    return made


def headline(verdicts: list[Verdict], deviations: list[Deviation]) -> str:
    """The sentence for the independent ones: those that can speak for the model or against it."""
    claims, numbers = of_claims(verdicts)[0], of_numbers(deviations)[0]
    return (
        f"{claims.held} of {claims.judged} independent claims of the papers hold here, and "
        f"{numbers.held} of {numbers.judged} of their independent numbers are met."
    )
