# SPDX-License-Identifier: Apache-2.0
"""Puts the commands together; one file each in `commands/`."""

import sys

import typer

from tombolo import __version__
from tombolo.commands import bench, build, conformance, demo, doctor, dsm, env, run, scc, svp
from tombolo.errors import UserError

app = typer.Typer(
    help="One-sided MPI programs over memory without cache coherence.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("doctor")(doctor.doctor)
app.command(
    "run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)(run.run)
app.command("env")(env.env)
app.command("build")(build.build)
app.command("demo")(demo.demo)
app.add_typer(bench.app, name="bench")
app.command("conformance")(conformance.conformance)
app.add_typer(scc.app, name="scc")
app.add_typer(dsm.app, name="dsm")
app.add_typer(svp.app, name="svp")


@app.callback(invoke_without_command=True)
def version(
    show: bool = typer.Option(False, "--version", help="Print the version and end."),
) -> None:
    if show:
        print(f"tombolo {__version__}")
        raise typer.Exit()


def main() -> None:
    try:
        app(prog_name="tombolo")
    except UserError as error:
        print(f"tombolo: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
