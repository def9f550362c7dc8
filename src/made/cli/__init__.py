"""The `made` command, one file for each family of commands."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from made.cli.ask import evaluate, explain, info, score
from made.cli.compare import compare
from made.cli.data import app as data
from made.cli.demo import demo
from made.cli.draw import impute, sample
from made.cli.fit import fit
from made.cli.paper import app as paper
from made.cli.predict import denoise, predict
from made.cli.question import ask
from made.cli.report import report
from made.cli.tune import tune

__all__ = ["app", "main"]

# Before torch is loaded: threads that spin while they wait make training many times slower on a machine that is busy.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Plain help: to load what draws boxes around it takes longer than printing it.
app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
for each in (fit, tune, compare, evaluate, score, ask, sample, impute, predict, denoise, explain, report, info, demo):
    app.command()(each)
app.add_typer(data, name="data")
app.add_typer(paper, name="paper")


def _version(wanted: bool) -> None:
    if wanted:
        import made

        print(f"made {made.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="The version.")] = False,
) -> None:
    """Turn a table into a distribution you can ask anything."""


def main() -> None:
    """What the shell runs."""
    words, path = sys.argv[1:], ["made"]
    command: Any = typer.main.get_command(app)
    # A command's help comes from that command itself: to parse the words before it loads pydantic, which takes longer.
    while words[-1:] == ["--help"] and words[0] in getattr(command, "commands", {}):
        command = command.commands[words[0]]
        path.append(words.pop(0))
    command.main(args=words, prog_name=" ".join(path))
