# SPDX-License-Identifier: Apache-2.0
"""The report's tables of the verdicts that change with a parameter, or with the seed."""

from html import escape

from tombolo import hints
from tombolo.scc.catalogue import FULL
from tombolo.scc.markup import details, table
from tombolo.scc.sensitivity_table import Flip, Table
from tombolo.scc.verdicts import Verdict

SETS = {"quick": "few points and repetitions (quick)", "full": "all points (full)"}


def render(found: Table | None, verdicts: list[Verdict]) -> str:
    """`verdicts` name the claims: all others that flip are numbers of a paper. Claims that the table's
    set does not judge cannot flip."""
    if found is None:
        return f"<p>There is a table of the default chip alone, {hints.SENSITIVITY}.</p>"
    quick = found.points == "quick"
    standings = {
        f"{v.experiment}: {v.claim.name}": v.claim.standing
        for v in verdicts
        if v.values and not (quick and v.claim.needs == FULL)
    }
    stale = "<p class='bad'>The chip's parameters are others today: measure it again.</p>" if found.outdated else ""
    return (
        f"<p>One parameter is changed at a time, or the seed. Of the set of {SETS[found.points]}. "
        f"{escape(sturdy(found, standings))}</p>{stale}"
        + _variants(found, standings)
        + details("The claims that flip", _flips(found, standings, claims=True), opened=True)
        + details("The numbers that flip", _flips(found, standings, claims=False))
    )


def sturdy(found: Table, standings: dict[str, str]) -> str:
    """How many claims keep their verdict whatever is changed."""
    flipped = {flip.name for each in found.outcomes for flip in each.flips if flip.name in standings}
    free = [name for name, standing in standings.items() if standing == "independent"]
    moved = sum(name in flipped for name in free)
    return (
        f"{len(flipped)} of {len(standings)} claims flip with one of the {len(found.outcomes)} "
        f"variants; of the {len(free)} independent ones {moved} do."
    )


def _variants(found: Table, standings: dict[str, str]) -> str:
    headings = ("variant", "change", "points measured anew", "claims that flip", "numbers that flip")
    rows = []
    for each in found.outcomes:
        claims = sum(flip.name in standings for flip in each.flips)
        counts = (each.points, claims, len(each.flips) - claims)
        rows.append([escape(each.variant), escape(each.change), *((str(n), "number") for n in counts)])
    return table(headings, rows, cards=True)


def _flips(found: Table, standings: dict[str, str], claims: bool) -> str:
    """A row for each verdict, with the variants that change it."""
    rows: dict[str, list[tuple[str, Flip]]] = {}
    for outcome in found.outcomes:
        for flip in outcome.flips:
            if (flip.name in standings) == claims:
                rows.setdefault(flip.name, []).append((outcome.variant, flip))
    if not rows:
        return "<p>None.</p>"
    headings = ("verdict of", *(("evidence",) if claims else ()), "as it is", "with the variants")
    return table(headings, (_row(name, rows[name], standings) for name in rows), cards=True)


def _row(name: str, flips: list[tuple[str, Flip]], standings: dict[str, str]) -> list:
    first = flips[0][1]
    varied = "; ".join(f"{variant}: {flip.varied_word}, {flip.varied_found}" for variant, flip in flips)
    standing = [escape(standings[name])] if name in standings else []
    return [escape(name), *standing, escape(f"{first.word}, {first.found}"), escape(varied)]
