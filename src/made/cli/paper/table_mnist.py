"""`made paper table mnist`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

from made.cli.errors import command, usage
from made.cli.options import option
from made.cli.paper import shared
from made.cli.paper.shared import GRID, RESULTS, ROWS, RUNS, SEED


@command
def mnist(
    row: ROWS = None,
    grid: GRID = shared.Budget.evening,
    width: Annotated[
        int | None, option("Units of a hidden layer.", "1000 in an evening, 8000 in the full grid", min=1)
    ] = None,
    epochs: Annotated[int | None, option("Maximum number of epochs.", "the grid's", min=1)] = None,
    rate: Annotated[
        list[float] | None,
        option("Learning rate to try; may be repeated.", "0.05 in an evening, the paper's four in the full grid"),
    ] = None,
    results: RESULTS = Path("results"),
    runs: RUNS = Path("runs"),
    seed: SEED = 0,
) -> None:
    """Table 6: binarized MNIST. Rows: MADE 1hl (1 mask), MADE 2hl (1 mask), the same with 32 masks, ours, any-order."""
    from made.io import datasets
    from made.paper import own_models, table_mnist

    rows = shared.chosen_rows(row, (*table_mnist.ROWS, *own_models.ROWS))
    if (width or epochs or rate) and not set(rows) - set(own_models.ROWS):
        remedy = "leave them out, or choose one of these rows"
        raise usage(f"'--width', '--epochs' and '--rate' are for the paper's rows: {remedy}.")
    rates = tuple(dict.fromkeys(rate or ()))  # without duplicates
    if not all(0 < each < math.inf for each in rates):
        raise usage(f"'--rate' should be a number above 0, not {', '.join(map(str, rates))}.")
    with shared.search_for("mnist", results, runs, grid, seed) as search:
        data = datasets.load(table_mnist.SET)
        paper = tuple(each for each in rows if each in table_mnist.ROWS)
        found = table_mnist.make(search, data, paper, width, epochs, rates)
        found += own_models.make(search, data, tuple(each for each in rows if each in own_models.ROWS))
    shared.print_results(found)
