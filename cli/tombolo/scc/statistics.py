# SPDX-License-Identifier: Apache-2.0
"""How busy the parts of the chip were in a point, how long requests waited there, and how its
cores spent their time: as the native program tells it, as JSON and as a picture of the chip."""

import json
from dataclasses import asdict
from pathlib import Path
from statistics import mean

from tombolo import files, records
from tombolo.errors import UserError
from tombolo.scc import native, store
from tombolo.scc.native import Setting
from tombolo.scc.simulated import Core, Part, Run
from tombolo.scc.uses import CORES, COUNTS, GOT, KINDS, OF_PARTS, SHARES, Use


def folder(setting: Setting, build: str) -> Path:
    """Of those of a chip and of a build of the program, by its digest: as results are kept apart."""
    return store.folder() / f"statistics-{setting.label}-{build}"


def measure(program: Path, experiment: str, point: str, setting: Setting) -> list[Run]:
    """Runs a point; one entry for each of its simulations."""
    made = native.Point(experiment, point, cost=0, memory=0)
    command = native.command(program, made, setting, statistics=True)
    told = [native.parse(line) or {} for line in native.ask(program, *command[1:])]
    found = [read(line) for line in told if "statistics" in line]
    if not found:
        raise UserError(f"{experiment} {point} simulates nothing: there are no statistics of it")
    return found


def read(line: dict) -> Run:
    try:
        records.check_numbers(line, "columns", "rows", "end_us")
        for each in (*line["parts"], *line["cores"]):
            records.check_numbers(each, *(name for name in each if name != "part"))
        parts = tuple(Part(**each) for each in line["parts"])
        if any(not part.name for part in parts):  # of a link, by the number of a direction
            raise ValueError("a part has no name")
        return Run(
            line["experiment"], line["statistics"], line["chip"], line["columns"], line["rows"],
            line["end_us"],
            parts,
            tuple(Core(**each) for each in line["cores"]),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, IndexError) as mistake:
        raise UserError(f"statistics that this command cannot read: {mistake}") from None


def use(run: Run) -> Use:
    """The busiest of each kind of part; of the cores the mean shares of the time, and the counts of all
    together."""
    found = {}
    for kind in KINDS:
        if parts := run.of(kind):
            found[kind] = {each: getattr(parts[0], each) for each in OF_PARTS}
    if run.cores:
        shares = {each: mean(getattr(core, each) for core in run.cores) for each in SHARES}
        counts = {each: sum(getattr(core, each) for core in run.cores) for each in COUNTS}
        counts[GOT] = counts["tests"] - counts["tests_failed"]
        found[CORES] = {**shares, **counts}
    return found


def longest(runs: list[Run]) -> Run:
    """The one to show where a point simulates several times."""
    return max(runs, key=lambda run: run.end_us)


def save(runs: list[Run], within: Path) -> Path:
    """Writes the JSON and the picture into a folder; returns the stem of both. The JSON, by which
    they are found, comes last and whole."""
    from tombolo.scc import chip_picture  # matplotlib is slow to load and only needed here

    shown = longest(runs)
    at = within / f"{shown.experiment}-{shown.point}"
    files.folder(within)
    files.write(at.with_name(f"{at.name}.svg"), chip_picture.svg(shown))
    files.write(at.with_name(f"{at.name}.json"), json.dumps([asdict(run) for run in runs], indent=1) + "\n")
    return at


def saved(setting: Setting, builds: set[str]) -> list[tuple[Run | None, Path]]:
    """The shown runs of all points that were measured with these builds of the program, of each the
    latest, and the files of their JSON; no run where a file cannot be read."""
    files = [file for build in sorted(builds) for file in folder(setting, build).glob("*.json")]
    latest = {file.name: file for file in sorted(files, key=lambda file: file.stat().st_mtime_ns)}
    return [(_kept(latest[name]), latest[name]) for name in sorted(latest)]


def _kept(file: Path) -> Run | None:
    try:
        told = json.loads(file.read_text())
        runs = [read({**each, "statistics": each["point"]}) for each in told]
        return longest(runs) if file.with_suffix(".svg").is_file() else None
    except (OSError, ValueError, TypeError, KeyError, UserError):
        return None


def summary(run: Run) -> list[tuple[str, str, str, str]]:
    """For each kind of part: the busiest, its utilisation, its mean wait, and the mean wait of all."""
    rows = []
    for kind in KINDS:
        if parts := run.of(kind):
            busiest, served = parts[0], sum(p.served for p in parts)
            wait = sum(p.mean_wait_ns * p.served for p in parts) / served if served else 0.0
            rows.append((busiest.name, f"{busiest.utilisation:.0%}", f"{busiest.mean_wait_ns:.0f} ns",
                         f"{wait:.0f} ns"))  # fmt: skip
    return rows


def of_cores(run: Run) -> list[tuple[str, str]]:
    """How the cores spent the run, on the mean."""
    if not run.cores:
        return []
    shares = [
        (text, f"{mean(getattr(core, name) for core in run.cores):.0%}")
        for name, text in (
            ("reading", "waiting for loads"),
            ("writing", "waiting for the store before"),
            ("testing", "waiting for registers"),
            ("working", "work within the core, and pauses"),
        )
    ]
    tests = sum(core.tests for core in run.cores)
    failed = sum(core.tests_failed for core in run.cores)
    if tests:
        shares.append(("registers that were taken when read", f"{failed / tests:.0%} of {tests}"))
    return shares
