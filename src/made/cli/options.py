"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["DATA", "GIVEN", "JSON", "MASKS", "MODEL", "OUT", "QUIET", "SAFE_CSV", "SEED"]

MODEL = Annotated[Path, typer.Argument(metavar="MODEL", help="A model's folder.", show_default=False)]
DATA = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A file (.csv, .parquet, .npy, .npz), - for standard input, or a named set such as adult or adult:test.",
        show_default=False,
    ),
]
OUT = Annotated[
    str | None, typer.Option("--out", help="A file for the result (.csv, .parquet, .npy, .npz); - or none to print it.")
]
SEED = Annotated[
    int | None,
    typer.Option("--seed", min=0, max=2**32 - 1, help="The seed of what is random; the model's unless told."),
]
JSON = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
QUIET = Annotated[bool, typer.Option("--quiet", help="No progress bar and no notes.")]

MASKS = Annotated[
    int | None,
    typer.Option("--masks", min=1, help="How many masks a model of unlimited ones averages.", show_default=False),
]
GIVEN = Annotated[
    str | None,
    typer.Option("--given", help="Columns that are conditioned on, such as age,job.", show_default=False),
]


SAFE_CSV = Annotated[
    bool,
    typer.Option(
        "--safe-csv", help="In CSV, put ' before text that a spreadsheet would run as a formula (=, +, -, @, tab)."
    ),
]
