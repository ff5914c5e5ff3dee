# SPDX-License-Identifier: Apache-2.0
"""`tombolo conformance --suite petsc`: one table of right or wrong, and of times beside the stock MPI's."""

import typer
from rich.table import Table

from tombolo import mpis, paths, records
from tombolo.commands.bench import number
from tombolo.commands.demo import ratio_text
from tombolo.console import console, paragraph
from tombolo.errors import UserError
from tombolo.suite import petsc
from tombolo.suite.petsc import Campaign, Forest
from tombolo.suite.runner import Setting

STOCK = Setting("stock")


def check_mpi(mpi: str) -> None:
    """A UserError for one that PETSc is not linked to."""
    if mpi not in ("mpich", petsc.MPI):  # mpich: the default of the other suites
        raise UserError(f"the distribution's PETSc is linked to {petsc.MPI}, not to {mpi}")


def show(settings: list[Setting], ranks: tuple[int, ...], turns: int, limit: float) -> None:
    """Runs every kind of star forest under every setting, and the stock MPI in any case."""
    chosen, library = mpis.need(petsc.MPI), petsc.need()
    settings = list(dict.fromkeys([STOCK, *settings]))
    writer = records.Writer("conformance-petsc", mpi=chosen.label, petsc=str(library.folder))
    campaign = Campaign(library, chosen, limit, writer.write)
    done = []
    for flavor in petsc.FLAVORS:
        for forest in (Forest(flavor, sync) for sync in petsc.SYNCS):
            console.print(f"running: {forest.flavor}, {forest.sync}")
            for count in ranks:
                if not campaign.measure(forest, count, settings, turns):
                    break
                done.append((forest, count))
            if forest in campaign.not_offered:
                break  # nor with another synchronization
    console.print(table(chosen.label, campaign, done, settings))
    explain(campaign)
    finish(campaign, paths.shown(writer.path))


def table(label: str, campaign: Campaign, done: list[tuple[Forest, int]], settings: list[Setting]) -> Table:
    title = f"PETSc's star forests on {label}: time of an exchange, and stock / Tombolo"
    result = Table("windows", "synchronized by", "exchange", "ranks", title=title, title_justify="left")
    for setting in settings:
        result.add_column(setting.label, justify="right")
    for forest, count in done:
        for name in petsc.OPERATIONS:
            cells = [cell(campaign, (forest, name, count), setting) for setting in settings]
            result.add_row(forest.flavor, forest.sync, name, str(count), *cells)
        result.add_section()
    return result


def cell(campaign: Campaign, row: tuple[Forest, str, int], setting: Setting) -> str:
    """The time and, where it is one to compare, the ratio; else a word for the failure."""
    seen, stock = campaign.cells[(*row, setting)], campaign.cells[(*row, STOCK)]
    if not seen.right:
        return f"[red]{seen.word}[/]"
    time, its = seen.time_us, stock.time_us
    text = "right" if time is None else f"right {number(time)} us"
    if setting.machine in ("stock", "stale") or its is None or time is None:
        return text
    return f"{text}  {ratio_text(its / time)}"


def explain(campaign: Campaign) -> None:
    for forest in campaign.not_offered:
        paragraph(f"This PETSc was built without windows of the kind '{forest.flavor}'.")
    if campaign.windows.forwarded:
        reasons = "; ".join(campaign.windows.reasons)
        paragraph(f"{campaign.windows.forwarded} windows went to the host MPI because: {reasons}")
    for (forest, name, count, setting), says in campaign.complaints.items():
        where = f"{forest.flavor}, {forest.sync}, {name}, {count} ranks, {setting.label}"
        paragraph(f"{where}: {says}", style="red")
    ((variable, value),) = petsc.APART.items()
    paragraph(
        "The three exchanges of a row's run share its processes: those behind one that hangs fail with it. "
        "Times are medians; those of stale, which compares memory, say nothing. An exchange that is right and "
        "slower is told, and is no failure. Shared windows on flushed and stale "
        f"have each process's part on pages of its own ({variable}={value})."
    )


def finish(campaign: Campaign, records_at: str) -> None:
    """A failure counts unless the stock MPI fails in the same place."""
    passed = failed = 0
    slower = []
    for (forest, name, count, setting), seen in campaign.cells.items():
        stock = campaign.cells.get((forest, name, count, STOCK))
        if setting == STOCK or not seen.words:
            continue
        passed += seen.right
        failed += not seen.right and stock is not None and stock.right
        time, its = seen.time_us, stock.time_us if stock else None
        if setting.machine != "stale" and time and its and time > its:
            slower.append(f"{forest.flavor}/{forest.sync}/{name} ({setting.label}, {count} ranks)")
    if slower:
        paragraph(f"Tombolo is slower here: {'; '.join(slower)}.")
    console.print(f"records: {records_at}")
    console.print(f"conformance: {passed} passed, {failed} failed")
    if failed:
        raise typer.Exit(1)
