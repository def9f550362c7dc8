"""Options of `made paper`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["EPOCHS", "GRID", "RESULTS", "ROWS", "RUNS", "SEED", "Budget"]


class Budget(StrEnum):
    """Which part of the paper's grid is tried."""

    evening = "evening"
    full = "full"


ROWS = Annotated[
    list[str] | None,
    typer.Option("--row", help="A row of the table; may be repeated. All unless told.", show_default=False),
]
GRID = Annotated[Budget, typer.Option("--grid", help="The paper's full grid, or what fits an evening on two cores.")]
RESULTS = Annotated[Path, typer.Option("--results", help="The folder for results, as JSON.")]
RUNS = Annotated[Path, typer.Option("--runs", help="The folder for the models, from which training goes on.")]
SEED = Annotated[int, typer.Option("--seed", min=0, max=2**31, help="The seed of everything that is random.")]
EPOCHS = Annotated[
    int | None, typer.Option("--epochs", min=1, help="The most epochs, if not the grid's.", show_default=False)
]
