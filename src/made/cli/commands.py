"""All commands of `made`, in the order of `made --help`."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from made.cli.errors import EXIT_CODES

# The functions of the modules of the same names, and what `made --help` says about them.
COMMANDS = {
    "fit": "Learn the distribution of a table, and save the model.",
    "tune": "Search for the parameters with the best likelihood.",
    "compare": "Compare density estimators on binary rows.",
    "evaluate": "Print the mean negative log-likelihood of rows.",
    "score": "Print the log-likelihood of each row.",
    "ask": "Print the probability of a condition, given another.",
    "sample": "Draw new rows.",
    "impute": "Fill the missing values of a table.",
    "predict": "Predict a column from the others.",
    "denoise": "Correct wrong entries.",
    "explain": "Find the least likely rows, and the entries responsible.",
    "sql": "Run a query of DuckDB in which models answer as functions.",
    "mcp": "Let an assistant query a model.",
    "export": "Write a model as an ONNX graph.",
    "report": "Write a page that compares a table with samples.",
    "serve": "Serve a page and an HTTP API to explore models.",
    "info": "Show what a model is.",
    "demo": "Learn and query a table of penguins.",
}
GROUPS = ["data", "paper"]

# Before torch is loaded: threads that spin while they wait make training many times slower on a busy machine.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


class SectionedCommand(TyperCommand):
    """A command whose help has a section for each ``rich_help_panel``, which typer has only with rich."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            usual = "Arguments" if parameter.param_type_name == "argument" else "Options"
            record = parameter.get_help_record(ctx)
            if record is not None:
                sections.setdefault(getattr(parameter, "rich_help_panel", None) or usual, []).append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


@cache
def load_app(word: str | None = None) -> typer.Typer:
    """The command line; only with the command that ``word`` names, if it does, as a process runs no other."""
    # Plain help: loading rich for it takes longer than printing it.
    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        epilog="\n".join(["\b", "Exit codes:", *(f"  {code:<3}  {what}" for code, what in EXIT_CODES.items())]),
    )
    app.callback()(root)
    for name in [word] if word in COMMANDS or word in GROUPS else [*COMMANDS, *GROUPS]:
        module = import_module(f"made.cli.{name}")
        if name in GROUPS:
            app.add_typer(module.app, name=name)
        else:
            app.command(short_help=COMMANDS[name], cls=SectionedCommand)(getattr(module, name))
    return app


def _version(wanted: bool) -> None:
    if wanted:
        from made._version import __version__

        print(f"made {__version__}")
        raise typer.Exit


def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Turn a table into a distribution, and query it: every answer is a probability under the fitted model."""
