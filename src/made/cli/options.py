"""Options that several commands have; `made.cli.errors.command` adds --json and --quiet to all."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from made.io import SUFFIXES


def option(text: str, default: str | bool = True, name: str | None = None, **limits: Any) -> Any:
    """An option in an annotation: its help text, the default as the help shows it, and limits of a number."""
    return typer.Option(*([] if name is None else [name]), help=text, show_default=default, **limits)


def flag(name: str, text: str) -> Any:
    """An option without a value, in an annotation."""
    return typer.Option(name, help=text)


def page_option(command: str) -> Any:
    """The option --out of a command that writes a page."""
    text = "HTML file of the page, or a folder for it; with --json, no page is written by default."
    return option(text, f"{command}-DATA.html, in this folder")


MODEL = Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of the model.", show_default=False)]
DATA = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help=f"File ({', '.join(SUFFIXES)}), - for standard input, or a named dataset (penguins, adult:test, ...).",
        show_default=False,
    ),
]
FILES = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA",
        help=f"Files ({', '.join(SUFFIXES)}), a folder of files, or a glob such as 'data/*.parquet': together one "
        "table, which may be larger than memory. Or - for standard input, or a named dataset (penguins, adult, ...).",
        show_default=False,
    ),
]
VALID = Annotated[str | None, option("Validation rows, like DATA.", "the validation split, or a random tenth")]
GIVEN = Annotated[str | None, option("Columns to condition on, such as age,job.", "none")]
RAY = Annotated[
    str | None,
    option("Ray cluster to run on, host:port of its head; this machine must be one of its nodes.", "none"),
]
MASKS = Annotated[int | None, option("Number of masks to average, if the model's are unlimited.", "the model's", min=1)]
SEED = Annotated[int | None, option("Random seed.", "the model's", min=0, max=2**32 - 1)]
OUT = Annotated[str | None, option(f"Output file ({', '.join(SUFFIXES)}), or -.", "standard output")]
SAFE_CSV = Annotated[
    bool,
    flag("--safe-csv", "In CSV output, put ' before text that a spreadsheet would run as a formula (=, +, -, @, tab)."),
]


class OnError(StrEnum):
    """What to do about rows that cannot be answered."""

    stop = "raise"
    skip = "skip"


ON_ERROR = Annotated[
    OnError, option("For rows that cannot be answered: raise an error, or skip them, leaving their answers empty.")
]
