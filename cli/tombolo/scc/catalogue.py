# SPDX-License-Identifier: Apache-2.0
"""The papers' measurements: figures, series, numbers and claims, one file beside the sources of
each experiment; `experiments/README.md` describes the files."""

import math
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from tombolo import paths
from tombolo.errors import UserError
from tombolo.scc import uses

WITHIN = 0.25
LAST = 1_000_000  # the place of an experiment that states none, as experiments/CMakeLists.txt has it
CLAIM_KINDS = (
    "value", "ratio", "difference", "flat", "linear", "slope", "efficiency", "count", "deadlocks",
    "spread", "quartiles", "third-quartiles", "below-quartile", "use",
)  # fmt: skip
EVIDENCE = ("independent", "fitted", "by-construction")
OURS = "ours"  # the source, and the class, of claims about our own algorithms
DEADLOCKS = "deadlocks"  # the kind of claims about points that do not end
USE = "use"  # the kind of claims about how busy parts were
FULL = "full"  # the set that a claim needs which the few samples of the quick set do not carry
X = float | int | str


@dataclass(frozen=True)
class Axis:
    name: str
    unit: str
    scale: str = "linear"  # linear, log, log2, category
    categories: tuple[X, ...] = ()

    @property
    def label(self) -> str:
        return f"{self.name} / {self.unit}" if self.unit else self.name


@dataclass(frozen=True)
class Series:
    name: str
    meaning: str
    bar: str = ""  # of a stacked figure: which bar, and which part of it
    part: str = ""


@dataclass(frozen=True)
class Figure:
    name: str
    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    paper: str = ""
    kind: str = "lines"  # lines, bars, stacked, matrix
    rows: str = ""  # of a matrix: the meaning of a series' number


@dataclass(frozen=True)
class Number:
    """One number of a paper; `exact`: printed as a number, not as "around"; `evidence`: fitted, if
    a parameter or a part of the model was chosen by it, by-construction, if a parameter, or
    another number, is it."""

    series: str
    x: X
    value: float
    source: str
    exact: bool
    quartile1: float | None = None
    quartile3: float | None = None
    evidence: str = "independent"
    needs: str = ""  # as of a claim

    @property
    def standing(self) -> str:
        """The conclusion from it, in a word."""
        if self.evidence == "independent":
            return "exact" if self.exact else "approximate"
        return self.evidence


@dataclass(frozen=True)
class Claim:
    """A sentence that `verdicts` checks; `experiments/README.md` lists the kinds."""

    name: str
    kind: str
    series: str  # none for USE
    source: str
    evidence: str = ""
    rests_on: str = ""  # the choice that makes it fitted or true by construction
    needs: str = ""
    to: str | None = None
    x: tuple[X, ...] = ()
    to_x: X | None = None
    since: float = -math.inf
    until: float = math.inf
    low: float = -math.inf
    high: float = math.inf
    states: float | None = None  # the one value that the paper states: its bounds are WITHIN of it
    bounds: str = ""  # why both are others
    points: str = ""  # a pattern of those that deadlock; for USE, the point
    part: str = ""  # for USE: a kind of part, "cores", or "any"
    figure: str = ""  # for USE: utilisation, mean_wait_ns, or one of the cores' shares and counts
    per: float = 1.0  # for USE: by which it is divided

    @property
    def standing(self) -> str:
        """Its class: one of EVIDENCE, or OURS."""
        return OURS if self.source == OURS else self.evidence

    def about(self, series: str, x: X) -> bool:
        """Whether its value depends on that one; of a paper's x, not of those measured."""
        if series == self.series and self._within(x):
            return True
        if series != (self.to or self.series):
            return False
        if self.to_x is not None:
            return same(x, self.to_x)
        return self.to is not None and self._within(x)

    def _within(self, x: X) -> bool:
        if self.x:
            return any(same(x, each) for each in self.x)
        return isinstance(x, str) or self.since <= x <= self.until


@dataclass(frozen=True)
class Experiment:
    name: str
    title: str
    figures: tuple[Figure, ...]
    numbers: tuple[Number, ...] = ()
    claims: tuple[Claim, ...] = ()
    within: float = WITHIN  # a larger deviation from the paper needs a reason
    order: int = LAST  # its place in lists
    remarks: tuple[str, ...] = ()  # sentences that a reader of its figures must know; `with_values`
    long: bool = False  # takes so long that it is run only where it is named
    statistics: tuple[str, ...] = ()  # the points of which the report shows how busy the parts were
    many_numbers: bool = False  # of papers: the page has them open, and the console the bad ones alone

    def units(self) -> dict[str, str]:
        """The unit of each series."""
        return {s.name: figure.y.unit for figure in self.figures for s in figure.series}

    def papers(self) -> str:
        """Where its figures are printed; empty where no paper has them."""
        return "; ".join(dict.fromkeys(f.paper for f in self.figures if f.paper))


@dataclass(frozen=True)
class Reason:
    """Why a series, or one point of it, lies further from the paper than it should; or why a claim,
    named by `claim`, does not hold."""

    experiment: str
    text: str
    series: str = ""
    x: X | None = None
    claim: str = ""

    def __post_init__(self) -> None:
        if bool(self.series) == bool(self.claim):
            raise ValueError(f"a reason of {self.experiment} needs a series or a claim")


@dataclass(frozen=True)
class Catalogue:
    experiments: dict[str, Experiment] = field(default_factory=dict)
    reasons: tuple[Reason, ...] = ()

    def reason(self, experiment: str, series: str, x: X) -> str:
        """The reason for that point, else for its series, else an empty text."""
        found = ""
        for each in self.reasons:
            if (each.experiment, each.series) != (experiment, series):
                continue
            if each.x is not None and same(each.x, x):
                return each.text
            if each.x is None:
                found = each.text
        return found

    def reason_of_claim(self, experiment: str, name: str) -> str:
        """Why that claim does not hold, else an empty text."""
        of = (experiment, name)
        return next((r.text for r in self.reasons if (r.experiment, r.claim) == of), "")


def same(a: X, b: X) -> bool:
    """Whether two places on an x axis are one; categories compare as text."""
    if isinstance(a, str) or isinstance(b, str):
        return str(a) == str(b)
    return math.isclose(a, b, rel_tol=1e-9)


def load(folder: Path | None = None) -> Catalogue:
    """All experiments, by name, and the reasons; a mistake in a file is a UserError that names it."""
    return _of_texts(tuple((path, _text(path)) for path in _files(folder or _folder())))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as mistake:
        raise UserError(f"{paths.shown(path)}: {mistake}") from None


@lru_cache(maxsize=1)  # a command asks several times, and a short one does little but parse them
def _of_texts(texts: tuple[tuple[Path, str], ...]) -> Catalogue:
    experiments, reasons = [], []
    for path, text in texts:
        try:
            tables = tomllib.loads(text)
            made = _experiment(tables)
            if made.name != path.stem:
                raise ValueError(f"the file of '{made.name}' must be {made.name}.toml")
            experiments.append(made)
            reasons += [Reason(made.name, **each) for each in tables.get("reason", [])]
        except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as mistake:
            raise UserError(f"{paths.shown(path)}: {_sentence(mistake)}") from None
    experiments.sort(key=lambda each: (each.order, each.name))
    return Catalogue({each.name: each for each in experiments}, tuple(reasons))


def _folder() -> Path:
    """The experiments' folders of the checkout, or where the package has their files."""
    root = paths.checkout()
    return root / "experiments" if root else paths.DATA / "scc"


def _files(folder: Path) -> list[Path]:
    """In a checkout each lies in its experiment's folder, in a package all lie in one."""
    return sorted([*folder.glob("*.toml"), *folder.glob("*/*.toml")])


def _sentence(mistake: Exception) -> str:
    return f"lacks {mistake}" if isinstance(mistake, KeyError) else str(mistake)


def _experiment(tables: dict) -> Experiment:
    figures = tuple(_figure(dict(each)) for each in tables["figure"])
    made = Experiment(
        tables["name"],
        tables["title"],
        figures,
        tuple(number for each in tables.get("paper", []) for number in _numbers(each)),
        tuple(_claim(dict(each)) for each in tables.get("claim", [])),
        tables.get("within", WITHIN),
        tables.get("order", LAST),
        tuple(tables.get("remarks", ())),
        tables.get("long", False),
        tuple(tables.get("statistics", ())),
        tables.get("many_numbers", False),
    )
    known = made.units()
    for name in [n.series for n in made.numbers] + [s for c in made.claims for s in (c.series, c.to) if s]:
        if name not in known:
            raise ValueError(f"no figure has the series '{name}'")
    for claim in made.claims:
        _check_evidence(claim, made.numbers)
        if claim.kind == USE and claim.points not in made.statistics:
            raise ValueError(f"the claim '{claim.name}': statistics does not name {claim.points}")
    return made


def _check_evidence(claim: Claim, numbers: tuple[Number, ...]) -> None:
    """A claim of a paper names its evidence; an independent one is about independent numbers only."""
    called = f"the claim '{claim.name}'"
    if claim.source == OURS:
        if claim.evidence or claim.rests_on:
            raise ValueError(f"{called} is about ours, and no evidence of the simulated chip")
        return
    if claim.evidence not in EVIDENCE:
        raise ValueError(f"{called} needs evidence, one of {', '.join(EVIDENCE)}")
    if claim.evidence != "independent":
        if not claim.rests_on:
            raise ValueError(f"{called} is {claim.evidence} and needs rests_on, by what")
        return
    if claim.rests_on:
        raise ValueError(f"{called} is independent and rests_on something")
    for n in numbers:
        if n.evidence != "independent" and claim.about(n.series, n.x):
            raise ValueError(f"{called} is not independent: {n.series} at {n.x} is {n.evidence}")


def _figure(table: dict) -> Figure:
    x, y = dict(table.pop("x")), dict(table.pop("y"))
    x["categories"] = tuple(x.get("categories", ()))
    series = tuple(s for each in table.pop("series") for s in _series(dict(each)))
    return Figure(x=Axis(**x), y=Axis(**y), series=series, **table)


def _series(table: dict) -> Iterator[Series]:
    """One, or `number` of them, whose numbers stand for {} in the texts."""
    number = table.pop("number", None)
    if number is None:
        yield Series(**table)
        return
    for n in range(number):
        yield Series(**{key: text.replace("{}", str(n)) for key, text in table.items()})


def _numbers(table: dict) -> Iterator[Number]:
    places_x = table["x"]
    marks = [(word, table.get(word, {})) for word in EVIDENCE[1:]]
    needing = table.get("needs-full", {})
    for word, marked in [*marks, ("needs-full", needing)]:
        for series, places in marked.items():
            if not all(any(same(x, each) for each in places_x) for x in places):
                raise ValueError(f"{word}: {series} has no number at each of {places}")
    for series, values in table["values"].items():
        q1 = table.get("quartile1", {}).get(series, [None] * len(places_x))
        q3 = table.get("quartile3", {}).get(series, [None] * len(places_x))
        if not len(values) == len(q1) == len(q3) == len(places_x):
            raise ValueError(f"{series}: {len(values)} values for {len(places_x)} places of x")
        for x, value, low, high in zip(places_x, values, q1, q3, strict=True):
            if not math.isnan(value):
                words = [w for w, m in marks if any(same(x, each) for each in m.get(series, []))]
                if len(words) > 1:
                    raise ValueError(f"{series} at {x} is {' and '.join(words)}")
                evidence = words[0] if words else "independent"
                needs = FULL if any(same(x, each) for each in needing.get(series, [])) else ""
                yield Number(series, x, value, table["source"], table["exact"], low, high, evidence, needs)


def _claim(table: dict) -> Claim:
    table["x"] = tuple(table.get("x", ()))
    if table.get("kind") == USE:
        table["series"] = ""
    if "from" in table:
        table["since"] = table.pop("from")
    claim = Claim(**table)
    if claim.kind not in CLAIM_KINDS:
        raise ValueError(f"'{claim.kind}' is no kind of claim; there are {', '.join(CLAIM_KINDS)}")
    if (claim.kind == USE) != bool(claim.part and claim.figure):
        raise ValueError(f"the claim '{claim.name}': '{USE}', and no other kind, needs part and figure")
    if claim.kind == USE:
        _check_use(claim)
        return _bounded(claim)
    if (claim.kind == DEADLOCKS) != bool(claim.points) or (claim.points and not claim.to):
        raise ValueError(f"the claim '{claim.name}': '{DEADLOCKS}', and no other kind, needs points, and to")
    return _bounded(claim)


def _check_use(claim: Claim) -> None:
    if claim.part not in (*uses.KINDS, uses.CORES, uses.ANY):
        raise ValueError(f"the claim '{claim.name}': there is no part '{claim.part}'")
    if claim.figure not in (uses.OF_CORES if claim.part == uses.CORES else uses.OF_PARTS):
        raise ValueError(f"the claim '{claim.name}': no figure '{claim.figure}' of {claim.part}")


def _bounded(claim: Claim) -> Claim:
    """With the bounds that the project has for a stated value; where both are others, it says why."""
    if claim.states is not None:
        if claim.bounds or not (math.isinf(claim.low) and math.isinf(claim.high)):
            raise ValueError(f"the claim '{claim.name}' states a value, which gives its bounds")
        low, high = sorted((claim.states * (1 - WITHIN), claim.states * (1 + WITHIN)))
        claim = replace(claim, low=low, high=high)
    elif claim.source != OURS and not claim.bounds and -math.inf < claim.low < claim.high < math.inf:
        raise ValueError(f"the claim '{claim.name}' needs states, the paper's value, or bounds, why these")
    if math.isinf(claim.low) and math.isinf(claim.high):
        raise ValueError(f"the claim '{claim.name}' has neither low nor high")
    if claim.needs not in ("", FULL):
        raise ValueError(f"the claim '{claim.name}' needs '{claim.needs}'; there is '{FULL}'")
    return claim
