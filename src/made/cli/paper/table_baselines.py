"""`made paper table baselines`."""

from __future__ import annotations

from pathlib import Path

from made.cli.errors import command
from made.cli.paper import shared
from made.cli.paper.shared import DATASETS, GRID, RESULTS, ROWS, RUNS, SEED


@command
def baselines(
    data: DATASETS = None,
    row: ROWS = None,
    grid: GRID = shared.Budget.evening,
    results: RESULTS = Path("results"),
    runs: RUNS = Path("runs"),
    seed: SEED = 0,
) -> None:
    """Tables 4 and 6: the other systems, from MoBernoullis to DARN; rows are named as there."""
    from made.io import datasets
    from made.paper import published, table_baselines, table_mnist

    chosen = data or [*(name for name in published.UCI_SETS if name not in published.ABSENT), table_mnist.SET]
    known = {row for name in chosen for row in table_baselines.rows_of(name)}
    rows = shared.chosen_rows(row, tuple(each for each in table_baselines.ALL if each in known))
    with shared.search_for("baselines", results, runs, grid, seed) as search:
        found = [each for name in chosen for each in table_baselines.make(search, datasets.load(name), rows)]
    shared.print_results(found)
