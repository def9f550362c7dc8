"""`made paper table baselines`."""

from __future__ import annotations

from pathlib import Path

from made.cli.errors import command
from made.cli.options import JSON, QUIET
from made.cli.paper.options import DATASETS, GRID, RESULTS, ROWS, RUNS, SEED, Budget
from made.cli.paper.searches import chosen_rows, print_results, search_for

__all__ = ["baselines"]


@command
def baselines(
    data: DATASETS = None,
    row: ROWS = None,
    grid: GRID = Budget.evening,
    results: RESULTS = Path("results"),
    runs: RUNS = Path("runs"),
    seed: SEED = 0,
    as_json: JSON = False,
    quiet: QUIET = False,
) -> None:
    """Tables 4 and 6: the other systems, from MoBernoullis to DARN; rows are named as there."""
    from made.io import datasets
    from made.paper import published, table_baselines, table_mnist

    chosen = data or [*(name for name in published.UCI_SETS if name not in published.ABSENT), table_mnist.SET]
    known = {row for name in chosen for row in table_baselines.rows_of(name)}
    rows = chosen_rows(row, tuple(each for each in table_baselines.ALL if each in known))
    found = []
    with search_for("baselines", results, runs, grid.value, seed, as_json, quiet) as search:
        for name in chosen:
            found += table_baselines.make(search, datasets.load(name), rows)
    print_results(found, as_json)
