"""Options of `made paper`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["DATASETS", "EPOCHS", "GRID", "RESULTS", "ROWS", "RUNS", "SEED", "Budget"]


class Budget(StrEnum):
    """Which part of the paper's grid is searched."""

    evening = "evening"
    full = "full"


DATASETS = Annotated[
    list[str] | None,
    typer.Option("--data", help="Dataset; may be repeated.", show_default="all but rcv1"),
]
ROWS = Annotated[
    list[str] | None,
    typer.Option("--row", help="Row of the table; may be repeated.", show_default="all"),
]
GRID = Annotated[
    Budget, typer.Option("--grid", help="The paper's full grid, or a part that takes an evening on two cores.")
]
RESULTS = Annotated[Path, typer.Option("--results", help="Folder for results, as JSON.")]
RUNS = Annotated[Path, typer.Option("--runs", help="Folder for the models, from which training resumes.")]
SEED = Annotated[int, typer.Option("--seed", min=0, max=2**31, help="Random seed.")]
EPOCHS = Annotated[
    int | None, typer.Option("--epochs", min=1, help="Maximum number of epochs.", show_default="the grid's")
]
