# SPDX-License-Identifier: Apache-2.0
"""`tombolo conformance`: test programs that others wrote, under the stock MPI and under us.

MPICH's own one-sided tests and mpi4py's are judged here, test by test; PETSc's star forests, which are timed
too, in commands/forests.py.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.table import Table

from tombolo import libraries, mpis, options, paths, records, settings
from tombolo.commands import forests
from tombolo.console import console, paragraph
from tombolo.errors import UserError
from tombolo.mpis import Mpi
from tombolo.suite import build as suite_build
from tombolo.suite import judge, mpi4py, petsc, runner, source, testlist
from tombolo.suite.runner import Setting, Verdict

DEFAULT_SEEDS = (1, 2, 3)
MACHINES = ("coherent", "stale")  # of the claim about MPICH's tests
See = Callable[[Verdict], None]


@dataclass
class Subject:
    """A suite of tests, ready to run."""

    title: str
    mpi: Mpi
    known: judge.StockVerdicts
    run: Callable[[Setting, See], Iterable[Verdict]]
    again: Callable[[list[Verdict]], Iterable[Verdict]]  # these tests under the stock MPI
    tests: int | None = None  # where that is known before the first run


def conformance(
    mpi: Annotated[str, typer.Option(help=f"The tests run under this MPI: {options.MPIS}.")] = "mpich",
    machine: Annotated[
        list[str] | None,
        typer.Option(
            help="The tests run on this machine, or on several, or under the MPI alone: "
            f"{options.MACHINES} | stock. [default: all of the claim]"
        ),
    ] = None,
    seed: Annotated[
        list[int] | None,
        typer.Option(
            help="The machine stale draws its evictions from this number, or from several in turn. [default: 1 2 3, of "
            "petsc 1]",
            min=0,
            max=options.LARGEST,
        ),
    ] = None,
    stock: Annotated[
        bool | None, typer.Option("--stock/--no-stock", help="The MPI alone runs the tests first.")
    ] = None,
    slice: Annotated[
        str | None,
        typer.Option(help="Every Nth test runs from the Kth on (K/N), or a short list of MPICH's tests (quick)."),
    ] = None,
    only: Annotated[str | None, typer.Option(help="Only tests run whose names match this regular expression.")] = None,
    suite: Annotated[
        str,
        typer.Option(help="The tests are mpich, mpi4py, petsc, or folders of MPICH's tests, comma-separated."),
    ] = "mpich",
    ranks: Annotated[
        list[int] | None,
        typer.Option(
            "-n",
            min=1,
            help="The tests of mpi4py and petsc have so many processes, or several numbers in turn. [default: 2 3 4, "
            "of petsc 2]",
        ),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Each setting of petsc has its turn so often. [default: 3]")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="So many of MPICH's tests run at a time. [default: 1]")
    ] = None,
    limit: Annotated[
        float,
        typer.Option(help="A test may take so many seconds, and ten times as many on stale.", metavar="SECONDS"),
    ] = 60,
    verbose: Annotated[bool, typer.Option(help="The output of failing tests is shown.")] = False,
    build_only: Annotated[bool, typer.Option(help="The programs are fetched and built, and not run.")] = False,
    former: options.FormerRanks = None,
) -> None:
    """Run test suites of others, with Tombolo and without.

    The status is 1 if a test passes under the stock MPI and not under Tombolo.
    """
    check(suite, slice, only, ranks, rounds, jobs, limit)
    runs = runs_of(suite, machine, seed, stock)
    options.check_readers([setting.machine for setting in runs], {"--seed": seed})
    kind = mpi_of(suite, mpi)
    if kind and not build_only and any(setting.choice for setting in runs):
        libraries.refresh("native")
        libraries.need(kind.kind)  # before the first test rather than in its time
    if suite == "petsc":
        if not build_only:
            forests.show(runs, tuple(ranks or (2,)), rounds or 3, limit)
        return
    if suite == "mpi4py":
        choice = mpi4py.Choice(only, sliced(slice))
        subject = mpi4py_subject(mpis.need(mpi), tuple(ranks or mpi4py.RANKS), choice, limit, build_only)
    else:
        subject = mpich_subject(mpis.need(mpi), folders_of(suite), slice, only, limit, jobs or 1, build_only)
    if subject:
        judged(subject, runs, verbose)


def folders_of(suite: str) -> tuple[str, ...]:
    """The folders of MPICH's tests that a suite is."""
    return suite_build.FOLDERS if suite == "mpich" else tuple(suite.split(","))


def mpi_of(suite: str, mpi: str) -> Mpi | None:
    """The MPI that the suite runs under; None where that of petsc is not there, which comes with it."""
    if suite != "petsc":
        return mpis.need(mpi)
    forests.check_mpi(mpi)
    return mpis.find(petsc.MPI)


def runs_of(suite: str, machine: list[str] | None, seed: list[int] | None, stock: bool | None) -> list[Setting]:
    """The settings that the suite runs under, each in its turn."""
    seeds = tuple(seed or ((1,) if suite == "petsc" else DEFAULT_SEEDS))
    whole = {"mpi4py": mpi4py.MACHINES, "petsc": petsc.MACHINES}.get(suite, MACHINES)
    return settings_for(machine, seeds, stock, whole)


def check(
    suite: str,
    slice_: str | None,
    only: str | None,
    ranks: list[int] | None,
    rounds: int | None,
    jobs: int | None,
    limit: float,
) -> None:
    """A UserError for an option that the suite does not read, or whose value is none, before a suite is fetched."""
    options.check_seconds("--limit", limit)
    options.check_pattern("--only", only)
    if slice_ is not None and (slice_ != "quick" or suite == "mpi4py"):
        testlist.slice_of(slice_)
    of_others = {"--rounds": rounds, "-n": ranks, "--jobs": jobs, "--slice": slice_, "--only": only}
    read = {"petsc": ("--rounds", "-n"), "mpi4py": ("-n", "--slice", "--only")}
    known = read.get(suite, ("--jobs", "--slice", "--only"))
    unread = {name: value for name, value in of_others.items() if name not in known}
    options.check_unused(unread, f"the suite {suite} does not read it")
    if suite not in (*read, "mpich"):
        for folder in suite.split(","):
            if not folder or folder not in suite_build.FOLDERS:
                raise UserError(
                    f"'{folder}' is no suite; there are mpich, mpi4py, petsc, and the folders "
                    f"{', '.join(suite_build.FOLDERS)}"
                )
    for count in ranks or []:
        options.check_processes(count)


def mpich_subject(
    mpi: Mpi,
    folders: tuple[str, ...],
    slice_: str | None,
    only: str | None,
    limit: float,
    jobs: int,
    build_only: bool,
) -> Subject | None:
    """MPICH's tests; None where only building was asked for."""
    where = suite_build.build(mpi, console.print)
    if build_only:
        console.print(f"built in {paths.shown(where)}")
        return None
    tests = testlist.read(where, folders, source.unpacked())
    tests = testlist.choose(tests, slice_, only, judge.quick_tests())
    if not tests:
        raise UserError("no test is left to run")
    by_id = {test.id: test for test in tests}
    return Subject(
        f"MPICH's one-sided tests on {mpi.label}",
        mpi,
        judge.StockVerdicts(where),
        lambda setting, seen: runner.run_all(tests, mpi, where, setting, limit, jobs, seen),
        lambda failures: (runner.run(by_id[v.test], mpi, where, Setting("stock"), limit) for v in failures),
        len(tests),
    )


def mpi4py_subject(
    mpi: Mpi, ranks: tuple[int, ...], choice: mpi4py.Choice, limit: float, build_only: bool
) -> Subject | None:
    """mpi4py's tests; None where only fetching was asked for."""
    tests = mpi4py.prepare(mpi, console.print)
    if build_only:
        console.print(f"fetched into {paths.shown(tests.folder)}")
        return None
    return Subject(
        f"mpi4py's tests with windows on {mpi.label}",
        mpi,
        judge.StockVerdicts(mpi4py.memory(tests)),
        lambda setting, seen: mpi4py.run_all(tests, ranks, choice, setting, limit, seen),
        lambda failures: mpi4py.run_again(tests, failures, limit),
    )


def judged(subject: Subject, runs: list[Setting], verbose: bool) -> None:
    """All runs, the table, and the exit status."""
    mpi, known = subject.mpi, subject.known
    writer = records.Writer(f"conformance-{mpi.key}", mpi=mpi.label, suite=subject.title, tests=subject.tests)
    expected = judge.expected_failures()
    rows = []
    for setting in runs:
        many = f": {subject.tests} tests" if subject.tests else ""
        console.rule(f"{mpi.label}, {setting.label}{many}", align="left")
        start = time.monotonic()
        verdicts = []
        seen = report(verbose, expected if setting.machine == "stale" else {})
        for verdict in subject.run(setting, seen):
            writer.write({"kind": "test", **verdict.record()})
            verdicts.append(verdict)
            if setting.machine == "stock":
                known.learn(verdict)
        ask_stock(verdicts, subject)
        row = judge.summarize(setting, verdicts, known.passes, expected)
        row.seconds = time.monotonic() - start
        rows.append(row)
    console.print(table(subject.title, rows))
    explain(rows, expected)
    console.print(f"records: {paths.shown(writer.path)}")
    fine = sum(row.tests - len(row.unexpected) - len(row.skipped) for row in rows)
    console.print(f"conformance: {fine} passed, {sum(len(r.unexpected) for r in rows)} failed")
    if any(row.unexpected for row in rows):
        raise typer.Exit(1)


def sliced(text: str | None) -> tuple[int, int] | None:
    return testlist.slice_of(text) if text else None


def settings_for(
    machines: list[str] | None,
    seeds: tuple[int, ...],
    stock: bool | None,
    whole: tuple[str, ...] = MACHINES,
) -> list[Setting]:
    """The runs to make, in order; `stale` once for each seed. `whole`: where no machine is named."""
    named = list(machines or whole)
    for name in named:
        settings.check_machine(name, "stock")
    if (stock is None and not machines) or stock:
        named = ["stock", *named]
    runs = []
    for name in dict.fromkeys(named):
        runs += [Setting(name, s) for s in seeds] if name == "stale" else [Setting(name)]
    return runs


def report(verbose: bool, listed: dict[str, str]) -> Callable[[Verdict], None]:
    """A dot for a pass, a line for anything else; `listed`: the tests that may fail."""
    column = 0

    def seen(verdict: Verdict) -> None:
        nonlocal column
        if verdict.passed or verdict.verdict == "skipped":
            column += 1
            print("." if verdict.passed else "s", end="\n" if column % 100 == 0 else "", flush=True)
            return
        print("\n" if column % 100 else "", end="")
        column = 0
        what = verdict.verdict
        if verdict.key in listed or verdict.test in listed:
            what += ", as it may"
        console.print(f"{what}: {verdict.test} ({verdict.seconds:.1f} s)", markup=False)
        if verbose and verdict.output:
            paragraph(verdict.output, style="dim")

    return seen


def ask_stock(verdicts: list[Verdict], subject: Subject) -> None:
    """A failure of ours asks the stock MPI, again if need be, unless it is known to pass."""
    print()
    passes = subject.known.passes
    failures = [v for v in verdicts if not v.passed and not passes.get(v.test, False)]
    for verdict in subject.again(failures):
        subject.known.learn(verdict)


def table(title: str, rows: list[judge.Summary]) -> Table:
    result = Table(title=title, title_justify="left")
    for heading in (
        "setting",
        "tests",
        "passed",
        "expected failures",
        "fails under stock too",
        "skipped",
        "fails only here",
        "passes only here",
        "windows served",
        "seconds",
    ):
        result.add_column(heading, justify="left" if heading == "setting" else "right")
    for row in rows:
        stock = row.setting.machine == "stock"
        served = "" if stock else "no statistics" if row.share is None else f"{row.share:.1%}"
        result.add_row(
            row.setting.label,
            str(row.tests),
            str(row.passed),
            "" if stock else str(len(row.expected)),
            str(len(row.as_stock)),
            str(len(row.skipped)),
            "" if stock else str(len(row.unexpected)),
            "" if stock else str(len(row.gained)),
            served,
            f"{row.seconds:.0f}",
        )
    return result


def explain(rows: list[judge.Summary], expected: dict[str, str]) -> None:
    """Names behind the numbers."""
    for row in rows:
        for verdict in row.unexpected:
            says = runner.complaint(verdict.output)
            paragraph(f"{row.setting.label}: {verdict.verdict}: {verdict.test}  {says}", style="red")
    shown = {v.key: expected.get(v.key) or expected[v.test] for row in rows for v in row.expected}
    for key, sentence in sorted(shown.items()):
        paragraph(f"expected on stale: {key}: {sentence}")
    alike = {f"{v.test} ({v.verdict})" for row in rows for v in row.as_stock}
    if alike:
        paragraph("fails under the stock MPI: " + ", ".join(sorted(alike)))
    why = {reason for row in rows for reason in row.reasons}
    if why:
        paragraph("windows were forwarded because: " + "; ".join(sorted(why)))
