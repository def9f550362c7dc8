"""The `made` command, one file for each family of commands."""

from __future__ import annotations

from typing import Annotated

import typer

from made.cli.ask import evaluate, explain, info, score
from made.cli.data import app as data
from made.cli.demo import demo
from made.cli.draw import impute, sample
from made.cli.fit import fit

__all__ = ["app"]

# Plain help: to load what draws boxes around it takes longer than printing it.
app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
for each in (fit, evaluate, score, sample, impute, explain, info, demo):
    app.command()(each)
app.add_typer(data, name="data")


def _version(wanted: bool) -> None:
    if wanted:
        import made

        print(f"made {made.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="The version.")] = False,
) -> None:
    """Turn a table into a distribution you can ask anything."""
