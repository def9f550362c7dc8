"""Options that several commands have; `made.cli.errors.command` adds --json and --quiet to all."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

MODEL = Annotated[Path, Argument(metavar="MODEL", help="Folder of the model.", show_default=False)]
DATA = Annotated[
    str,
    Argument(
        metavar="DATA",
        help="File (.csv, .parquet, .npy, .npz), - for standard input, or a named dataset (penguins, adult:test, ...).",
        show_default=False,
    ),
]
VALID = Annotated[
    str | None,
    Option(help="Validation rows, like DATA.", show_default="those of a named dataset, or a random tenth"),
]
GIVEN = Annotated[str | None, Option(help="Columns to condition on, such as age,job.", show_default="none")]
MASKS = Annotated[
    int | None,
    Option(min=1, help="How many masks to average, for models of unlimited masks.", show_default="the model's"),
]
SEED = Annotated[int | None, Option(min=0, max=2**32 - 1, help="Random seed.", show_default="the model's")]
OUT = Annotated[
    str | None, Option(help="Output file (.csv, .parquet, .npy, .npz).", show_default="- (standard output)")
]
SAFE_CSV = Annotated[
    bool,
    Option(
        "--safe-csv",
        help="In CSV output, put ' before text that a spreadsheet would run as a formula (=, +, -, @, tab).",
    ),
]


class OnError(StrEnum):
    """What a command does about a row that cannot be answered."""

    stop = "raise"
    skip = "skip"


ON_ERROR = Annotated[
    OnError, Option(help="For a row that cannot be answered: raise an error, or skip it: its answer is empty.")
]


def page_option(command: str) -> Any:
    """The option --out of a command that writes a page."""
    return Option(
        help="HTML file of the page, or a folder for it; with --json, no page is written by default.",
        show_default=f"{command}-DATA.html, in this folder",
    )
