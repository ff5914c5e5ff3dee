# SPDX-License-Identifier: Apache-2.0
"""Compares the measured values with the papers: deviations of numbers, and claims held or not."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from statistics import linear_regression, mean

from tombolo.scc.catalogue import FULL, Catalogue, Claim, Experiment, Number, X, same
from tombolo.scc.uses import ANY, Use

NO_MEASUREMENT = "not measured"
NOT_JUDGED = "needs the full set"
QUOTED = re.compile(r"\{([^{}]+?) at ([^{}/]+?)(?: / ([^{}]+?) at ([^{}/]+?))?\}")


@dataclass(frozen=True)
class Sample:
    """One measured value."""

    x: X
    value: float
    quartile1: float | None = None
    quartile3: float | None = None
    note: str = ""


class Measured:
    """The values of one experiment by series, in the order of x."""

    def __init__(
        self,
        experiment: Experiment,
        lines: list[dict],
        deadlocked: tuple[str, ...] = (),
        uses: dict[str, Use] | None = None,
    ) -> None:
        """Leaves out lines of unknown series or another unit than the figure's: see `strangers`.
        `deadlocked`: the points that ended so. `uses`: how busy parts were, by point, as
        `statistics.use` has it."""
        self.deadlocked, self.uses = deadlocked, uses or {}
        self.series: dict[str, list[Sample]] = {}
        self.strangers: list[str] = []
        units = experiment.units()
        for line in lines:
            name, unit = line["series"], line["unit"]
            if name not in units:
                self._stranger(f"{experiment.name}: no figure has the series '{name}'")
            elif unit != units[name]:
                self._stranger(f"{experiment.name}: {name} is measured in '{unit}', its figure has '{units[name]}'")
            else:
                self.series.setdefault(name, []).append(sample(line))
        for samples in self.series.values():
            samples.sort(key=lambda each: (isinstance(each.x, str), each.x))

    def at(self, series: str, x: X) -> Sample | None:
        return next((s for s in self.series.get(series, []) if same(s.x, x)), None)

    def _stranger(self, sentence: str) -> None:
        if sentence not in self.strangers:
            self.strangers.append(sentence)


def with_values(sentence: str, measured: Measured) -> str:
    """A sentence of a file with our values for `{SERIES at X}` and `{SERIES at X / SERIES at X}`."""

    def ours(series: str, x: str) -> float | None:
        found = measured.at(series, float(x) if x.replace(".", "").isdigit() else x)
        return found.value if found else None

    def told(match: re.Match) -> str:
        series, x, other, other_x = match.groups()
        value, by = ours(series, x), ours(other, other_x) if other else 1.0
        if value is None or by is None:
            return NO_MEASUREMENT
        return f"{_over(value, by):.3g}"

    return QUOTED.sub(told, sentence)


def sample(line: dict) -> Sample:
    return Sample(line["x"], line["value"], line.get("quartile1"), line.get("quartile3"), line.get("note", ""))


@dataclass(frozen=True)
class Deviation:
    """A number of a paper beside ours; `part`: value, quartile 1 or quartile 3."""

    experiment: str
    number: Number
    part: str
    paper: float
    ours: float | None
    unit: str
    within: float
    reason: str
    judged: bool = True  # false: by samples too few for it

    @property
    def share(self) -> float | None:
        """(ours - paper) / paper; None where nothing was measured."""
        if self.ours is None:
            return None
        if self.paper == 0:
            return 0.0 if self.ours == 0 else math.inf
        return (self.ours - self.paper) / self.paper

    @property
    def good(self) -> bool | None:
        """None: not measured, or not judged."""
        return None if self.share is None or not self.judged else abs(self.share) <= self.within

    @property
    def word(self) -> str:
        if self.share is None:
            return NO_MEASUREMENT
        return {True: "met", False: "not met", None: NOT_JUDGED}[self.good]


def deviations(
    catalogue: Catalogue, experiment: Experiment, measured: Measured, quick: bool = False
) -> list[Deviation]:
    """One for each number of the papers, and for its quartiles; `quick`: those that need the full set
    are not judged."""
    units, found = experiment.units(), []
    for number in experiment.numbers:
        ours = measured.at(number.series, number.x)
        reason = catalogue.reason(experiment.name, number.series, number.x)
        for part, key in (("value",) * 2, ("quartile 1", "quartile1"), ("quartile 3", "quartile3")):
            paper = getattr(number, key)
            if paper is not None:
                found.append(
                    Deviation(
                        experiment.name,
                        number,
                        part,
                        paper,
                        getattr(ours, key) if ours else None,
                        units[number.series],
                        experiment.within,
                        reason,
                        judged=not (quick and number.needs == FULL),
                    )
                )
    return found


@dataclass(frozen=True)
class Verdict:
    """A claim and its values, which should lie between its bounds."""

    experiment: str
    claim: Claim
    values: tuple[float, ...]
    reason: str = ""
    judged: bool = True  # false: by samples too few for it

    @property
    def held(self) -> bool | None:
        """None: not measured, or not judged."""
        if not self.values or not self.judged:
            return None
        return all(self.claim.low <= value <= self.claim.high for value in self.values)

    @property
    def word(self) -> str:
        if not self.values:
            return NO_MEASUREMENT
        return {True: "held", False: "not held", None: NOT_JUDGED}[self.held]

    @property
    def found(self) -> str:
        if not self.values:
            return NO_MEASUREMENT
        low, high = min(self.values), max(self.values)
        return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"

    @property
    def wanted(self) -> str:
        low, high = self.claim.low, self.claim.high
        if math.isinf(low):
            return f"at most {high:g}"
        if math.isinf(high):
            return f"at least {low:g}"
        return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def verdicts(catalogue: Catalogue, experiment: Experiment, measured: Measured, quick: bool = False) -> list[Verdict]:
    """One for each claim; `quick`: those that need the full set are not judged."""
    return [
        Verdict(
            experiment.name,
            claim,
            tuple(KINDS[claim.kind](claim, measured)),
            catalogue.reason_of_claim(experiment.name, claim.name),
            judged=not (quick and claim.needs == FULL),
        )
        for claim in experiment.claims
    ]


def _samples(claim: Claim, measured: Measured) -> list[Sample]:
    """The samples that a claim is about; none unless all places that it names were measured."""
    if claim.x:
        named = [measured.at(claim.series, x) for x in claim.x]
        return [] if None in named else [s for s in named if s is not None]
    return [
        s for s in measured.series.get(claim.series, []) if isinstance(s.x, str) or claim.since <= s.x <= claim.until
    ]


def _pairs(claim: Claim, measured: Measured) -> list[tuple[Sample, Sample]]:
    """Each sample with the one that it is compared to."""
    other = claim.to or claim.series
    found = []
    for each in _samples(claim, measured):
        beside = measured.at(other, each.x if claim.to_x is None else claim.to_x)
        if beside is not None:
            found.append((each, beside))
    return found


def _value(claim: Claim, measured: Measured) -> list[float]:
    return [s.value for s in _samples(claim, measured)]


def _ratio(claim: Claim, measured: Measured) -> list[float]:
    return [_over(a.value, b.value) for a, b in _pairs(claim, measured)]


def _difference(claim: Claim, measured: Measured) -> list[float]:
    return [a.value - b.value for a, b in _pairs(claim, measured)]


def _flat(claim: Claim, measured: Measured) -> list[float]:
    values = _value(claim, measured)
    return [_over(max(values), min(values))] if len(values) > 1 else []


def _line(claim: Claim, measured: Measured) -> tuple[list[float], list[float]] | None:
    samples = [s for s in _samples(claim, measured) if not isinstance(s.x, str)]
    if len(samples) < 3:
        return None
    return [float(s.x) for s in samples], [s.value for s in samples]


def _slope(claim: Claim, measured: Measured) -> list[float]:
    line = _line(claim, measured)
    return [linear_regression(*line).slope] if line else []


def _linear(claim: Claim, measured: Measured) -> list[float]:
    """R²; 0 where the line falls."""
    line = _line(claim, measured)
    if line is None:
        return []
    xs, ys = line
    fit = linear_regression(xs, ys)
    total = sum((y - mean(ys)) ** 2 for y in ys)
    if fit.slope <= 0 or total == 0:
        return [0.0]
    rest = sum((y - fit.slope * x - fit.intercept) ** 2 for x, y in zip(xs, ys, strict=True))
    return [1 - rest / total]


def _efficiency(claim: Claim, measured: Measured) -> list[float]:
    return [_over(s.value, s.x) for s in _samples(claim, measured) if not isinstance(s.x, str)]


def _count(claim: Claim, measured: Measured) -> list[float]:
    """How many places were measured, of a series that was measured at all."""
    return [float(len(_samples(claim, measured)))] if claim.series in measured.series else []


def _deadlocks(claim: Claim, measured: Measured) -> list[float]:
    """How many places were measured; 0 only where as many of the claim's points deadlocked as there
    are places of `to`: a point that failed for another reason shows nothing."""
    if ended := len(_samples(claim, measured)):
        return [float(ended)]
    places = _samples(replace(claim, series=claim.to or ""), measured)
    dead = [point for point in measured.deadlocked if fnmatchcase(point, claim.points)]
    return [0.0] if places and len(dead) == len(places) else []


def _use(claim: Claim, measured: Measured) -> list[float]:
    """Of a kind of part, or the largest of all that have the figure."""
    kinds = measured.uses.get(claim.points, {})
    chosen = kinds.values() if claim.part == ANY else [kinds.get(claim.part, {})]
    found = [each[claim.figure] / claim.per for each in chosen if claim.figure in each]
    return [max(found)] if found else []


def _spread(claim: Claim, measured: Measured) -> list[float]:
    return [
        _over(s.quartile3 - s.quartile1, s.value)
        for s in _samples(claim, measured)
        if s.quartile1 is not None and s.quartile3 is not None
    ]


def _quartiles(claim: Claim, measured: Measured) -> list[float]:
    return [
        _over(max(s.value - s.quartile1, s.quartile3 - s.value), s.value)
        for s in _samples(claim, measured)
        if s.quartile1 is not None and s.quartile3 is not None
    ]


def _third_quartiles(claim: Claim, measured: Measured) -> list[float]:
    return [
        _over(a.quartile3, b.quartile3)
        for a, b in _pairs(claim, measured)
        if a.quartile3 is not None and b.quartile3 is not None
    ]


def _below_quartile(claim: Claim, measured: Measured) -> list[float]:
    return [
        _over(a.quartile3, b.quartile1)
        for a, b in _pairs(claim, measured)
        if a.quartile3 is not None and b.quartile1 is not None
    ]


def _over(a: float, b: float) -> float:
    return a / b if b else math.inf


KINDS: dict[str, Callable[[Claim, Measured], list[float]]] = {
    "value": _value,
    "ratio": _ratio,
    "difference": _difference,
    "flat": _flat,
    "linear": _linear,
    "slope": _slope,
    "efficiency": _efficiency,
    "count": _count,
    "deadlocks": _deadlocks,
    "spread": _spread,
    "quartiles": _quartiles,
    "third-quartiles": _third_quartiles,
    "below-quartile": _below_quartile,
    "use": _use,
}
