"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["DATA", "GIVEN", "JSON", "MASKS", "MODEL", "OUT", "QUIET", "SAFE_CSV", "SEED", "VALID"]

MODEL = Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of the model.", show_default=False)]
DATA = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="File (.csv, .parquet, .npy, .npz), - for standard input, or a named dataset (penguins, adult:test, ...).",
        show_default=False,
    ),
]
OUT = Annotated[
    str | None,
    typer.Option("--out", help="Output file (.csv, .parquet, .npy, .npz).", show_default="- (standard output)"),
]
SEED = Annotated[
    int | None,
    typer.Option("--seed", min=0, max=2**32 - 1, help="Random seed.", show_default="the model's"),
]
JSON = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
QUIET = Annotated[bool, typer.Option("--quiet", help="Print no progress bar and no notes.")]

MASKS = Annotated[
    int | None,
    typer.Option(
        "--masks", min=1, help="How many masks to average, for models of unlimited masks.", show_default="the model's"
    ),
]
GIVEN = Annotated[
    str | None,
    typer.Option("--given", help="Columns to condition on, such as age,job.", show_default="none"),
]


SAFE_CSV = Annotated[
    bool,
    typer.Option(
        "--safe-csv",
        help="In CSV output, put ' before text that a spreadsheet would run as a formula (=, +, -, @, tab).",
    ),
]
VALID = Annotated[
    str | None,
    typer.Option(
        "--valid", help="Validation rows, like DATA.", show_default="those of a named dataset, or a random tenth"
    ),
]
