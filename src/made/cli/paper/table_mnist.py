"""`made paper table mnist`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from made.cli.errors import command, usage
from made.cli.options import JSON, QUIET
from made.cli.paper.options import EPOCHS, GRID, RESULTS, ROWS, RUNS, SEED, Budget
from made.cli.paper.searches import chosen_rows, print_results, search_for

__all__ = ["mnist"]


@command
def mnist(
    row: ROWS = None,
    grid: GRID = Budget.evening,
    width: Annotated[
        int | None,
        typer.Option(
            "--width", min=1, help="Units of a hidden layer.", show_default="1000 in an evening, 8000 in the full grid"
        ),
    ] = None,
    epochs: EPOCHS = None,
    rate: Annotated[
        list[float] | None,
        typer.Option(
            "--rate",
            help="Learning rate to try; may be repeated.",
            show_default="0.05 in an evening, the paper's four in the full grid",
        ),
    ] = None,
    results: RESULTS = Path("results"),
    runs: RUNS = Path("runs"),
    seed: SEED = 0,
    as_json: JSON = False,
    quiet: QUIET = False,
) -> None:
    """Table 6: binarized MNIST. Rows: MADE 1hl (1 mask), MADE 2hl (1 mask), the same with 32 masks, ours, any-order."""
    from made.io import datasets
    from made.paper import own_models, table_mnist

    rows = chosen_rows(row, (*table_mnist.ROWS, *own_models.ROWS))
    if (width or epochs or rate) and not set(rows) - set(own_models.ROWS):
        raise usage(
            "'--width', '--epochs' and '--rate' are for the paper's rows: leave them out, or choose one of these rows."
        )
    rates = tuple(dict.fromkeys(rate or ()))  # without duplicates
    if not all(0 < each < math.inf for each in rates):
        raise usage(f"'--rate' should be a number above 0, not {', '.join(map(str, rates))}.")
    with search_for("mnist", results, runs, grid.value, seed, as_json, quiet) as search:
        data = datasets.load(table_mnist.SET)
        paper = tuple(each for each in rows if each in table_mnist.ROWS)
        found = table_mnist.make(search, data, paper, width, epochs, rates)
        found += own_models.make(search, data, tuple(each for each in rows if each in own_models.ROWS))
    print_results(found, as_json)
