"""All commands of `made`, in the order of `made --help`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from made.cli.ask import ask
from made.cli.compare import compare
from made.cli.data import app as data
from made.cli.demo import demo
from made.cli.denoise import denoise
from made.cli.errors import EXIT_CODES
from made.cli.evaluate import evaluate
from made.cli.explain import explain
from made.cli.fit import fit
from made.cli.impute import impute
from made.cli.info import info
from made.cli.paper import app as paper
from made.cli.predict import predict
from made.cli.report import report
from made.cli.sample import sample
from made.cli.score import score
from made.cli.tune import tune

__all__ = ["app"]

# Before torch is loaded: threads that spin while they wait make training many times slower on a busy machine.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Plain help: loading rich for it takes longer than printing it.
app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    epilog=f"Exit codes: {'; '.join(f'{code} {meaning}' for code, meaning in EXIT_CODES.items())}.",
)
for each in (fit, tune, compare, evaluate, score, ask, sample, impute, predict, denoise, explain, report, info, demo):
    app.command()(each)
app.add_typer(data, name="data")
app.add_typer(paper, name="paper")


def _version(wanted: bool) -> None:
    if wanted:
        from made._version import __version__

        print(f"made {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Turn a table into a distribution, and query it: every answer is a probability under the fitted model."""
