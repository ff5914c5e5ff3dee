# SPDX-License-Identifier: Apache-2.0
"""`tombolo conformance`: MPICH's own one-sided test programs, under the stock MPI and under us."""

import time
from typing import Annotated

import typer
from rich.table import Table

from tombolo import libraries, mpis, paths, records, settings
from tombolo.console import console, paragraph
from tombolo.errors import UserError
from tombolo.suite import build as suite_build
from tombolo.suite import judge, runner, source, testlist
from tombolo.suite.runner import Setting, Verdict

DEFAULT_SEEDS = (1, 2, 3)


def conformance(
    mpi: Annotated[str, typer.Option(help="One of " + ", ".join(mpis.KEYS))] = "mpich",
    machine: Annotated[
        list[str] | None,
        typer.Option(help="coherent, flushed, stale or stock; repeatable [default: all of the claim]"),
    ] = None,
    seed: Annotated[
        list[int] | None, typer.Option(help="Seeds for stale; repeatable [default: 1 2 3]")
    ] = None,
    stock: Annotated[
        bool | None, typer.Option("--stock/--no-stock", help="Run the stock MPI first.")
    ] = None,
    slice: Annotated[
        str | None, typer.Option(help="K/N: every Nth test from the Kth; quick: a short list.")
    ] = None,
    only: Annotated[str | None, typer.Option(help="Regular expression on folder/name.")] = None,
    suite: Annotated[
        str, typer.Option(help="Folders of the suite, comma-separated.")
    ] = ",".join(suite_build.FOLDERS),
    jobs: Annotated[int, typer.Option(help="Tests at a time.")] = 1,
    limit: Annotated[float, typer.Option(help="Seconds that a test may take; ten times as many on stale.")] = 60,
    verbose: Annotated[bool, typer.Option(help="Show the output of failing tests.")] = False,
    build_only: Annotated[bool, typer.Option(help="Fetch and build the programs, then end.")] = False,
) -> None:
    """Run MPICH's one-sided tests; fail when one passes under the stock MPI and not under us."""
    chosen = mpis.need(mpi)
    runs = settings_for(machine, tuple(seed or DEFAULT_SEEDS), stock)
    if not build_only and any(setting.choice for setting in runs):
        libraries.need(chosen.kind)  # before the first test rather than in its time
    where = suite_build.build(chosen, console.print)
    if build_only:
        console.print(f"built in {paths.shown(where)}")
        return
    tests = testlist.read(where, tuple(suite.split(",")), source.unpacked())
    tests = testlist.choose(tests, slice, only, judge.quick_tests())
    if not tests:
        raise UserError("no test is left to run")
    writer = records.Writer(f"conformance-{chosen.key}", mpi=chosen.label, tests=len(tests))
    known = judge.StockVerdicts(where)
    expected = judge.expected_failures()
    rows = []
    for setting in runs:
        console.rule(f"{chosen.label}, {setting.label}: {len(tests)} tests", align="left")
        start = time.monotonic()
        verdicts = []
        seen = report(verbose, expected if setting.machine == "stale" else {})
        for verdict in runner.run_all(tests, chosen, where, setting, limit, jobs, seen):
            writer.write({"kind": "test", **verdict.record()})
            verdicts.append(verdict)
            if setting.machine == "stock":
                known.learn(verdict)
        ask_stock(tests, verdicts, known, chosen, where, limit)
        row = judge.summarize(setting, verdicts, known.passes, expected)
        row.seconds = time.monotonic() - start
        rows.append(row)
    console.print(table(chosen.label, rows))
    explain(rows, expected)
    console.print(f"records: {paths.shown(writer.path)}")
    fine = sum(row.tests - len(row.unexpected) for row in rows)
    console.print(f"conformance: {fine} passed, {sum(len(r.unexpected) for r in rows)} failed")
    if any(row.unexpected for row in rows):
        raise typer.Exit(1)


def settings_for(
    machines: list[str] | None, seeds: tuple[int, ...], stock: bool | None
) -> list[Setting]:
    """The runs to make, in order; `stale` once for each seed."""
    named = list(machines or ("coherent", "stale"))
    for name in named:
        settings.check_machine(name, "stock")
    if (stock is None and not machines) or stock:
        named = ["stock", *named]
    runs = []
    for name in dict.fromkeys(named):
        runs += [Setting(name, s) for s in seeds] if name == "stale" else [Setting(name)]
    return runs


def report(verbose: bool, listed: dict[str, str]):
    """A dot for a pass, a line for anything else; `listed`: the tests that may fail."""
    column = 0

    def seen(verdict: Verdict) -> None:
        nonlocal column
        if verdict.passed:
            column += 1
            print(".", end="\n" if column % 100 == 0 else "", flush=True)
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


def ask_stock(tests, verdicts, known, mpi, where, limit) -> None:
    """A failure of ours asks the stock MPI, again if need be, unless it is known to pass."""
    print()
    by_id = {test.id: test for test in tests}
    for verdict in verdicts:
        if not verdict.passed and not known.passes.get(verdict.test, False):
            known.learn(runner.run(by_id[verdict.test], mpi, where, Setting("stock"), limit))


def table(title: str, rows: list[judge.Summary]) -> Table:
    result = Table(title=f"MPICH's one-sided tests on {title}", title_justify="left")
    for heading in ("setting", "tests", "passed", "expected failures", "fails under stock too",
                    "fails only here", "passes only here", "windows served", "seconds"):
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
