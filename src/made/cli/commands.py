"""All commands of `made`, in the order of `made --help`."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from typing import Annotated

import typer

from made.cli.errors import EXIT_CODES

# The functions of the modules of the same names, and the groups of commands.
COMMANDS = [
    "fit",
    "tune",
    "compare",
    "evaluate",
    "score",
    "ask",
    "sample",
    "impute",
    "predict",
    "denoise",
    "explain",
    "sql",
    "mcp",
    "export",
    "report",
    "serve",
    "info",
    "demo",
]
GROUPS = ["data", "paper"]

# Before torch is loaded: threads that spin while they wait make training many times slower on a busy machine.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


@cache
def load_app(word: str | None = None) -> typer.Typer:
    """The command line; only with the command that ``word`` names, if it does, as a process runs no other."""
    # Plain help: loading rich for it takes longer than printing it.
    app = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        epilog=f"Exit codes: {'; '.join(f'{code} {meaning}' for code, meaning in EXIT_CODES.items())}.",
    )
    app.callback()(root)
    for name in [word] if word in COMMANDS or word in GROUPS else COMMANDS + GROUPS:
        module = import_module(f"made.cli.{name}")
        if name in GROUPS:
            app.add_typer(module.app, name=name)
        else:
            app.command()(getattr(module, str(name)))
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
